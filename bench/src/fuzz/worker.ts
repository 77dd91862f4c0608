// A process that runs the targets in turn with inputs near their examples and corpus. The parent kills it when an input
// hangs; the current input is in a file.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import fc from 'fast-check';
import { inputsNear } from './inputs.ts';
import { type FuzzTarget, mostAllocatedBytes } from './target.ts';

export interface WorkerOrder {
  /** A module in this folder that exports `targets`. */
  module: string;
  names: string[];
  seed: number;
  /** Seconds and number of inputs for each target: the first limit that is reached ends it. */
  seconds: number;
  inputs: number;
  /** Folders of kept inputs, by target. */
  corpus: string | null;
  /** Factor on the processor-time bound of the target. */
  patience: number;
  /** File with the current input. */
  current: string;
}

export type WorkerNews =
  | { type: 'began'; name: string }
  | { type: 'done'; name: string; inputs: number; cpuMs: number; allocated: number; failure: Failure | null };

export interface Failure {
  reason: string;
  /** The input in base64. */
  input: string;
  /** Null: the input is from the corpus. */
  seed: number | null;
}

const inputsOfCheck = 200;
/** Size of the young generation before an automatic collection, minus the maximum allocation of one input. */
const youngBytes = 48 * 1024 * 1024;

const used = () => {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
};
const youngUsed = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.space_used_size;

interface Cost {
  cpuMs: number;
  allocated: number;
}

async function costOf(target: FuzzTarget, input: Uint8Array): Promise<Cost> {
  if (youngUsed() > youngBytes) globalThis.gc!({ type: 'minor' } as never);
  const usedBefore = used();
  const before = process.threadCpuUsage();
  await target.run(input);
  const { user, system } = process.threadCpuUsage(before);
  return { cpuMs: (user + system) / 1000, allocated: Math.max(0, used() - usedBefore) };
}

/** Compilation and a full collection may occur during any input, so the lowest cost of a few attempts counts. */
const attempts = 4;

/** @throws the fault that this input shows in the target */
async function judge(target: FuzzTarget, input: Uint8Array, patience: number): Promise<Cost> {
  let least: Cost = { cpuMs: Number.POSITIVE_INFINITY, allocated: Number.POSITIVE_INFINITY };
  const most = target.allocatedBytes ?? mostAllocatedBytes;
  const cpuMs = patience * (target.cpuMs + ((target.cpuMsPerMiB ?? 0) * input.length) / 1024 ** 2);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const cost = await costOf(target, input);
    least = { cpuMs: Math.min(least.cpuMs, cost.cpuMs), allocated: Math.min(least.allocated, cost.allocated) };
    if (least.cpuMs <= cpuMs && least.allocated <= most) return least;
    globalThis.gc!();
  }
  throw least.cpuMs > cpuMs
    ? new Error(`took ${least.cpuMs.toFixed(0)} ms of the processor, more than ${cpuMs.toFixed(0)}`)
    : new Error(`allocated ${(least.allocated / 1024 ** 2).toFixed(0)} MiB`);
}

const wordsOf = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message).split('\n').slice(0, 6).join('\n') : String(error);

function corpusOf(folder: string | null, name: string): Uint8Array[] {
  if (folder === null || !existsSync(join(folder, name))) return [];
  return readdirSync(join(folder, name))
    .toSorted()
    .map((file) => readFileSync(join(folder, name, file)));
}

async function fuzz(
  name: string,
  target: FuzzTarget,
  order: WorkerOrder,
): Promise<Extract<WorkerNews, { type: 'done' }>> {
  const kept = corpusOf(order.corpus, name);
  const most = { cpuMs: 0, allocated: 0 };
  let inputs = 0;
  const run = async (input: Uint8Array) => {
    inputs++;
    writeFileSync(order.current, input);
    const cost = await judge(target, input, order.patience);
    most.cpuMs = Math.max(most.cpuMs, cost.cpuMs);
    most.allocated = Math.max(most.allocated, cost.allocated);
  };
  const done = (failure: Failure | null) => ({ type: 'done' as const, name, inputs, ...most, failure });
  const failed = (error: unknown, input: Uint8Array, seed: number | null) =>
    done({ reason: wordsOf(error), input: Buffer.from(input).toString('base64'), seed });

  for (const input of kept)
    try {
      await run(input);
    } catch (error) {
      return failed(error, input, null);
    }
  const arbitrary = inputsNear([...target.examples, ...kept.map((body) => ({ body }))], target.most);
  const until = performance.now() + order.seconds * 1000;
  for (let seed = order.seed; inputs < order.inputs && performance.now() < until; seed++) {
    const found = await fc.check(
      fc.asyncProperty(arbitrary, async (input) => {
        if (performance.now() < until) await run(input);
      }),
      { seed, numRuns: Math.min(inputsOfCheck, order.inputs) },
    );
    if (found.failed) return failed(found.errorInstance, found.counterexample![0], seed);
  }
  return done(null);
}

process.on('message', async (order: WorkerOrder) => {
  const { targets } = (await import(`./${order.module}.ts`)) as { targets: Readonly<Record<string, FuzzTarget>> };
  for (const name of order.names) {
    process.send!({ type: 'began', name } satisfies WorkerNews);
    const news: WorkerNews = await fuzz(name, targets[name]!, order);
    // A long message is not sent immediately, and this message may be the last.
    await new Promise((resolve) => process.send!(news, resolve));
  }
  process.disconnect();
});
