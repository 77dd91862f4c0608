import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-bundle-'));
  writeFileSync(
    join(home, 'report.cjs'),
    `const rest = () => Object.keys(require.cache).some((file) => file.endsWith('/cli-rest.cjs'));
     process.on('exit', () => process.stderr.write(\`\\nschemas: \${'__zod_globalConfig' in globalThis}, rest: \${rest()}\`));`,
  );
});
afterAll(() => rmSync(home, { recursive: true }));

const start = (words: string) =>
  spawnSync(
    process.execPath,
    ['--require', join(home, 'report.cjs'), join(inject('bundles'), 'cli.cjs'), ...words.split(' ')],
    {
      encoding: 'utf8',
      env: { HOME: home },
    },
  );

test.each(['status --url http://127.0.0.1:9', 'agents --help', 'apply --help', 'operations --help', 'drift --help'])(
  'loads neither schemas nor the rest of the program for `muster %s`',
  (words) => {
    const { stderr, stdout, status } = start(words);
    expect(stdout + stderr).toContain(status === 0 ? 'Usage: muster' : 'no orchestrator answers');
    expect(stderr).toMatch(/\nschemas: false, rest: false$/);
  },
);

test('loads the schemas for `muster schema`', () => {
  expect(start('schema status')).toMatchObject({ status: 0, stdout: expect.stringContaining('"protocol_version"') });
  expect(start('schema status').stderr).toMatch(/\nschemas: true, rest: true$/);
});
