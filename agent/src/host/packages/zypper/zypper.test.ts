import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { multiversionSpecs } from './zypper.ts';

test('reads from the configuration of which packages libzypp keeps several versions', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-zypp-'));
  mkdirSync(join(directory, 'multiversion.d'));
  writeFileSync(
    join(directory, 'zypp.conf'),
    '[main]\n# multiversion = old\nmultiversion = provides:multiversion(kernel), tool\nmultiversion.kernels = latest\n',
  );
  writeFileSync(join(directory, 'multiversion.d/more'), '# why\n\nother\n');
  expect([...multiversionSpecs([directory, join(directory, 'missing')])]).toEqual([
    'provides:multiversion(kernel)',
    'tool',
    'other',
  ]);
  rmSync(directory, { recursive: true });
});
