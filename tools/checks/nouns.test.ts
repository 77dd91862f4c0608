import { expect, test } from 'vitest';
import { layers, nounFaults } from './nouns.ts';

const routes = 'orchestrator/src/http/routes';
const pages = 'console/src/pages';
/** Returns layers that each contain the noun. The layers in `names` contain the listed names instead. */
const layersWith = (names: Record<string, string[]> = {}) =>
  (({ folder, others = [] }) => new Set(names[folder] ?? ['agents', ...others])) as Parameters<typeof nounFaults>[0];

test('accepts a noun with a file in every layer', () => {
  expect(layers).toHaveLength(7);
  expect(nounFaults(layersWith(), {})).toEqual([]);
});

test('refuses a noun that has a different name in a layer', () => {
  const faults = nounFaults(layersWith({ 'cli/src/verbs': ['agent'] }), {});
  expect(faults).toEqual([
    'cli/src/verbs  has no file agents; rename the file, or give the reason in tools/checks/nouns.ts',
  ]);
});

test('accepts an exception with a reason, and refuses an unused exception', () => {
  const except = { agents: { 'cli/src/verbs': 'the verb is agent' } };
  expect(nounFaults(layersWith({ 'cli/src/verbs': ['agent'] }), except)).toEqual([]);
  expect(nounFaults(layersWith(), except)).toEqual([expect.stringContaining('delete its exception')]);
  expect(nounFaults(layersWith(), { machines: { [routes]: 'old' } })).toEqual([
    expect.stringContaining('machines in orchestrator/src/http/routes is not a noun and a layer'),
  ]);
});

test('refuses a file that is not named after a noun, and an exception for a noun that no longer exists', () => {
  const faults = nounFaults(layersWith({ [pages]: ['agents', 'machines'] }), {});
  expect(faults).toContain(
    `${pages}/machines  has no handlers in ${routes}; rename it, or add it to tools/checks/nouns.ts`,
  );
  const protocol = 'protocol/src/http';
  expect(
    nounFaults(layersWith({ [protocol]: ['agents', 'fields', 'index', 'route', 'tag-descriptions'] }), {}),
  ).toEqual([expect.stringContaining(`${protocol}/event-types does not exist; delete its name`)]);
});
