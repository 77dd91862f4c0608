import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseModule, resolveDesiredSet } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { root } from '../suite/cli.ts';

const folder = join(root, 'examples/roles');
const files = readdirSync(folder).filter((name) => name.endsWith('.yml'));
const readme = readFileSync(join(folder, 'README.md'), 'utf8');
/** Upload warnings that a module causes intentionally. */
const intended = ['declares no content, so a missing file is created empty'];

test('rewrites at least ten roles by different authors', () => {
  expect(files.length).toBeGreaterThanOrEqual(10);
  expect(
    new Set([...readme.matchAll(/https:\/\/github\.com\/([^/]+)\//g)].map(([, owner]) => owner)).size,
  ).toBeGreaterThan(9);
});

test.each(files)('resolves %s with defaults on every family that it supports, and describes its parameters', (file) => {
  const parsed = parseModule(readFileSync(join(folder, file), 'utf8'));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const { module, warnings } = parsed;
  expect(warnings.filter(({ message }) => !intended.some((text) => message.startsWith(text)))).toEqual([]);
  expect(module.name).toBe(file.replace('.yml', ''));
  for (const [name, { description }] of Object.entries(module.parameters))
    expect(description, name).toMatch(/^\S.*[^.]$/);
  const families = ['debian', 'redhat', 'suse', 'arch'].filter((family) =>
    module.supports.every(({ family: { in: known = [family] } = { in: [family] } }) => known.includes(family)),
  );
  expect(families.length).toBeGreaterThan(0);
  for (const family of families) {
    const attributes = {
      platform: 'linux',
      distro: 'debian',
      family,
      major: '12',
      version: '12',
      codename: 'bookworm',
      hostname: 'web-1',
      kernel: '6.1.0-22-amd64',
    };
    const agent = {
      name: 'web-1',
      node_id: 'a'.repeat(32),
      attributes: { ...attributes, init_system: 'systemd' },
      tags: {},
    };
    const lookups = { [module.name]: Object.fromEntries(Object.keys(module.lookups).map((name) => [name, []])) };
    expect(resolveDesiredSet({ modules: [module], agent, lookups }), family).toMatchObject({ ok: true });
  }
});

/** The numbers of a table row: all tasks, and those replaced fully, partly, by script, and not at all. */
const numbersOf = (row: string) => row.split('|').slice(3, -1).map(Number);

test('carries at least 84 % of the tasks fully, and states the totals of the table', () => {
  const rows = readme
    .split('\n')
    .filter((line) => line.startsWith('| ['))
    .map(numbersOf);
  expect(rows).toHaveLength(files.length);
  const [tasks = 0, fully = 0, partly, script, none] = rows.reduce((sums, row) =>
    sums.map((sum, i) => sum + (row[i] ?? 0)),
  );
  expect(fully / tasks).toBeGreaterThanOrEqual(0.84);
  expect(readme).toContain(
    `The modules carry ${fully} of the ${tasks} tasks fully (${((100 * fully) / tasks).toFixed(1)} %). They replace ${partly} others partly, and ${script} with scripts; ${none} have no counterpart.`,
  );
});

test.each(files)('finds a table row for %s, in which the numbers of tasks add up', (file) => {
  const row = readme.split('\n').find((line) => line.startsWith(`| [${file.replace('.yml', '')}](${file}) |`)) ?? '';
  expect(row).toMatch(/https:\/\/github\.com\/[^ )]+/);
  const [tasks, ...carried] = numbersOf(row);
  expect(carried).toHaveLength(4);
  expect(carried.reduce((sum, count) => sum + count, 0)).toBe(tasks);
  expect(readme).toContain(`- **${file.replace('.yml', '')}** — `);
});
