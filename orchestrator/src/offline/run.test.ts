import { afterEach, expect, test, vi } from 'vitest';
import { offlineCommands } from './commands.ts';
import { runOffline } from './run.ts';

afterEach(() => vi.restoreAllMocks());

test.each([
  [[], 2, 'usage'],
  [['--data-dir', '/nonexistent', '/nonexistent/file'], 1, 'failed'],
])('prints errors as JSON with --json for the arguments backup %j', async (args, exit, code) => {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  expect(await runOffline('backup', [...args, '--json'], '/nonexistent')).toBe(exit);
  expect(JSON.parse(said.join(''))).toMatchObject({ error: { code, status: null, errors: [] }, exit });
});

test.each([[[]], [['--json']]])('prints no control characters for the arguments backup %j', async (more) => {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const file = '/nonexistent/\u009b2J\u001b[2J\u202e';
  expect(await runOffline('backup', ['--data-dir', file, file, ...more], '/nonexistent')).toBe(1);
  expect(said.join('')).toContain('/nonexistent/');
  expect(said.join('')).not.toMatch(/[\u001b\u009b\u202e]/);
});

test.each(
  Object.keys(offlineCommands).flatMap((command) => [
    [command, []],
    [command, ['--json']],
  ]) as [string, string[]][],
)('escapes control characters in names: %s %j', async (command, more) => {
  const said: string[] = [];
  for (const stream of [process.stderr, process.stdout])
    vi.spyOn(stream, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const path = '/nonexistent/\u009b2J\u001b[2J\u202e\u2028\u0007\nFORGED';
  const [verb = '', ...rest] = command.split(' ');
  const words = (offlineCommands[command]?.words ?? []).map(() => path);
  await runOffline(verb, [...rest, '--data-dir', path, ...words, ...more], '/nonexistent');
  expect(said.join('')).not.toBe('');
  expect(said.join('')).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e]|^FORGED/m);
});
