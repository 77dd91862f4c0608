import { endedStale, hasEnded, stalePlanReason } from '@muster/protocol';
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
import { isUnixTime } from '@muster/protocol/unix-time';
import type { Context } from '../context/context.ts';
import { CliError, type Exit, exits } from '../exit.ts';
import { agentLabel } from '../text/agent-label.ts';
import { nearest } from '../text/nearest.ts';
import { lastLine } from '../text/output-text.ts';
import { stepLine } from '../text/plan-text.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { stalePlanRemedy } from '../transport/explain.ts';
import { operationLines } from './apply-view.ts';
import { follow } from './follow.ts';

/**
 * Plans on one agent and waits until the plan has finished. An interrupt is harmless, because a plan changes nothing.
 * @param purpose what the operator requested; only an apply can wait for an offline agent
 */
export async function planThrough(
  context: Context,
  call: Client,
  agent: Pick<Agent, 'name' | 'node_id'>,
  modules: readonly string[],
  purpose: Operation['kind'],
): Promise<Operation> {
  const progress = context.out.progress(`${sanitiseLine(agentLabel(agent))}: planning`);
  try {
    const body = { modules: [...modules] };
    const started = await call(planAgent, { params: { node_id: agent.node_id }, body });
    return await awaitEnd(context, call, started);
  } catch (error) {
    return await workRefused(call, agentLabel(agent), modules, purpose, error);
  } finally {
    progress.end();
  }
}

interface Apply {
  modules: readonly string[];
  /** Applies exactly this plan, and fails if the plan is stale. */
  plan_id?: string | undefined;
  /** The confirmed plan, whose resources are shown as upcoming. */
  plan?: Operation | undefined;
}

/**
 * Applies on one agent, and shows the progress until the apply has finished. On an interrupt, the operation continues,
 * and the commands that show and cancel it are printed.
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
  let shownCount = 0;
  let looks = 0;
  const ended = await follow<Operation>(context, {
    begin: () =>
      call(applyAgent, {
        params: { node_id: agent.node_id },
        body: { modules: [...modules], offline: 'report', ...(plan_id === undefined ? {} : { plan_id }) },
        respondAsync: true,
      }).catch((error) => workRefused(call, name, modules, 'apply', error)),
    look: async ({ operation_id }) => {
      const operation = await call(getOperation, { params: { operation_id } });
      if (isSeen && operation.status === 'running' && ++looks % 3 === 0) output = await printedLast(call, operation);
      return operation;
    },
    hasEnded: ({ status }) => hasEnded(status),
    draw: (operation, moment) =>
      operationLines({ agent: name, doing: 'applying', operation, plan: plan ?? null, output }, moment, out.noteColor),
    changeLines: ({ resources }) => {
      const fresh = resources.slice(shownCount).filter(({ status }) => status !== 'unchanged');
      shownCount = resources.length;
      return fresh.map((result) => `${sanitiseLine(name)}:${stepLine(result, out.noteColor)}`);
    },
    see: (operation) =>
      `muster operations ${operation === null ? `list --agent ${shellWord(name)}` : `show ${operation.operation_id}`}`,
    end: ({ operation_id }) => `muster operations cancel ${operation_id}`,
    cancel: async ({ operation_id }) => void (await call(cancelOperation, { params: { operation_id } })),
  });
  if (endedStale(ended))
    throw new CliError(
      exits.failed,
      'plan_stale',
      stalePlanReason(ended.error) || 'the desired state changed after the plan',
      stalePlanRemedy,
      { planned_at: plan?.created_at ?? (await plannedAt(call, ended)) },
    );
  return ended;
}

/** Returns when the plan of an apply was requested, in Unix seconds; null if it cannot be read. */
async function plannedAt(call: Client, { plan_id }: Operation): Promise<number | null> {
  if (plan_id === null) return null;
  try {
    const { created_at } = await call(getOperation, { params: { operation_id: plan_id } });
    return isUnixTime(created_at) ? created_at : null;
  } catch {
    // Any error here would hide that the plan is stale.
    return null;
  }
}

/** Returns the last line that the running script printed; empty if the output cannot be read. */
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

/** Quotes a word for a shell, because module names may contain spaces. */
const shellWord = (text: string): string =>
  /^[\p{L}\p{N}_.@+-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Returns a command line, ready to paste, that applies the given modules on an agent. */
export const applyLine = (agent: string, modules: readonly string[], ...flags: string[]): string =>
  sanitiseLine(
    ['muster apply', shellWord(agent), ...modules.map((name) => `-m ${shellWord(name)}`), ...flags].join(' '),
  );

/** Rethrows a refusal with advice: the name of a similar module, or how to apply on an offline agent. */
export async function workRefused(
  call: Client,
  agent: string,
  requested: readonly string[],
  purpose: Operation['kind'],
  error: unknown,
): Promise<never> {
  if (error instanceof ApiError && error.problem.code === 'agent_not_connected')
    throw new CliError(
      exits.unreachable,
      error.problem.code,
      error.problem.detail,
      `To see when it was last seen: muster agents show ${sanitiseLine(shellWord(agent))}.${purpose === 'apply' ? ' To apply when it reconnects, add --queue.' : ' Plan again when it has reconnected.'}`,
      { cause: error },
    );
  if (!(error instanceof ApiError) || !['unknown_module', 'module_not_found'].includes(error.problem.code)) throw error;
  const known = (await call(listModules, {})).map(({ name }) => name);
  const unknown = requested.filter((name) => !known.includes(name));
  const suggestions = unknown.flatMap((name) => nearest(name, known) ?? []);
  throw new CliError(
    exits.failed,
    error.problem.code,
    error.problem.detail,
    `${suggestions.length === 0 ? '' : `Did you mean ${suggestions.join(', ')}? `}List the modules: muster modules list`,
    { cause: error },
  );
}
