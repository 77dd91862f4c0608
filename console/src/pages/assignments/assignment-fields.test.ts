import type { Assignment } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { changesOf, emptyFields, faultsOf, fieldsFrom } from './assignment-fields.ts';

const base: Assignment = {
  ...{ name: 'base', modules: ['motd', 'web'], selector: 'role=web', description: null, mode: 'enforce' },
  ...{ window_only: false, parameters: { web: { port: 80 } }, precedence: 0, created_at: 1, created_by: 'ab' },
};
const fields = fieldsFrom(base);
const parameters = base.parameters as Record<string, Record<string, never>>;

test('does not request an update if no field changed', () => expect(changesOf(base, fields, parameters)).toBeNull());
test('includes only changed fields in the update', () => {
  expect(changesOf(base, { ...fields, selector: 'role=db' }, parameters)).toEqual({ selector: 'role=db' });
  expect(changesOf(base, { ...fields, mode: 'audit', windowOnly: true }, parameters)).toEqual({
    ...{ mode: 'audit', window_only: true },
  });
});
test('treats a different order of modules as a change', () =>
  expect(changesOf(base, { ...fields, modules: ['web', 'motd'] }, parameters)).toEqual({ modules: ['web', 'motd'] }));
test('removes a description that the operator cleared', () =>
  expect(changesOf({ ...base, description: 'x' }, fields, parameters)).toEqual({ description: '' }));
test('includes all parameters in the update if one differs', () =>
  expect(changesOf(base, fields, {})).toEqual({ parameters: {} }));

test('reports missing values by field', () => {
  expect(Object.keys(faultsOf(emptyFields))).toEqual(['name', 'modules', 'selector']);
  expect(faultsOf({ ...fields, selector: 'role=' })).toHaveProperty('selector');
  expect(faultsOf(fields)).toEqual({});
});

test('shows the modules that get values if the assignment has no modules', () => {
  const values = { ...base, modules: [], precedence: 10 };
  expect(fieldsFrom(values)).toMatchObject({ valuesOnly: true, modules: ['web'], precedence: '10' });
  expect(changesOf(values, fieldsFrom(values), parameters)).toBeNull();
  expect(changesOf(base, { ...fields, valuesOnly: true, mode: 'audit', windowOnly: true }, parameters)).toEqual({
    modules: [],
  });
});

test.each(['', 'x', '1.5', '1000001'])('refuses the precedence %j', (precedence) =>
  expect(Object.keys(faultsOf({ ...fields, precedence }))).toEqual(['precedence']),
);
