import { afterEach, expect, test, vi } from 'vitest';
import { runOffline } from './run.ts';

afterEach(() => vi.restoreAllMocks());

test.each([
  [[], 2, 'usage'],
  [['--data-dir', '/nonexistent', '/nonexistent/file'], 1, 'failed'],
])('with --json an error is JSON, as that of every verb: backup %j', async (args, exit, code) => {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  expect(await runOffline('backup', [...args, '--json'], '/nonexistent')).toBe(exit);
  expect(JSON.parse(said.join(''))).toMatchObject({ error: { code, status: null, errors: [] }, exit });
});
