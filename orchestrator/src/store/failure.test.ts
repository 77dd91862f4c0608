import { describe, expect, test } from 'vitest';
import { postgresFailure } from './postgres/postgres-failure.ts';
import { sqliteFailure } from './sqlite/sqlite-failure.ts';

const withCode = (code: string) => Object.assign(new Error('x'), { code });

describe('sqliteFailure', () => {
  test.each([
    ['SQLITE_CONSTRAINT_UNIQUE', { kind: 'constraint', constraint: 'unique' }],
    ['SQLITE_CONSTRAINT_PRIMARYKEY', { kind: 'constraint', constraint: 'unique' }],
    ['SQLITE_CONSTRAINT_TRIGGER', { kind: 'constraint', constraint: 'other' }],
    ['SQLITE_FULL', { kind: 'full' }],
    ['SQLITE_IOERR_WRITE', { kind: 'unavailable' }],
    ['SQLITE_IOERR', { kind: 'unavailable' }],
    ['SQLITE_BUSY_SNAPSHOT', { kind: 'unavailable' }],
    ['SQLITE_READONLY_DBMOVED', { kind: 'unavailable' }],
    ['SQLITE_IOERR_FSYNC', { kind: 'lost_sync' }],
    ['SQLITE_IOERR_DIR_FSYNC', { kind: 'lost_sync' }],
    ['SQLITE_ERROR', { kind: 'bug' }],
    ['SQLITE_MISMATCH', { kind: 'bug' }],
  ])('classifies the SQLite error %s', (code, failure) => expect(sqliteFailure(withCode(code))).toEqual(failure));

  test('classifies an SQLite error without a code as a bug', () => {
    expect(sqliteFailure(new TypeError('x'))).toEqual({ kind: 'bug' });
    expect(sqliteFailure(null)).toEqual({ kind: 'bug' });
  });
});

describe('postgresFailure', () => {
  test.each([
    ['23505', { kind: 'constraint', constraint: 'unique' }],
    ['23P01', { kind: 'constraint', constraint: 'other' }],
    ['40001', { kind: 'again' }],
    ['40P01', { kind: 'again' }],
    ['53100', { kind: 'full' }],
    ['53300', { kind: 'unavailable' }],
    ['25006', { kind: 'unavailable' }],
    ['58030', { kind: 'unavailable' }],
    ['57014', { kind: 'unavailable' }],
    ['25P03', { kind: 'gone' }],
    ['08006', { kind: 'gone' }],
    ['57P01', { kind: 'gone' }],
    ['ECONNREFUSED', { kind: 'gone' }],
    ['EPIPE', { kind: 'gone' }],
    ['42P01', { kind: 'bug' }],
    ['22P02', { kind: 'bug' }],
  ])('classifies the PostgreSQL error %s', (code, failure) => expect(postgresFailure(withCode(code))).toEqual(failure));

  test('classifies the driver’s messages for a lost connection', () => {
    expect(postgresFailure(new Error('Connection terminated unexpectedly'))).toEqual({ kind: 'gone' });
    expect(postgresFailure(new Error('timeout exceeded when trying to connect'))).toEqual({ kind: 'gone' });
    expect(postgresFailure(new Error('Client was closed and is not queryable'))).toEqual({ kind: 'gone' });
    expect(postgresFailure(new RangeError('9007199254740993 is too large for a number'))).toEqual({ kind: 'bug' });
  });
});
