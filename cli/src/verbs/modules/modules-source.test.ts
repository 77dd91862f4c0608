import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError, type Client } from '@muster/protocol/client';
import { moduleLimits, parseModule } from '@muster/protocol/module';
import { expect, onTestFinished, test } from 'vitest';
import { readSource, requiredFirst, suggestModule } from './modules-source.ts';

const stdin = async () => '';

test('reads no more of a file than the size limit requires', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'module.yml');
  writeFileSync(file, 'name: m\n');
  expect(Buffer.from((await readSource({ stdin }, file)).bytes).toString()).toBe('name: m\n');
  truncateSync(file, 32 * moduleLimits.bytes);
  for (const endless of [file, '/dev/zero']) {
    const { bytes } = await readSource({ stdin }, endless);
    expect(bytes.length).toBe(moduleLimits.bytes + 1);
    expect(parseModule(bytes)).toMatchObject({ ok: false, faults: [{ message: 'the module is larger than 2 MiB' }] });
  }
});

test('orders files so that each module comes after the modules that it requires', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = (name: string, content: string): string => {
    writeFileSync(join(directory, name), content);
    return join(directory, name);
  };
  const site = file('a.yml', 'name: site\nrequires: [{ module: nginx }, { module: stored }]\n');
  const faulty = file('b.yml', 'nome: faulty\n');
  const nginx = file('c.yml', 'name: nginx\nrequires: [{ module: base }]\n');
  const again = file('d.yml', 'name: base\n');
  const base = file('e.yml', 'name: base\n');
  const missing = join(directory, 'missing.yml');
  expect(await requiredFirst([site, faulty, '-', missing, nginx, again, base])).toEqual([
    ...[again, nginx, site, faulty, '-', missing, base],
  ]);
});

test('explains how to specify a folder if no stored module has its name', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const call = (async () => [{ name: 'web' }]) as unknown as Client;
  const missing = new ApiError({
    ...{ type: 'about:blank', title: 'Not found', status: 404, code: 'module_not_found', instance: '' },
    detail: 'there is no module',
  });
  const remedy = (name: string) =>
    suggestModule(call, name, missing).catch(({ remedy: shown }: { remedy: string }) => shown);
  expect(await remedy(directory)).toBe(`For the folder of this name, write ./${directory}`);
  expect(await remedy('wep')).toBe('Did you mean web? List the modules: muster modules list');
});
