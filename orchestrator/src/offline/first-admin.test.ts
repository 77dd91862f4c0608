import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { initOrchestrator, type Machine } from './first-admin.ts';

const key = 'AB'.repeat(32);
const packaged = '# What it is.\n\n#advertised_host: muster.example\napi_host: 0.0.0.0\n# The end.\n';
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-init-'));
  writeFileSync(join(folder, 'orchestrator.yml'), packaged, { mode: 0o640 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const file = () => join(folder, 'orchestrator.yml');

/** Runs the command against a simulated service that reports this status. */
async function run(status: string, ...args: string[]) {
  const requested: string[] = [];
  const said: string[] = [];
  const machine: Machine = {
    systemctl: async (...words) => {
      requested.push(words.join(' '));
      return words[0] === 'show' ? `${status}\n` : '';
    },
    stdout: (text) => void said.push(text),
    stderr: (text) => void said.push(text),
  };
  const exit = await initOrchestrator([...args, '--config', file(), '--data-dir', folder], machine);
  return { exit, said: said.join(''), requested };
}

const ready = 'API at https://127.0.0.1:4749, agents on port 4747';

describe('muster orchestrator init', () => {
  test('writes the operator key to the configuration, keeps other settings, and prints the next steps', async () => {
    const ran = await run(
      `${ready}; created first operator ada`,
      '--operator-key',
      key,
      '--username',
      'ada',
      '--advertised-host',
      'm.example',
    );
    expect(ran).toMatchObject({ exit: 0, requested: ['restart muster-orchestrator', expect.stringContaining('show')] });
    const text = readFileSync(file(), 'utf8');
    expect(parse(text)).toEqual({
      api_host: '0.0.0.0',
      bootstrap_key: key.toLowerCase(),
      bootstrap_username: 'ada',
      advertised_host: 'm.example',
    });
    for (const comment of ['# What it is.', '#advertised_host: muster.example', '# The end.'])
      expect(text).toContain(comment);
    expect(statSync(file()).mode & 0o777).toBe(0o640);
    expect(readdirSync(folder)).toEqual(['orchestrator.yml']);
    expect(ran.said).toContain('muster login --url https://m.example:4749');
  });

  test('adds settings to a file with only comments, and replaces only the operator name when run again', async () => {
    writeFileSync(file(), '# nothing\n');
    for (const name of ['ada', 'bob'])
      await run(`${ready}; created first operator ${name}`, '--operator-key', key, '--username', name);
    expect(parse(readFileSync(file(), 'utf8'))).toEqual({
      bootstrap_key: key.toLowerCase(),
      bootstrap_username: 'bob',
    });
  });

  test('restores the configuration, and fails if an admin exists', async () => {
    const { exit, said, requested } = await run(ready, '--operator-key', key, '--username', 'ada');
    expect(exit).toBe(1);
    expect(said).toContain('already has its first admin');
    expect(readFileSync(file(), 'utf8')).toBe(packaged);
    expect(requested.filter((what) => what.startsWith('restart'))).toHaveLength(2);
  });

  test.each([
    [['--username', 'ada'], 2, '--operator-key must be 64'],
    [['--operator-key', 'xyz', '--username', 'ada'], 2, '--operator-key must be 64'],
    [['--operator-key', key], 2, '--username is required'],
    [['--operator-key', key, '--username', 'a', '--advertised-host', 'a b'], 2, '--advertised-host must be'],
    [['--nonsense'], 2, '--nonsense'],
  ])('refuses the arguments %j, and changes nothing', async (args, code, words) => {
    const { exit, said, requested } = await run(ready, ...args);
    expect({ exit, requested }).toEqual({ exit: code, requested: [] });
    expect(said).toContain(words);
    expect(readFileSync(file(), 'utf8')).toBe(packaged);
  });

  test('does not change a configuration file that cannot be parsed, and suggests a fix for a missing file', async () => {
    writeFileSync(file(), 'a: [\n');
    expect(await run(ready, '--operator-key', key, '--username', 'ada')).toMatchObject({ exit: 1, requested: [] });
    expect(readFileSync(file(), 'utf8')).toBe('a: [\n');
    rmSync(file());
    const { said } = await run(ready, '--operator-key', key, '--username', 'ada');
    expect(said).toContain('is the package muster-orchestrator installed?');
  });
});
