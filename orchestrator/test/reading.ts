import type { Operation, OperationOutput, Run, State } from '@muster/protocol/http';
import type { LiveOutput } from '../src/domain/operations/live-output.ts';
import { type OperationInPages, readOperation, readOutput } from '../src/domain/operations/operations.ts';
import { readState } from '../src/domain/operations/state.ts';
import { awaitRun as awaitRunInPages, type RunInPages, readRun } from '../src/domain/runs/runs.ts';
import type { Context } from '../src/domain/shared/context.ts';
import { fromJson, type JsonText } from '../src/store/json-text.ts';

/** Collects paged results for tests. */

async function gather<T>(parts: AsyncIterable<readonly T[]>): Promise<T[]> {
  const all: T[] = [];
  for await (const part of parts) all.push(...part);
  return all;
}
const items = async <T>(parts: AsyncIterable<readonly JsonText<T>[]>): Promise<T[]> =>
  (await gather(parts)).map((text) => fromJson(text));

export const wholeOperation = async (operation: OperationInPages): Promise<Operation> => ({
  ...operation,
  resources: await items(operation.resources),
});

export const getOperation = async (context: Context, operationId: string): Promise<Operation> =>
  wholeOperation(await readOperation(context, operationId));

export async function getState(context: Context, idOrName: string): Promise<State> {
  const { applied, pending_removals, unapplied, ...rest } = await readState(context, idOrName);
  return {
    ...rest,
    applied: await items(applied),
    pending_removals: await items(pending_removals),
    unapplied: await items(unapplied),
  };
}

export async function getOutput(
  context: Context,
  live: Pick<LiveOutput, 'of'>,
  idOrName: string,
  operationId: string,
): Promise<OperationOutput> {
  const { operation_id, output } = await readOutput(context, live, idOrName, operationId);
  const entries = (await gather(output)).map(([name, value]) => [name, fromJson(value)] as const);
  return { operation_id, output: Object.fromEntries(entries) };
}

const wholeRun = async (run: RunInPages): Promise<Run> => ({ ...run, results: await items(run.results) });

export const getRun = async (context: Context, runId: string): Promise<Run> => wholeRun(await readRun(context, runId));

export async function awaitRun(...args: Parameters<typeof awaitRunInPages>): Promise<{ run: Run; ended: boolean }> {
  const { run, ended } = await awaitRunInPages(...args);
  return { run: await wholeRun(run), ended };
}
