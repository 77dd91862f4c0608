import { hasEnded } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Agent,
  applyAgent,
  cancelOperation,
  getOperation,
  getOperationOutput,
  listModules,
  type Operation,
  planAgent,
} from '@muster/protocol/http';
import type { Context } from '../context/context.ts';
import { CliError, type Exit, exits } from '../exit.ts';
import { agentLabel } from '../text/agent-label.ts';
import { nearest } from '../text/nearest.ts';
import { lastLine } from '../text/output-text.ts';
import { stepLine } from '../text/plan-text.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { operationLines } from './apply-view.ts';
import { follow } from './follow.ts';

/**
 * Has one agent plan, and waits for its end: it changes nothing, so that whoever leaves meanwhile leaves nothing behind.
 */
export async function planThrough(
  context: Context,
  call: Client,
  agent: Pick<Agent, 'name' | 'node_id'>,
  modules: readonly string[],
): Promise<Operation> {
  const progress = context.out.progress(`${sanitiseLine(agentLabel(agent))}: planning`);
  try {
    const body = { modules: [...modules] };
    const started = await call(planAgent, { params: { node_id: agent.node_id }, body });
    return await awaitEnd(context, call, started);
  } catch (error) {
    return await workRefused(call, agentLabel(agent), modules, error);
  } finally {
    progress.end();
  }
}

interface Apply {
  modules: readonly string[];
  /** Exactly that is done, or nothing. */
  plan_id?: string | undefined;
  /** What was agreed to: it tells what comes. */
  plan?: Operation | undefined;
}

/**
 * Has one agent apply, and shows how far it is until its end. It goes on whatever becomes of this program: whoever leaves
 * is told where it is to be seen, and how to end it.
 */
export async function applyThrough(
  context: Context,
  call: Client,
  agent: Pick<Agent, 'name' | 'node_id'>,
  { modules, plan_id, plan }: Apply,
): Promise<Operation> {
  const { out } = context;
  const name = agentLabel(agent);
  const isSeen = out.live().isSeen;
  let output = '';
  let told = 0;
  let looks = 0;
  const ended = await follow<Operation>(context, {
    begin: () =>
      call(applyAgent, {
        params: { node_id: agent.node_id },
        body: { modules: [...modules], offline: 'report', ...(plan_id === undefined ? {} : { plan_id }) },
        respondAsync: true,
      }).catch((error) => workRefused(call, name, modules, error)),
    look: async ({ operation_id }) => {
      const operation = await call(getOperation, { params: { operation_id } });
      if (isSeen && operation.status === 'running' && ++looks % 3 === 0) output = await printedLast(call, operation);
      return operation;
    },
    hasEnded: ({ status }) => hasEnded(status),
    draw: (operation, moment) =>
      operationLines({ agent: name, doing: 'applying', operation, plan: plan ?? null, output }, moment, out.noteColor),
    tell: ({ resources }) => {
      const fresh = resources.slice(told).filter(({ status }) => status !== 'unchanged');
      told = resources.length;
      return fresh.map((result) => `${sanitiseLine(name)}:${stepLine(result, out.noteColor)}`);
    },
    see: (operation) =>
      `muster operations ${operation === null ? `list --agent ${shellWord(name)}` : `show ${operation.operation_id}`}`,
    end: ({ operation_id }) => `muster operations cancel ${operation_id}`,
    cancel: async ({ operation_id }) => void (await call(cancelOperation, { params: { operation_id } })),
  });
  if (ended.plan_id !== null && ended.status === 'failed' && ended.error?.startsWith('plan_stale'))
    throw new CliError(
      exits.failed,
      'plan_stale',
      ended.error.replace(/^plan_stale:?\s*/, '') || 'something has changed since the plan',
      'The machine, a module or the desired set has changed since the plan: run the same command again.',
    );
  return ended;
}

/** What the script that an agent is at printed last; nothing when that is not to be had. */
async function printedLast(call: Client, { node_id, operation_id }: Operation): Promise<string> {
  try {
    const { output } = await call(getOperationOutput, { params: { node_id, operation_id } });
    const running = Object.values(output).find((one) => one.running);
    return running === undefined ? '' : sanitiseLine(lastLine(running.stdout) || lastLine(running.stderr));
  } catch (error) {
    if (error instanceof ApiError) return '';
    throw error;
  }
}

/** Waits for what the orchestrator answered before it had ended. */
async function awaitEnd({ sleep }: Pick<Context, 'sleep'>, call: Client, started: Operation): Promise<Operation> {
  let operation = started;
  for (let wait = 500; !hasEnded(operation.status); wait = Math.min(wait * 2, 5000)) {
    await sleep(wait);
    operation = await call(getOperation, { params: { operation_id: operation.operation_id } });
  }
  return operation;
}

export function exitOfOperation({ status }: Pick<Operation, 'status'>): Exit {
  return status === 'succeeded' || !hasEnded(status) ? exits.done : exits.failed;
}

/** A word as a shell takes it: a module may have a space in its name. */
const shellWord = (text: string): string =>
  /^[\p{L}\p{N}_.@+-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** The line that applies these modules on an agent, to be typed as it is. */
export const applyLine = (agent: string, modules: readonly string[], ...flags: string[]): string =>
  sanitiseLine(
    ['muster apply', shellWord(agent), ...modules.map((name) => `-m ${shellWord(name)}`), ...flags].join(' '),
  );

/**
 * Tells why work was refused with what to do about it here: which module was probably meant, or how to have the work
 * done by an agent that is away.
 */
export async function workRefused(
  call: Client,
  agent: string,
  wanted: readonly string[],
  error: unknown,
): Promise<never> {
  if (error instanceof ApiError && error.problem.code === 'agent_not_connected')
    throw new CliError(
      exits.unreachable,
      error.problem.code,
      error.problem.detail,
      `See when it was last heard: muster agents list. To have the work done when it comes back: ${applyLine(agent, wanted, ...(wanted.length === 0 ? ['--remove'] : []), '--yes', '--queue')}`,
      { cause: error },
    );
  if (!(error instanceof ApiError) || !['unknown_module', 'module_not_found'].includes(error.problem.code)) throw error;
  const known = (await call(listModules, {})).map(({ name }) => name);
  const unknown = wanted.filter((name) => !known.includes(name));
  const meant = unknown.flatMap((name) => nearest(name, known) ?? []);
  throw new CliError(
    exits.failed,
    error.problem.code,
    error.problem.detail,
    `${meant.length === 0 ? '' : `Did you mean ${meant.join(', ')}? `}See the modules there are: muster modules list`,
    { cause: error },
  );
}
