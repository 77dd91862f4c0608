import { expect, test } from 'vitest';
import { runsToRepair, unassignedModules } from './unassigned-modules.ts';

const assignments = [
  { modules: ['base'], matches: ['a', 'b', 'c'] },
  { modules: ['web', 'tls'], matches: ['a'] },
];

test('lists the modules of each agent that no assignment contains', () => {
  const beyond = unassignedModules(
    [
      { node_id: 'a', modules: ['base', 'web', 'tls'] },
      { node_id: 'b', modules: ['base', 'motd'] },
      { node_id: 'd', modules: ['motd'] },
    ],
    assignments,
  );
  expect(Object.fromEntries(beyond)).toEqual({ a: [], b: ['motd'], d: ['motd'] });
});

test('groups agents into one run for each set of unassigned modules', () => {
  const beyond = unassignedModules(
    [
      { node_id: 'a', modules: ['base', 'web'] },
      { node_id: 'b', modules: ['base'] },
      { node_id: 'c', modules: ['base', 'y', 'x'] },
      { node_id: 'd', modules: ['x', 'y'] },
    ],
    assignments,
  );
  expect(runsToRepair(beyond)).toEqual([
    { node_ids: ['a', 'b'], modules: [] },
    { node_ids: ['c', 'd'], modules: ['y', 'x'] },
  ]);
});
