import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test } from 'vitest';
import { sampled } from '../../lib/test/sampled.ts';
import { root } from '../../tools/suite/cli.ts';
import { eventually } from '../eventually.ts';
import { missing } from '../requirements.ts';
import { left, temporary } from './folders.ts';

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** Returns the live descendants of a process, including those in other sessions. */
function below(pid: number): { pid: number; command: string }[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const children = all.filter((name) => statOf(Number(name))?.parent === pid).map(Number);
  return children.flatMap((child) => [{ pid: child, command: commandOf(child) }, ...below(child)]);
}

function statOf(pid: number): { state: string; parent: number; since: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0]!, parent: Number(fields[1]), since: fields[19]! };
  } catch {
    return null;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Starts a bench and waits until its measurement is running. */
async function benchAtWork(folder: string) {
  const bench = spawn('npm', ['run', '--silent', 'bench', '--', 'agent', '--settle', '600', '--files', '0'], {
    cwd: root,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  started.push(bench);
  await new Promise<void>((resolve, reject) => {
    bench.once('exit', (code) => reject(new Error(`the bench exited with code ${code} before its measurement`)));
    createInterface({ input: bench.stdout! }).on('line', (line) => line.startsWith('measured for') && resolve());
  });
  const processes = below(bench.pid!).map((one) => ({ ...one, since: statOf(one.pid)?.since }));
  const of = (part: string) => processes.find(({ command }) => command.includes(part))!.pid;
  expect(processes.filter(({ command }) => command.includes('/orchestrator.cjs'))).toHaveLength(1);
  expect(left(folder)).not.toEqual([]);
  /** Returns the processes that are still running. Ignores processes that reuse one of their PIDs. */
  const running = () =>
    processes.filter(({ pid, since }) => {
      const stat = statOf(pid);
      return stat !== null && stat.since === since && stat.state !== 'Z';
    });
  return {
    npm: bench.pid!,
    launcher: of('bench/src/main.ts'),
    bench: of('bench/src/agent.ts'),
    async ended() {
      await eventually(
        'all processes of the bench have ended',
        async () => (running().length === 0 ? true : null),
        60_000,
      ).catch((error: Error) => {
        throw new Error(`${error.message}; still running: ${running().map(({ command }) => command)}`);
      });
    },
  };
}

const ends = [
  ['SIGTERM to npm', 'npm', 'SIGTERM'],
  ['SIGINT to the bench', 'bench', 'SIGINT'],
  ['SIGKILL to its launcher', 'launcher', 'SIGKILL'],
  ['SIGKILL to npm', 'npm', 'SIGKILL'],
] as const;

describe.skipIf(missing('linux') !== null)('a bench that is ended during its measurement', () => {
  test.each(sampled(ends, 1))('a bench leaves no process and no file behind after %s', async (_, whom, signal) => {
    const folder = temporary();
    const bench = await benchAtWork(folder);
    process.kill(bench[whom], signal);
    await bench.ended();
    expect(left(folder)).toEqual([]);
  });

  test('a killed bench leaves no process behind, and the next run removes its files', async () => {
    const folder = temporary();
    const bench = await benchAtWork(folder);
    process.kill(bench.bench, 'SIGKILL');
    await bench.ended();
    const next = spawnSync(process.execPath, ['bench/src/writes.ts', '--smoke'], {
      ...{ cwd: root, encoding: 'utf8', env: { ...process.env, TMPDIR: folder } },
    });
    expect(next.status, next.stderr).toBe(0);
    expect(left(folder)).toEqual([]);
  });
});
