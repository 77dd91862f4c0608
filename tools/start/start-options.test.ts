import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readStartOptions, StartUsageError, startHelp } from './start-options.ts';

test('prefers flags to environment variables, and environment variables to defaults', () => {
  expect(readStartOptions([], {})).toEqual({
    apiPort: 4748,
    agentHost: '127.0.0.1',
    agentPort: 4747,
    dataDir: 'data',
    name: null,
  });
  const env = { MUSTER_API_PORT: '5000', MUSTER_AGENT_PORT: '' };
  expect(readStartOptions([], { MUSTER_AGENT_HOST: '::' })?.agentHost).toBe('::');
  expect(readStartOptions([], env)).toMatchObject({ apiPort: 5000, agentPort: 4747 });
  expect(readStartOptions(['--api-port', '0', '--data-dir=/x', '--name', 'a'], env)).toEqual({
    apiPort: 0,
    agentHost: '127.0.0.1',
    agentPort: 4747,
    dataDir: '/x',
    name: 'a',
  });
});

test('refuses an invalid value, and names its flag in the error', () => {
  expect(() => readStartOptions(['--api-port', '70000'], {})).toThrow('--api-port is "70000"');
  expect(() => readStartOptions([], { MUSTER_AGENT_PORT: 'x' })).toThrow('--agent-port is "x"');
  expect(() => readStartOptions(['--api-prot', '1'], {})).toThrow('did you mean "api-port"? See: npm start -- --help');
  expect(() => readStartOptions(['--data-dir', ''], {})).toThrow('--data-dir is empty');
  expect(() => readStartOptions(['foo'], {})).toThrow(StartUsageError);
  expect(() => readStartOptions(['extra'], {})).toThrow('extra');
});

test('lists every flag in the help', () => {
  expect(readStartOptions(['--help'], {})).toBeNull();
  for (const flag of ['--api-port', '--agent-port', '--data-dir', '--name', '--agent-host'])
    expect(startHelp).toContain(flag);
});

test('prints the help without needing or installing packages', () => {
  const clone = mkdtempSync(join(tmpdir(), 'muster-help-'));
  mkdirSync(join(clone, 'tools/start'), { recursive: true });
  for (const name of ['start.sh', 'start-help.txt'])
    copyFileSync(join(import.meta.dirname, name), join(clone, 'tools/start', name));
  const { status, stdout } = spawnSync('sh', [join(clone, 'tools/start/start.sh'), '--help'], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: startHelp });
  expect(readdirSync(clone)).toEqual(['tools']);
  rmSync(clone, { recursive: true });
});
