import type { Assignment } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { changesOf, emptyFields, faultsOf, fieldsFrom } from './assignment-fields.ts';

const base: Assignment = {
  ...{ name: 'base', modules: ['motd', 'web'], selector: 'role=web', description: null, mode: 'enforce' },
  ...{ window_only: false, parameters: { web: { port: 80 } }, created_at: 1, created_by: 'ab' },
};
const fields = fieldsFrom(base);
const parameters = base.parameters as Record<string, Record<string, never>>;

test('requests no update if no field changed', () => expect(changesOf(base, fields, parameters)).toBeNull());
test('requests only changed fields', () => {
  expect(changesOf(base, { ...fields, selector: 'role=db' }, parameters)).toEqual({ selector: 'role=db' });
  expect(changesOf(base, { ...fields, mode: 'audit', windowOnly: true }, parameters)).toEqual({
    ...{ mode: 'audit', window_only: true },
  });
});
test('requests a changed order of modules', () =>
  expect(changesOf(base, { ...fields, modules: ['web', 'motd'] }, parameters)).toEqual({ modules: ['web', 'motd'] }));
test('requests the removal of a description', () =>
  expect(changesOf({ ...base, description: 'x' }, fields, parameters)).toEqual({ description: '' }));
test('requests all parameters if one differs', () => expect(changesOf(base, fields, {})).toEqual({ parameters: {} }));

test('reports missing values by field', () => {
  expect(Object.keys(faultsOf(emptyFields))).toEqual(['name', 'modules', 'selector']);
  expect(faultsOf({ ...fields, selector: 'role=' })).toHaveProperty('selector');
  expect(faultsOf(fields)).toEqual({});
});
