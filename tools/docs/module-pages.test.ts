import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseModule, resolveDesiredSet } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { root } from '../suite/cli.ts';
import { blocksOf } from './markdown.ts';

/** Pages whose modules must resolve, with their minimum number of modules. */
const pages = { 'docs/coming-from.md': 26, 'docs/rewriting-a-role.md': 6 };

const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const yamlOf = (page: string): string[] =>
  blocksOf(read(page)).flatMap(({ language, source }) => (/^yaml\b/.test(language) ? [source] : []));
const modulesOf = (page: string): string[] => yamlOf(page).filter((source) => /^name: /m.test(source));

/** Upload warnings that the pages explain. */
const explained = ['declares no content, so a missing file is created empty'];

function parsed(source: string) {
  const result = parseModule(source);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  const unexplained = result.warnings.filter(({ message }) => !explained.some((text) => message.startsWith(text)));
  expect(unexplained).toEqual([]);
  return result.module;
}

function resourcesOf(page: string, source: string, family: string) {
  const attributes = {
    platform: 'linux',
    distro: 'debian',
    family,
    version: '12',
    major: '12',
    init_system: 'systemd',
    selinux: 'enforcing',
  };
  const agent = { name: 'web-1', node_id: 'a'.repeat(32), attributes, tags: {} };
  const lookups = { 'idiom-values': { databases: ['192.0.2.7'], nodes: [{ name: 'web-1', address: '192.0.2.8' }] } };
  const module = parsed(source);
  const required = modulesOf(page)
    .map(parsed)
    .filter(({ name }) => module.requires.some((one) => one.module === name));
  return resolveDesiredSet({ modules: [...required, module], agent, lookups });
}

describe.each(Object.entries(pages))('the modules of %s', (page, least) => {
  test('finds the expected number of modules on the page', () =>
    expect(modulesOf(page).length).toBeGreaterThanOrEqual(least));

  test.each(modulesOf(page).map((source, index) => ({ source, number: index + 1 })))(
    'resolves module $number on each family that it supports',
    ({ source }) => {
      const families = parsed(source).supports.flatMap(({ family }) => family?.in ?? ['debian', 'redhat']);
      for (const family of families) expect(resourcesOf(page, source, family), family).toMatchObject({ ok: true });
    },
  );
});

describe('docs/rewriting-a-role.md', () => {
  const page = 'docs/rewriting-a-role.md';

  test('ends with the module and the tests in examples/roles', () => {
    expect(modulesOf(page).at(-1)).toBe(read('examples/roles/fail2ban.yml'));
    expect(yamlOf(page).at(-1)).toBe(read('examples/roles/tests/fail2ban.yml'));
  });

  test('assembles the whole module from its steps', () => {
    const whole = new Map(
      parsed(modulesOf(page).at(-1) as string).resources.map((resource) => [resource.id, resource]),
    );
    for (const step of modulesOf(page))
      for (const { id, variants } of parsed(step).resources)
        expect(whole.get(id)?.variants.map(({ resource }) => resource?.type)).toEqual(
          variants.map(({ resource }) => resource?.type),
        );
  });
});
