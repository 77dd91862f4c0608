import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { spawn } from '@lydell/node-pty';
import { expect } from 'vitest';
import { musterHere } from '../cli/test/process.ts';
import { eventually } from './eventually.ts';
import type { Orchestrator, Stage } from './stage.ts';

/** A terminal in which a shell runs one line, and to which a test can type. */
export class Person {
  readonly #terminal;
  /** All of the terminal's output. */
  shown = '';
  #seen = 0;

  constructor(stage: Stage, line: string, env: NodeJS.ProcessEnv) {
    // Removes CI, because programs are not interactive on a build server.
    const clean = stringsOf({ ...stage.environment(env), TERM: 'xterm-256color', CI: undefined });
    // The shell waits at the end, because node-pty discards output that it has not read 200 ms after the shell has exited.
    this.#terminal = spawn('/bin/sh', ['-c', `${line}\nread -r _`], {
      cols: 90,
      rows: 30,
      env: clean,
    });
    this.#terminal.onData((text) => {
      this.shown += text;
    });
  }

  type(text: string): void {
    this.#terminal.write(text);
  }

  resize(cols: number, rows: number): void {
    this.#terminal.resize(cols, rows);
  }

  /** Waits for text that follows the text of the previous call. */
  async sees(text: string): Promise<void> {
    await eventually(`the terminal shows ${JSON.stringify(text)}`, async () => {
      const at = this.shown.indexOf(text, this.#seen);
      if (at < 0)
        throw new Error(`the last output is ${JSON.stringify(stripVTControlCharacters(this.shown).slice(-1000))}`);
      this.#seen = at + text.length;
      return true;
    });
  }

  kill(): void {
    this.#terminal.kill('SIGKILL');
  }
}

/** Returns an environment in which the CLI acts as the first admin of an orchestrator. */
export function operatorEnvironment(
  stage: Stage,
  orchestrator: Orchestrator,
  port = orchestrator.apiPort,
): NodeJS.ProcessEnv {
  const key = join(stage.folder('keys'), 'operator.key');
  writeFileSync(key, orchestrator.operator.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  const certificate = new X509Certificate(readFileSync(join(orchestrator.dataDir, 'api.crt')));
  return {
    MUSTER_URL: `https://127.0.0.1:${port}`,
    MUSTER_KEY_FILE: key,
    MUSTER_FINGERPRINT: certificate.fingerprint256,
  };
}

/**
 * Returns two functions that run the CLI as the first admin: `run` returns the exit code and the output, `muster` fails the
 * test unless the command succeeds, and returns the output.
 */
export function musterAt(stage: Stage, orchestrator: Orchestrator) {
  const env = stringsOf(stage.environment(operatorEnvironment(stage, orchestrator)));
  const run = (...args: string[]) => musterHere(args, env);
  const muster = async (...args: string[]): Promise<string> => {
    const ran = await run(...args);
    expect(ran.exit, `muster ${args.join(' ')}\n${ran.stderr}${ran.stdout}`).toBe(0);
    return ran.stdout;
  };
  return { run, muster };
}

/** Returns the environment without undefined values. */
const stringsOf = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((each): each is [string, string] => each[1] !== undefined));
