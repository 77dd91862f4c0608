import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseModule } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { muster, root } from '../suite/cli.ts';

const folder = join(root, 'examples/sites');
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const sites = readdirSync(folder).filter((name) => !name.endsWith('.md'));
const modules = sites.flatMap((site) => readdirSync(join(folder, site, 'modules')).map((name) => ({ site, name })));

test('lists every site and every module on a page', () => {
  for (const site of sites) expect(read('README.md')).toContain(`](${site}/README.md)`);
  for (const { site, name } of modules) expect(read(`${site}/README.md`)).toContain(`](modules/${name}/module.yml)`);
});

test.each(modules)('accepts $site/$name without a warning, and describes its parameters', ({ site, name }) => {
  const path = `${site}/modules/${name}`;
  const names = existsSync(join(folder, path, 'files')) ? readdirSync(join(folder, path, 'files')) : [];
  const files = names.map((file) => ({ path: `files/${file}`, sha256: '', size: 1, executable: false }));
  const parsed = parseModule(read(`${path}/module.yml`), {
    files: new Map(files.map((file) => [file.path, file])),
    textOf: (file) => read(`${path}/${file}`),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  expect(parsed.warnings).toEqual([]);
  expect(parsed.module.name).toBe(name);
  for (const [parameter, { description }] of Object.entries(parsed.module.parameters))
    expect(description, parameter).toMatch(/^\S.*[^.]$/);
});

test.each([['test'], ['check']])('`muster modules %s` finds no error in the sites', (verb) => {
  for (const site of sites) {
    const { status, stdout, stderr } = spawnSync(muster, ['modules', verb, join(folder, site)], { encoding: 'utf8' });
    expect(status, stdout + stderr).toBe(0);
  }
});
