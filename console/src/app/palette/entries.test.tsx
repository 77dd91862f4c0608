import { expect, test } from 'vitest';
import { actionEntries, assignmentActionEntries, assignmentEntries } from './entries.ts';

const assignments = [
  { name: 'web', mode: 'enforce' },
  { name: 'staging', mode: 'audit' },
] as const;

/** Returns a function that records where an entry navigates to. */
function recorded() {
  const visits: unknown[] = [];
  return { visits, go: (to: string, target?: object) => void visits.push([to, target]) };
}

test('adds a machine with the dialog on the agents page, for admins', () => {
  const { visits, go } = recorded();
  const add = (isAdmin: boolean) => actionEntries(go, () => {}, isAdmin).find(({ id }) => id === 'add machine');
  add(true)?.run();
  expect(visits).toEqual([['/agents', { state: { opensAddMachine: expect.any(Number) } }]]);
  expect(add(false)).toBeUndefined();
});

test('opens the page of an assignment', () => {
  const { visits, go } = recorded();
  assignmentEntries(assignments, go)[0]?.run();
  expect(visits).toEqual([['/assignments/$assignment', { params: { assignment: 'web' } }]]);
});

test.each([
  ['apply w', ['Apply assignment web…'], 'w'],
  ['plan', ['Plan assignment web', 'Plan assignment staging'], ''],
  ['terminal web', [], ''],
  ['web', [], ''],
])('given the query "%s", offers the actions %j', (query, labels, rest) => {
  const found = assignmentActionEntries(query, assignments, () => {});
  expect(found.entries.map(({ label }) => label)).toEqual(labels);
  expect(found.query).toBe(rest);
});

test('makes the page of an assignment open the dialog that plans and applies it', () => {
  const { visits, go } = recorded();
  assignmentActionEntries('apply web', assignments, go).entries[0]?.run();
  expect(visits).toEqual([
    ['/assignments/$assignment', { params: { assignment: 'web' }, state: { opensApply: expect.any(Number) } }],
  ]);
});
