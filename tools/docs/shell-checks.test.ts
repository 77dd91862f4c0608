import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ModuleDocument, parseModule } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { root } from '../suite/cli.ts';
import { firstRecipes } from './first-recipes.ts';
import { shellChecks } from './shell-checks.ts';

const folder = join(root, 'docs/recipes');
const recipes = readdirSync(folder).filter((name) => name.endsWith('.yml'));

function parsed(source: string): ModuleDocument {
  const result = parseModule(source);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return result.module;
}

test.each(recipes)('finds no command in %s that checks a parameter', (file) => {
  expect(shellChecks(parsed(readFileSync(join(folder, file), 'utf8')))).toEqual([]);
});

test.each(recipes)('finds tests next to %s', (file) => {
  expect(readdirSync(join(folder, 'tests'))).toContain(file);
});

test('finds each check in the recipes of version 0.1', () => {
  expect([...firstRecipes().keys()].map((name) => `${name}.yml`).sort()).toEqual([...recipes].sort());
  const found = [...firstRecipes()].flatMap(([name, source]) =>
    shellChecks(parsed(source)).map((check) => `${name}/${check.split(':')[0]}`),
  );
  expect([...new Set(found)].sort()).toEqual([
    'backup/program',
    'compose-stack/compose',
    'firewall/rules',
    'nginx/site',
    'node-exporter/arguments',
    'postgresql/access',
    'postgresql/settings',
    'unattended-upgrades/keep',
    'unattended-upgrades/policy',
    'users/sshd-config',
    'users/sudoers',
  ]);
});

const resource = (kind: string, fields: Record<string, string>) =>
  parsed(
    JSON.stringify({
      name: 'a',
      supports: [{ platform: 'linux' }],
      parameters: { port: { type: 'integer', default: 1 } },
      resources: [
        {
          id: 'it',
          resource: { [kind]: { ...(kind === 'script' ? { program: 'sh' } : { path: '/a', content: '' }), ...fields } },
        },
      ],
    }),
  );

test.each([
  ['test "$(tr -cd \';\\n\' < % | wc -c)" -eq 2', true],
  ["sh -n % && grep -q '^keep=[1-9]' %", true],
  ['cat % | grep -q x', true],
  ['nginx -t -c %', false],
  ['visudo -cf %', false],
  ['sshd -T | grep -qx "port ${{ param.port }}"', false],
  ['conf=$(mktemp); echo "include "%";" > "$conf"; nginx -t -c "$conf"', false],
])('reads `validate: %s`', (validate, isCheck) => {
  expect(shellChecks(resource('file-unix', { validate }))).toHaveLength(isCheck ? 1 : 0);
});

test.each([
  ['[ ${{ param.port }} -gt 0 ] || exit 1', true],
  ['case "${{ param.port }}" in *) exit 1 ;; esac', true],
  ["if test '${{ param.port }}' = 1; then true; fi", true],
  ['echo ${{ param.port }} | grep -q 1', true],
  ['psql -p ${{ param.port }} -c "SELECT 1"', false],
  ['test -e /srv', false],
])('reads `apply: %s`', (apply, isCheck) => {
  expect(shellChecks(resource('script', { apply, check: 'true' }))).toHaveLength(isCheck ? 1 : 0);
});
