import type { Assignment } from '@muster/protocol/http';
import { describe, expect, test } from 'vitest';
import { changesOf, faultsOf, fieldsFrom, nothingYet } from './assignment-fields.ts';

const base: Assignment = {
  ...{ name: 'base', modules: ['motd', 'web'], selector: 'role=web', description: null, mode: 'enforce' },
  ...{ window_only: false, parameters: { web: { port: 80 } }, created_at: 1, created_by: 'ab' },
};
const fields = fieldsFrom(base);
const parameters = base.parameters as Record<string, Record<string, never>>;

describe('what a changed form asks for', () => {
  test('nothing when nothing changed', () => expect(changesOf(base, fields, parameters)).toBeNull());
  test('only what changed', () => {
    expect(changesOf(base, { ...fields, selector: 'role=db' }, parameters)).toEqual({ selector: 'role=db' });
    expect(changesOf(base, { ...fields, mode: 'audit', windowOnly: true }, parameters)).toEqual({
      ...{ mode: 'audit', window_only: true },
    });
  });
  test('the order of modules counts', () =>
    expect(changesOf(base, { ...fields, modules: ['web', 'motd'] }, parameters)).toEqual({ modules: ['web', 'motd'] }));
  test('a description that is taken away', () =>
    expect(changesOf({ ...base, description: 'x' }, fields, parameters)).toEqual({ description: '' }));
  test('all parameters, when one differs', () => expect(changesOf(base, fields, {})).toEqual({ parameters: {} }));
});

test('what is missing is said at its field', () => {
  expect(Object.keys(faultsOf(nothingYet))).toEqual(['name', 'modules', 'selector']);
  expect(faultsOf({ ...fields, selector: 'role=' })).toHaveProperty('selector');
  expect(faultsOf(fields)).toEqual({});
});
