import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { installFolder } from './folder.ts';

/** These tests run the script with fake programs that record how they are called. */
let folder = '';
let script = '';
const bin = () => join(folder, 'bin');

/** Creates a program from shell text. `$LOG` is the file to which it writes its calls. */
function program(name: string, text: string): void {
  writeFileSync(join(bin(), name), `#!/bin/sh\necho "${name} $*" >> "$LOG"\n${text}\n`, { mode: 0o755 });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-script-'));
  mkdirSync(bin());
  const files = ['muster_1.2.3_amd64.deb', 'muster-agent_1.2.3_all.deb', 'muster'];
  for (const name of files) writeFileSync(join(folder, name), name);
  const [first = '', second = '', executable = ''] = files.map((name) => join(folder, name));
  const made = installFolder('1.2.3', executable, [first, second]).files['agent.sh'];
  script = made !== undefined && 'content' in made ? made.content : '';
  // Stubs commands so that the script behaves as if it ran as root on a machine with systemd and dpkg. Downloads come
  // from the folder.
  program('id', 'echo 0');
  program('uname', '[ "$1" = -s ] && echo Linux || echo "${MACHINE:-x86_64}"');
  program('sleep', '');
  program(
    'dpkg',
    '[ -z "${LOCKED:-}" ] || [ -e "$LOG.tried" ] || { : > "$LOG.tried"; echo "dpkg frontend lock was locked" >&2; exit 2; }',
  );
  program('systemctl', '');
  // The script looks for a file that does not exist on this machine. No other call has this argument.
  program('grep', 'case "$*" in *orchestrator.json) [ -z "${SAYS:-}" ]; exit ;; esac; exec /bin/grep "$@"');
  program('journalctl', '[ -z "${SAYS:-}" ] || echo "$SAYS"');
  program(
    'curl',
    'while [ $# -gt 1 ]; do if [ "$1" = -o ]; then out=$2; fi; shift; done; cp "$SERVED/${1##*/}" "$out"',
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the script, or only its first `bytes` bytes. */
function run(
  args: readonly string[],
  {
    env = {},
    bytes = Number.POSITIVE_INFINITY,
    shell = 'sh',
  }: { env?: Record<string, string>; bytes?: number; shell?: string } = {},
) {
  const log = join(folder, 'log');
  for (const path of [log, `${log}.tried`]) rmSync(path, { force: true });
  const text = script
    .replace('/run/systemd/system', folder)
    .replaceAll('muster=/usr/bin/muster', `muster=${join(bin(), 'muster')}`)
    .replaceAll('/var/lib/muster-agent', folder);
  program('muster', `cat >> "$LOG"; echo new > ${join(folder, 'orchestrator.json')}; exit "\${REFUSED:-0}"`);
  const { status, stdout, stderr } = spawnSync(shell, ['-s', '--', ...args], {
    input: text.slice(0, bytes),
    env: { PATH: `${bin()}:/usr/bin:/bin`, LOG: log, SERVED: folder, MUSTER_TOKEN: 'mt_secret', ...env },
    encoding: 'utf8',
  });
  return { status, shown: stdout + stderr, called: existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [] };
}

const key = 'ab'.repeat(32);
const defaults = ['--from', 'https://m.example:4748', '--pin', 'sha256//x=', '--to', 'm.example:4747', '--key', key];

describe('the installation script of the agent', () => {
  test('downloads with the pinned key, verifies, installs, and hides the token', () => {
    const { status, shown, called } = run(defaults);
    expect({ status, shown }).toMatchObject({ status: 0, shown: expect.stringContaining('the agent is connected') });
    const fetched = called.filter((line) => line.startsWith('curl'));
    expect(fetched).toHaveLength(2);
    for (const line of fetched) expect(line).toContain('-fsSk --pinnedpubkey sha256//x= ');
    expect(called.find((line) => line.startsWith('dpkg'))).toMatch(
      /muster_1\.2\.3_amd64\.deb \S+muster-agent_1\.2\.3_all\.deb$/,
    );
    const connectCall = called.indexOf(
      `muster agent connect m.example:4747 --orchestrator-key ${key} --token - --save`,
    );
    expect(called[connectCall + 1]).toBe('mt_secret');
    expect(called.filter((line) => line.includes('mt_secret'))).toEqual(['mt_secret']);
    expect(called.indexOf('systemctl stop muster-agent')).toBeLessThan(connectCall);
    expect(called.lastIndexOf('systemctl restart muster-agent')).toBeGreaterThan(connectCall);
  });

  test('verifies certificates without a pin, and does not wait for approval', () => {
    const { shown, called } = run(['--from', 'https://m.example', '--to', 'm:4747', '--key', key, '--wait', 'no']);
    expect(shown).toContain('waits for approval');
    for (const line of called.filter((each) => each.startsWith('curl'))) expect(line).not.toMatch(/-\w*k|pinned/);
  });

  test('refuses to install a file with a wrong checksum', () => {
    const other = mkdtempSync(join(tmpdir(), 'muster-script-'));
    for (const name of ['muster_1.2.3_amd64.deb', 'muster-agent_1.2.3_all.deb'])
      writeFileSync(join(other, name), 'evil');
    const { status, shown, called } = run(defaults, { env: { SERVED: other } });
    expect({ status, shown }).toMatchObject({ status: 1, shown: expect.stringContaining('has a wrong checksum') });
    expect(called.some((line) => /^(dpkg|systemctl|muster)/.test(line))).toBe(false);
    rmSync(other, { recursive: true });
  });

  test('restores the previous orchestrator if the agent cannot be configured or is refused', () => {
    const known = join(folder, 'orchestrator.json');
    const grep = readFileSync(join(bin(), 'grep'), 'utf8');
    const failures = [
      { env: { REFUSED: '2' }, status: 2 },
      { letIn: 'exit 1', status: 1 },
    ];
    for (const { env = {}, letIn, status } of failures) {
      writeFileSync(known, 'old');
      if (letIn !== undefined) program('grep', letIn);
      const result = run(defaults, { env });
      expect(result).toMatchObject({
        status,
        shown: expect.stringContaining('running again with its former orchestrator'),
      });
      expect(readFileSync(known, 'utf8')).toBe('old');
      expect(result.called.filter((line) => line.startsWith('systemctl')).at(-1)).toBe('systemctl start muster-agent');
    }
    writeFileSync(join(bin(), 'grep'), grep);
    expect(run(defaults).status).toBe(0);
    expect(readFileSync(known, 'utf8')).toBe('new\n');
    expect(existsSync(`${known}.former`)).toBe(false);
    rmSync(known);
  });

  test('waits while another program installs packages', () => {
    expect(run(defaults, { env: { LOCKED: '1' } })).toMatchObject({
      status: 0,
      shown: expect.stringContaining('waiting until it has finished'),
    });
  });

  test('reports a used token immediately, and a missing connection after a timeout', () => {
    const refused = run(defaults, {
      env: { SAYS: 'ERROR the orchestrator refused this agent code=token_invalid reason="x"' },
    });
    expect(refused).toMatchObject({
      status: 1,
      shown: expect.stringContaining('new command on the orchestrator with: muster agents enroll'),
    });
    expect(refused.called.filter((line) => line.startsWith('sleep'))).toEqual([]);
    const silent = run(defaults, { env: { SAYS: 'INFO not connected reason="connect ECONNREFUSED"' } });
    expect(silent).toMatchObject({ status: 1, shown: expect.stringMatching(/ECONNREFUSED[\s\S]*can reach that port/) });
    expect(silent.called.filter((line) => line.startsWith('sleep'))).toHaveLength(60);
  });

  test.each([
    [[], {}, 'usage'],
    [defaults.slice(0, -2), {}, 'usage'],
    [[...defaults, '--more'], {}, 'usage'],
    [[...defaults, '--more', 'x'], {}, 'usage'],
    [['--from', 'ftp://x', ...defaults.slice(2)], {}, 'usage'],
    [defaults, { MUSTER_TOKEN: '' }, 'usage'],
    [defaults, { MACHINE: 'riscv64' }, 'no agent for riscv64 processors'],
  ] as [string[], Record<string, string>, string][])(
    'changes nothing with the arguments %j and the environment %j',
    (args, env, words) => {
      const { status, shown, called } = run(args, { env });
      expect({ status, shown }).toMatchObject({ status: 1, shown: expect.stringContaining(words) });
      expect(called.some((line) => /^(curl|dpkg|systemctl|muster)/.test(line))).toBe(false);
    },
  );

  test('does nothing if the downloaded script is incomplete', () => {
    for (const bytes of [500, 1500, 3000, 5000, script.length - 12]) {
      const { called } = run(defaults, { bytes });
      expect(called.filter((line) => line !== '')).toEqual([]);
    }
  });
});
