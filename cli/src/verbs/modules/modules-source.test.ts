import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { moduleLimits, parseModule } from '@muster/protocol/module';
import { expect, onTestFinished, test } from 'vitest';
import { readSource } from './modules-source.ts';

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
