import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LostSync, UnitGroups } from './sqlite-group.ts';
import type { WireUnit } from './sqlite-message.ts';

let directory = '';
let db: Database;
/** Results of the next commits: an SQLite error code, or null for success. */
let disk: (string | null)[] = [];
let groups: UnitGroups;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-group-'));
  db = new Sqlite(join(directory, 'muster.db'), { timeout: 1 });
  db.pragma('journal_mode = wal');
  db.exec('create table t (k text primary key) strict');
  disk = [];
  groups = new UnitGroups(db, () => {
    const code = disk.shift();
    if (code) throw Object.assign(new Error(`disk error ${code}`), { code });
  });
  groups.define(1, 'insert into t values (?)');
  groups.define(2, 'select k from t where k = ?');
});
afterEach(() => {
  db.close();
  rmSync(directory, { recursive: true, force: true });
});

const inserting = (id: number, ...keys: string[]): WireUnit => ({
  id,
  statements: keys.map((key) => [1, [key], 0] as const),
});

function from(units: WireUnit[]) {
  return () => units.shift();
}

const rows = () => (db.prepare('select k from t order by k').all() as { k: string }[]).map((row) => row.k).join('');

describe('UnitGroups', () => {
  test('commits a group in one transaction, and returns a separate result for each write', () => {
    const outcome = groups.run(
      from([
        inserting(1, 'a'),
        inserting(2, 'b', 'a'),
        {
          id: 3,
          statements: [
            [1, ['c'], 0],
            [2, ['?'], 2],
          ],
        },
        {
          id: 4,
          statements: [
            [2, ['a'], 2],
            [1, ['d'], 1],
          ],
        },
      ]),
    );
    expect(outcome.commits).toBe(1);
    expect(outcome.answers).toMatchObject([
      { id: 1, outcome: 'committed', results: [1] },
      { id: 2, outcome: 'constraint', constraint: 'unique' },
      { id: 3, outcome: 'refused', index: 1 },
      { id: 4, outcome: 'committed', results: [{ rows: [{ k: 'a' }], changes: 0 }, 1] },
    ]);
    expect(rows()).toBe('ad');
  });

  test('undoes only the failed writes in a group, and runs later writes in the same transaction', () => {
    const taken: number[] = [];
    const given = from([inserting(1, 'a'), inserting(2, 'b', 'a'), inserting(3, 'c'), inserting(4, 'd', 'c')]);
    const outcome = groups.run(() => {
      const unit = given();
      if (unit) taken.push(unit.id);
      return unit;
    });
    expect(taken).toEqual([1, 2, 3, 4]);
    expect(outcome.commits).toBe(1);
    expect(outcome.answers.map(({ id, outcome }) => [id, outcome])).toEqual([
      [1, 'committed'],
      [2, 'constraint'],
      [3, 'committed'],
      [4, 'constraint'],
    ]);
    expect(rows()).toBe('ac');
  });

  test('sets savepoints only for a group with a write that must be undone', () => {
    const statements: string[] = [];
    const traced = new UnitGroups(
      new Sqlite(join(directory, 'muster.db'), { verbose: (sql) => statements.push(`${sql}`) }),
    );
    traced.define(1, 'insert into t values (?)');
    traced.run(from([inserting(1, 'a', 'b'), inserting(2, 'c', 'd')]));
    expect(statements.filter((sql) => sql.startsWith('savepoint'))).toEqual([]);
    traced.run(from([inserting(1, 'e', 'f'), inserting(2, 'g', 'a')]));
    expect(statements.filter((sql) => sql.startsWith('savepoint'))).toHaveLength(2);
    expect(rows()).toBe('abcdef');
  });

  test('reports writes by other connections since the last group', () => {
    const other = new Sqlite(db.name);
    const isOutside = (key: string) => groups.run(from([inserting(1, key)])).outside;
    expect(isOutside('a')).toBe(false);
    other.exec("insert into t values ('x')");
    expect([isOutside('b'), isOutside('c')]).toEqual([true, false]);
    other.close();
  });

  test('commits each write in its own transaction if the group’s transaction fails', () => {
    disk = ['SQLITE_FULL', null, 'SQLITE_FULL', null];
    const outcome = groups.run(from([inserting(1, 'a'), inserting(2, 'b'), inserting(3, 'c')]));
    expect(outcome.commits).toBe(2);
    expect(outcome.answers).toMatchObject([
      { id: 1, outcome: 'committed' },
      { id: 2, outcome: 'full' },
      { id: 3, outcome: 'committed' },
    ]);
    expect(rows()).toBe('ac');
    expect(db.inTransaction).toBe(false);
  });

  test('retries a refused write after the write that caused the refusal was rolled back', () => {
    disk = ['SQLITE_IOERR_WRITE', 'SQLITE_IOERR_WRITE', null];
    // The first write causes the refusal of the second write, and is then rolled back.
    const outcome = groups.run(
      from([
        inserting(1, 'a'),
        {
          id: 2,
          statements: [
            [2, ['a'], 3],
            [1, ['b'], 0],
          ],
        },
      ]),
    );
    expect(outcome.answers).toMatchObject([
      { id: 1, outcome: 'unavailable' },
      { id: 2, outcome: 'committed' },
    ]);
    expect(rows()).toBe('b');
  });

  test('refuses every write in a group immediately as unavailable while another process holds the lock', () => {
    const other = new Sqlite(join(directory, 'muster.db'));
    other.exec('begin immediate');
    const outcome = groups.run(from([inserting(1, 'a'), inserting(2, 'b')]));
    expect(outcome.answers).toMatchObject([
      { id: 1, outcome: 'unavailable' },
      { id: 2, outcome: 'unavailable' },
    ]);
    other.exec('rollback');
    other.close();
    expect(groups.run(from([inserting(3, 'c')])).answers).toMatchObject([{ id: 3, outcome: 'committed' }]);
  });

  test('throws LostSync if a sync fails', () => {
    disk = ['SQLITE_IOERR_FSYNC'];
    expect(() => groups.run(from([inserting(1, 'a'), inserting(2, 'b')]))).toThrow(LostSync);
  });

  test('reports a statement that does not match the tables as a bug that fails only its own write', () => {
    groups.define(3, 'select * from nowhere');
    const outcome = groups.run(
      from([
        {
          id: 1,
          statements: [
            [1, ['a'], 0],
            [3, [], 0],
          ],
        },
        { id: 2, statements: [[9, [], 0]] },
        inserting(3, 'b'),
      ]),
    );
    expect(outcome.answers).toMatchObject([
      { id: 1, outcome: 'bug', message: 'no such table: nowhere' },
      { id: 2, outcome: 'bug', message: 'Query 9 was not sent to the writer' },
      { id: 3, outcome: 'committed' },
    ]);
    expect(rows()).toBe('b');
  });
});
