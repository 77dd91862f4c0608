import { fork } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { scratchDirectory } from '../run/scratch.ts';
import { usageOf } from '../servers/server-process.ts';
import { nameOfInput } from './name-of-input.ts';
import type { Failure, WorkerMessage, WorkerOrder } from './worker.ts';

/** Flags for a young generation that holds everything one input allocates, so that the allocations can be measured. */
const workerFlags = ['--expose-gc', '--min-semi-space-size=128', '--max-semi-space-size=128'];
const lookMs = 250;

type Bounds = 'seconds' | 'inputs' | 'corpus' | 'patience';

export interface FuzzOptions extends Omit<WorkerOrder, 'current' | Bounds>, Partial<Pick<WorkerOrder, Bounds>> {
  /** Seconds of CPU time after which an input counts as a hang. */
  endlessSecs?: number;
  print?: (text: string) => void;
}

export interface Found extends Failure {
  name: string;
}

/**
 * Runs all targets in sequence, each for a duration or a number of inputs, or until its first failure.
 * @returns the failures: crashes, hangs, and excessive CPU time or memory
 */
export async function runFuzz(options: FuzzOptions): Promise<Found[]> {
  const {
    endlessSecs = 10,
    seconds = Number.MAX_SAFE_INTEGER,
    inputs = Number.MAX_SAFE_INTEGER,
    corpus = null,
    patience = 1,
    print = () => {},
  } = options;
  const folder = scratchDirectory('fuzz');
  const found: Found[] = [];
  let names = [...options.names];
  while (names.length > 0) {
    const current = join(folder, 'input');
    writeFileSync(current, '');
    const child = fork(join(import.meta.dirname, 'worker.ts'), [], { execArgv: workerFlags });
    let running = names[0]!;
    let endless = false;
    // Measures CPU time, because the worker may wait for seconds on a busy machine.
    let worked = { on: '', since: 0 };
    const watch = setInterval(() => {
      try {
        const on = nameOfInput(readFileSync(current));
        const { cpuSecs } = usageOf(child.pid!);
        if (on !== worked.on) worked = { on, since: cpuSecs };
        endless = cpuSecs - worked.since > endlessSecs;
        if (endless) child.kill('SIGKILL');
      } catch {
        // The worker has exited.
      }
    }, lookMs);
    child.on('message', (message: WorkerMessage) => {
      running = message.name;
      if (message.type === 'began') return;
      names = names.filter((name) => name !== message.name);
      running = names[0] ?? '';
      const { name, failure } = message;
      print(
        `${name}: ${message.inputs} inputs, at most ${message.cpuMs.toFixed(0)} ms and ${(message.allocated / 1024 ** 2).toFixed(1)} MiB`,
      );
      if (failure !== null) found.push({ name, ...failure });
    });
    const { module, seed } = options;
    child.send({ module, names, seed, seconds, inputs, corpus, patience, current } satisfies WorkerOrder);
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once('exit', (code, signal) => resolve([code, signal])),
    );
    clearInterval(watch);
    if (names.length === 0) break;
    const reason = endless ? `took more than ${endlessSecs} s of CPU time` : `the process exited (${signal ?? code})`;
    found.push({ name: running, reason, input: readFileSync(current).toString('base64'), seed: null });
    names = names.filter((name) => name !== running);
  }
  return found;
}
