import type { OperationRecord } from '../journal/state.ts';
import { applyOperation } from './apply/apply.ts';
import { keepUnreported } from './apply/keep-unreported.ts';
import { measureDrift } from './drift-operation.ts';
import { type ExecutionContext, Stopped } from './execution-context.ts';
import { stepsOf } from './plan/steps-of.ts';
import { triggersLeft } from './plan/steps-state.ts';
import { planOperationOnMachine } from './plan-operation.ts';
import { Progress } from './progress.ts';

const executors = { apply: applyOperation, plan: planOperationOnMachine, drift: measureDrift };

/**
 * Executes one operation, or the rest of it after a restart.
 * @throws Stopped if the agent stops first; the operation resumes at the next start
 */
export async function execute(operation: OperationRecord, context: ExecutionContext): Promise<void> {
  const progress = new Progress(operation, context);
  try {
    await executors[operation.message.kind](progress);
  } catch (error) {
    // Publishes finished results, so that the next start need not determine them again.
    if (error instanceof Stopped && operation.message.kind === 'apply') await progress.flush('left');
    throw error;
  } finally {
    progress.view.walk.close();
  }
}

/**
 * Abandons an operation that cannot run because of a bug in the agent. Its changes stay managed, and their triggers
 * remain due.
 */
export async function abandon(operation: OperationRecord, context: ExecutionContext, reason: string): Promise<void> {
  const progress = new Progress(operation, context);
  try {
    progress.results.push(...operation.results);
    const { message } = operation;
    const pending = message.kind === 'apply' ? await pendingTriggers(progress) : [];
    const total = operation.results.length;
    await progress.finish(total, `the agent could not execute the operation: ${reason}`, { notRun: 0, pending });
  } finally {
    progress.view.walk.close();
  }
}

/** Manages the unreported changes, and returns the triggers that remain due. */
async function pendingTriggers(progress: Progress): Promise<[string, string[]][]> {
  const { operation, context } = progress;
  const { state } = context.journal;
  const { resources, keep_modules } = operation.message;
  const steps = stepsOf(resources, state.managed, keep_modules).filter(({ kind }) => kind === 'apply');
  const unreported = await keepUnreported(progress, steps);
  const statuses = operation.results.map(({ status }) => ({ status }));
  for (const position of unreported) statuses[position] = { status: 'changed' };
  return triggersLeft(steps, statuses, state.pendingTriggers, null, state.managed);
}
