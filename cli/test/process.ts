import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { inject } from 'vitest';
import type { Prompter } from '../src/keys/prompt.ts';
import { runProgram } from '../src/program/program.ts';
import { openLocalTerminal } from '../src/terminal/local-terminal.ts';
import { checkShape } from './shape-check.ts';

export interface Ran {
  exit: number | null;
  stdout: string;
  stderr: string;
}

/** Creates a home directory for one test, so that the test does not touch the developer's files. */
export async function makeHome(): Promise<{ path: string; env: Record<string, string>; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'muster-cli-'));
  const env = {
    HOME: path,
    XDG_CONFIG_HOME: join(path, 'config'),
    XDG_CACHE_HOME: join(path, 'cache'),
    PATH: process.env.PATH ?? '',
  };
  return { path, env, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Files whose writes fail, as on a full or broken disk. The second one is the memory of this process, which has no page
 * mapped at address 0.
 */
const disks = { 'full disk': '/dev/full', 'broken disk': '/proc/self/mem' };

/**
 * Runs the real program as one bundled file, without a terminal.
 * @param started called with the process, so that the test can send a signal
 * @param reader `hang up` closes the pipe after the first chunk of output, as `head` does; `full disk` and `broken
 *   disk` make writes fail
 */
export function muster(
  args: readonly string[],
  env: Record<string, string>,
  input = '',
  reader: 'stays' | 'hang up' | keyof typeof disks = 'stays',
  started: (child: ChildProcess) => void = () => {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const disk = reader === 'stays' || reader === 'hang up' ? null : openSync(disks[reader], constants.O_WRONLY);
    const child = spawn(process.execPath, [join(inject('bundles'), 'cli-cached.cjs'), ...args], {
      env,
      stdio: ['pipe', disk ?? 'pipe', 'pipe'],
    });
    if (disk !== null) closeSync(disk);
    started(child);
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      stdout += piece;
      if (reader === 'hang up') child.stdout?.destroy();
    });
    child.stderr?.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
    child.on('error', reject);
    child.on('close', (exit) => {
      const ran = { exit, stdout, stderr };
      if (reader !== 'stays') resolve(ran);
      else checkShape(args, ran).then(() => resolve(ran), reject);
    });
    child.stdin?.end(input);
  });
}

/**
 * Runs the program in this process.
 * @param terminal simulates a terminal of this width that answers questions
 * @param inputIsTerminal simulates a terminal only for the input
 */
export async function musterHere(
  args: readonly string[],
  env: Record<string, string>,
  input = '',
  terminal?: { columns: number; prompt: Prompter },
  inputIsTerminal = false,
): Promise<Ran> {
  const stdout = collector(terminal?.columns);
  const stderr = collector(terminal?.columns);
  const exit = await runProgram(args, {
    env,
    stdin: Object.assign(
      Readable.from(input === '' ? [] : [Buffer.from(input)]),
      inputIsTerminal ? { isTTY: true } : {},
    ),
    stdout: stdout.stream,
    stderr: stderr.stream,
    ...(terminal ? { prompt: terminal.prompt } : {}),
    now: () => Date.now() / 1000,
    sleep: async () => {},
    terminal: async () => openLocalTerminal(process),
    onInterrupt: () => () => {},
    onEnd: () => () => {},
  });
  const ran = { exit, stdout: stdout.text(), stderr: stderr.text() };
  await checkShape(args, ran);
  return ran;
}

function collector(columns: number | undefined) {
  const stream = new PassThrough();
  let text = '';
  stream.setEncoding('utf8');
  stream.write = ((piece: string | Uint8Array) => {
    text += typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
    return true;
  }) as typeof stream.write;
  return {
    stream: Object.assign(stream, columns === undefined ? {} : { isTTY: true, columns }),
    text: () => text,
  };
}
