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

/** A home of its own for one test: nothing of the person who runs the tests is read or written. */
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

/** What fails as such a disk does: the second is this process's memory, which has nothing at its beginning. */
const disks = { 'full disk': '/dev/full', 'broken disk': '/proc/self/mem' };

/**
 * Runs the real program, in one file as people run it, with nobody at a terminal.
 * @param started is handed the process, to send it a signal
 * @param reader `hang up`: goes away after the first piece of output, as `head` does; `full disk` and `broken disk`: take nothing
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
    const child = spawn(process.execPath, [join(inject('bundles'), 'cli.cjs'), ...args], {
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
 * @param terminal makes it one with a person at it, who answers like this; its width in columns
 * @param inputIsTerminal somebody types, and what is said goes elsewhere
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
