import { expect, test } from 'vitest';
import { runsToRepair, unassignedModules } from './unassigned-modules.ts';

const assignments = [
  { modules: ['base'], matches: ['a', 'b', 'c'] },
  { modules: ['web', 'tls'], matches: ['a'] },
];

test('lists modules that were applied by hand, but not assigned modules', () => {
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

test('repairs agents with only assigned modules in one run', () => {
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
