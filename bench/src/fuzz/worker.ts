// A process that runs the targets in sequence with mutations of their examples and corpus. It writes each input to a
// file first, because the parent kills this process if an input hangs.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import fc from 'fast-check';
import { inputsNear } from './inputs.ts';
import { type FuzzTarget, maxAllocatedBytes } from './target.ts';

export interface WorkerOrder {
  /** Name of a module in this directory that exports `targets`. */
  module: string;
  names: string[];
  seed: number;
  /** Maximum duration for each target, in seconds. */
  seconds: number;
  /** Maximum number of inputs for each target. */
  inputs: number;
  /** Directory with a subdirectory of inputs for each target. */
  corpus: string | null;
  /** Factor by which the CPU time bound is multiplied on busy machines. */
  patience: number;
  /** Path of the file for the current input. */
  current: string;
}

export type WorkerMessage =
  | { type: 'began'; name: string }
  | { type: 'done'; name: string; inputs: number; cpuMs: number; allocated: number; failure: Failure | null };

export interface Failure {
  reason: string;
  /** Input in base64. */
  input: string;
  /** Seed that generates the input; null if the input is from the corpus. */
  seed: number | null;
}

const inputsOfCheck = 200;
/**
 * If the young generation is larger than this number of bytes, the worker collects garbage before an input, so that no
 * collection occurs during the input.
 */
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

/** Number of attempts. The lowest cost counts, because an attempt may include compilation or garbage collection. */
const attempts = 4;

/** Measures the cost of an input. @throws Error if the target fails or the input costs too much */
async function judge(target: FuzzTarget, input: Uint8Array, patience: number): Promise<Cost> {
  let min: Cost = { cpuMs: Number.POSITIVE_INFINITY, allocated: Number.POSITIVE_INFINITY };
  const max = target.allocatedBytes ?? maxAllocatedBytes;
  const cpuMs = patience * (target.cpuMs + ((target.cpuMsPerMiB ?? 0) * input.length) / 1024 ** 2);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const cost = await costOf(target, input);
    min = { cpuMs: Math.min(min.cpuMs, cost.cpuMs), allocated: Math.min(min.allocated, cost.allocated) };
    if (min.cpuMs <= cpuMs && min.allocated <= max) return min;
    globalThis.gc!();
  }
  throw min.cpuMs > cpuMs
    ? new Error(`took ${min.cpuMs.toFixed(0)} ms of CPU time, more than ${cpuMs.toFixed(0)} ms`)
    : new Error(
        `allocated ${(min.allocated / 1024 ** 2).toFixed(0)} MiB, more than ${(max / 1024 ** 2).toFixed(0)} MiB`,
      );
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
): Promise<Extract<WorkerMessage, { type: 'done' }>> {
  const stored = corpusOf(order.corpus, name);
  const max = { cpuMs: 0, allocated: 0 };
  let inputs = 0;
  const run = async (input: Uint8Array) => {
    inputs++;
    writeFileSync(order.current, input);
    const cost = await judge(target, input, order.patience);
    max.cpuMs = Math.max(max.cpuMs, cost.cpuMs);
    max.allocated = Math.max(max.allocated, cost.allocated);
  };
  const done = (failure: Failure | null) => ({ type: 'done' as const, name, inputs, ...max, failure });
  const failed = (error: unknown, input: Uint8Array, seed: number | null) =>
    done({ reason: wordsOf(error), input: Buffer.from(input).toString('base64'), seed });

  for (const input of stored)
    try {
      await run(input);
    } catch (error) {
      return failed(error, input, null);
    }
  const arbitrary = inputsNear([...target.examples, ...stored.map((body) => ({ body }))], target.maxBytes);
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
    process.send!({ type: 'began', name } satisfies WorkerMessage);
    const message: WorkerMessage = await fuzz(name, targets[name]!, order);
    // Waits until the message is sent, because the process disconnects after its last message.
    await new Promise((resolve) => process.send!(message, resolve));
  }
  process.disconnect();
});
