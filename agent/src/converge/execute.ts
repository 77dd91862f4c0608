import type { OperationRecord } from '../journal/state.ts';
import type { Json } from '../resources/provider/provider.ts';
import { applyOperation } from './apply/apply.ts';
import { providerFor } from './plan/find-provider.ts';
import { Picture, type Step, stepsOf, triggersLeft } from './plan/plan.ts';
import { measureDrift, planOperationOnMachine } from './plan-drift.ts';
import { type ExecutionContext, Progress, Stopped } from './progress.ts';

const executors = { apply: applyOperation, plan: planOperationOnMachine, drift: measureDrift };

/**
 * Executes one operation, or the rest of it, to its end.
 * @throws Stopped when the agent stops first; the operation resumes at the next start
 */
export async function execute(operation: OperationRecord, context: ExecutionContext): Promise<void> {
  const progress = new Progress(operation, context);
  try {
    await executors[operation.message.kind](progress);
  } catch (error) {
    // Publishes finished results, so that the next start does not have to determine them.
    if (error instanceof Stopped && operation.message.kind === 'apply') await progress.flush('left');
    throw error;
  } finally {
    progress.close();
  }
}

/**
 * Ends an operation that cannot be executed because of a fault in the agent. Its changes stay managed, and the triggers
 * from them remain due.
 */
export async function abandon(operation: OperationRecord, context: ExecutionContext, reason: string): Promise<void> {
  const progress = new Progress(operation, context);
  try {
    progress.results.push(...operation.results);
    const { message } = operation;
    const pending = message.kind === 'apply' ? await keepUnreported(progress) : [];
    const total = operation.results.length;
    await progress.finish(total, `the agent could not execute it: ${reason}`, { cut: 0, pending });
  } finally {
    progress.close();
  }
}

/**
 * Journals changes that an operation made and could not report.
 * @returns the triggers that remain due
 */
async function keepUnreported(progress: Progress): Promise<[string, string[]][]> {
  const { operation, context } = progress;
  const { state } = context.journal;
  const { message, intents, step: begun } = operation;
  const steps = stepsOf(message.resources, state.managed, message.keep_modules).filter(({ kind }) => kind === 'apply');
  const statuses = operation.results.map(({ status }) => ({ status }));
  const picture = new Picture('apply', state.pendingTriggers, steps);
  for (const step of steps) {
    const intent = intents.get(step.position);
    if (intent !== undefined && (await wasChanged(progress, step, intent.seen, picture))) {
      progress.recordBefore(step.resource.key, intent.before);
      statuses[step.position] = { status: 'changed' };
    }
    if (begun?.position === step.position) progress.recordBefore(step.resource.key, begun.before);
  }
  return triggersLeft(steps, statuses, state.pendingTriggers, null, state.managed);
}

/** Whether a resource differs from its state before the operation. True if that is unknown. */
async function wasChanged(progress: Progress, step: Step, seen: Json, picture: Picture): Promise<boolean> {
  const provider = providerFor(step);
  try {
    const now = await progress.observe(step, picture);
    if (provider === null || !('seen' in now)) return true;
    return JSON.stringify(seen) !== JSON.stringify(provider.inBrief(now.seen));
  } catch {
    return true;
  }
}
