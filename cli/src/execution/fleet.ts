import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Agent,
  getOperation,
  getOperationOutput,
  maxRunAgents,
  type Operation,
  type Run,
  startRun,
} from '@muster/protocol/http';
import { runOutcomeOf } from '../../../client/src/run-outcomes.ts';
import type { Context } from '../context/context.ts';
import { CliError, exits, usageError } from '../exit.ts';
import { lastLines } from '../text/output-text.ts';
import { sanitise, sanitiseLine } from '../text/sanitize.ts';
import { counted, duration } from '../text/style.ts';
import { countsOf, type FanOut, outcomeLine, outcomeName } from './apply-view.ts';
import { inTurns } from './each.ts';
import { workRefused } from './operation.ts';
import { renderPlans } from './plan-groups.ts';
import { haltedLine, worstFirst } from './run-text.ts';
import { seeRunThrough } from './run-through.ts';

/**
 * Plans and applies on many agents. The orchestrator paces these runs, and continues them even if this program exits.
 */

/** Maximum number of parallel requests. */
const atOnce = 16;

/** The parameters of a run on named agents, as in the API. */
export interface FleetOptions {
  kind: 'plan' | 'apply';
  modules: readonly string[];
  fanOut?: FanOut & { max_failures?: number };
  plan_run_id?: string;
  offline?: 'queue';
  ttl?: number;
}

/**
 * Starts a run without waiting for it to finish.
 * @returns the started run
 */
export async function beginFleet(
  call: Client,
  agents: readonly Pick<Agent, 'node_id'>[],
  options: FleetOptions,
): Promise<Run> {
  if (agents.length > maxRunAgents)
    throw usageError(
      `a run can have at most ${maxRunAgents} agents; ${agents.length} were given`,
      `For more agents, use an assignment: muster assignments create`,
    );
  const { modules, fanOut = {}, ...rest } = options;
  const { canary, batch, max_failures } = fanOut;
  const body = {
    ...rest,
    ...(canary === undefined ? {} : { canary }),
    ...(batch === undefined ? {} : { batch }),
    ...(max_failures === undefined ? {} : { max_failures }),
    node_ids: agents.map(({ node_id }) => node_id),
    modules: [...modules],
  };
  return await call(startRun, { body, respondAsync: true }).catch((error) =>
    workRefused(call, counted(agents.length, 'agent'), modules, options.kind, error),
  );
}

/** Plans on all agents and waits until all plans have finished. */
export const planFleet = (
  context: Context,
  call: Client,
  agents: readonly Pick<Agent, 'node_id'>[],
  modules: readonly string[],
): Promise<Run> =>
  seeRunThrough(context, call, {
    doing: `Planning on ${counted(agents.length, 'agent')}:`,
    begin: () => beginFleet(call, agents, { kind: 'plan', modules }),
  });

/** Returns the plans that failed or contain changes, by node id. */
async function plansOf(call: Client, { results }: Run): Promise<Map<string, Operation>> {
  const withChanges = results.filter(
    ({ status, summary, operation_id }) =>
      operation_id !== null && (status !== 'succeeded' || summary === null || summary.changed + summary.removed > 0),
  );
  const operations = await inTurns(withChanges, atOnce, ({ operation_id }) =>
    call(getOperation, { params: { operation_id: operation_id as string } }),
  );
  return new Map(operations.map((operation) => [operation.node_id, operation]));
}

/**
 * Returns the message for a run without agents. Only an assignment's run can have no agents, because its selector may
 * match none.
 */
const noAgentsText = ({ assignment, kind }: Run): string => {
  const whose = assignment === null ? 'The selector' : `The selector of ${sanitiseLine(assignment)}`;
  return `${whose} matches no agent: there is nothing to ${kind}.`;
};

/** Prints the plans of a run, with equal plans only once. */
export async function showPlans({ out }: Context, call: Client, run: Run): Promise<void> {
  if (out.json) return;
  if (run.results.length === 0) out.print(noAgentsText(run));
  else out.print(renderPlans(run, await plansOf(call, run), out.style));
}

/** Returns the agents whose plan succeeded and contains changes. */
export const changingIn = ({ results }: Run): Run['results'] =>
  results.filter(
    ({ status, summary }) => status === 'succeeded' && summary !== null && summary.changed + summary.removed > 0,
  );

/**
 * Asks for confirmation to apply the given plans.
 * @param what the object of the question: the modules or assignment to apply, and the number of agents
 * @returns false if there is nothing to apply
 */
export async function agreeToPlans({ out, prompt }: Context, plan: Run, what: string): Promise<boolean> {
  const unplanned = plan.results.filter(({ status }) => status !== 'succeeded').length;
  // The plan of a failed agent is incomplete and is not applied.
  if (changingIn(plan).length === 0) {
    if (unplanned === plan.results.length && unplanned > 0)
      throw new CliError(
        exits.failed,
        'plan_failed',
        'no plan succeeded, so nothing was applied',
        'Fix the errors above.',
      );
    return false;
  }
  const removed = plan.results.reduce((sum, { summary }) => sum + (summary?.removed ?? 0), 0);
  const warning = removed === 0 ? '' : out.noteColor.red(` It removes ${counted(removed, 'resource')}.`);
  const without =
    unplanned === 0
      ? ''
      : ` ${unplanned === 1 ? '1 agent without a plan is' : `${unplanned} agents without a plan are`} left out.`;
  if (!(await prompt.confirm(`Apply ${what}?${warning}${without}`)))
    throw new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
  return true;
}

/** Runs with more agents than this do not list successful agents individually. */
const fewAgents = 20;
/** Maximum number of agents to list individually in larger runs. */
const maxListed = 80;
/** Maximum number of failed agents whose script output is shown. */
const maxShownFailures = 5;
const tailLines = 5;

/** Prints the result of an apply on many agents: the outcome, the reasons for failures, and where to find details. */
export async function showOutcome({ out }: Context, call: Client, run: Run): Promise<void> {
  if (out.json) return;
  if (run.results.length === 0 && run.status === 'succeeded') {
    out.print(noAgentsText(run));
    return;
  }
  const { color, verbose } = out.style;
  const { started_at, finished_at, status } = run;
  const results = worstFirst(run.results);
  // The counts below include skipped agents, and all of them have the same reason.
  const tried = verbose ? results : results.filter((result) => runOutcomeOf(result) !== 'skipped');
  const listed = results.length <= fewAgents ? tried : tried.filter((result) => result.status !== 'succeeded');
  const shown = verbose ? tried : listed.slice(0, maxListed);
  for (const result of shown) out.print(outcomeLine(result, run.kind, color));
  if (!verbose && listed.length > maxListed)
    out.print(`and ${listed.length - maxListed} more: muster runs show ${sanitiseLine(run.run_id)}`);
  const failures = results.filter((result) => runOutcomeOf(result) === 'failed' && result.operation_id !== null);
  for (const result of failures.slice(0, maxShownFailures)) {
    const lines = await whyFailed(call, result, out.style.color.dim);
    if (lines.length > 0) out.print(['', color.bold(outcomeName(result)), ...lines].join('\n'));
  }
  const { succeeded, failed, cancelled, untried } = countsOf(results);
  const took = finished_at === null ? '' : ` in ${duration(finished_at - started_at)}`;
  const parts = [
    color.green(`${succeeded} succeeded`),
    ...(failed === 0 ? [] : [color.red(`${failed} failed`)]),
    ...(cancelled === 0 ? [] : [color.red(`${cancelled} canceled`)]),
    ...(untried === 0 ? [] : [`${untried} skipped`]),
  ];
  out.print(
    `\n${color.bold(`${status === 'cancelled' ? 'Canceled' : 'Applied'} on ${counted(results.length, 'agent')}${took}:`)} ${parts.join(', ')}`,
  );
  if (status === 'halted') out.print(color.red(haltedLine(run) ?? 'The run was halted.'));
  if (status === 'cancelled') out.print('The run was canceled. The remaining agents were skipped.');
  out.note(out.noteColor.dim(`To see more: muster runs show ${sanitiseLine(run.run_id)}`));
}

/** Returns one agent's failed resources with their messages and the last lines of their scripts. */
async function whyFailed(
  call: Client,
  { node_id, operation_id }: Run['results'][number],
  dim: (text: string) => string,
): Promise<string[]> {
  if (operation_id === null) return [];
  const lines: string[] = [];
  try {
    const { resources } = await call(getOperation, { params: { operation_id } });
    const failed = resources.filter(({ status }) => status === 'failed' || status === 'unknown');
    if (failed.length === 0) return [];
    for (const { type, identity, message } of failed)
      lines.push(
        `  ${sanitiseLine(`${type} ${identity}`)}: ${sanitise(message ?? 'no reason was reported').replaceAll('\n', '\n    ')}`,
      );
    const { output } = await call(getOperationOutput, { params: { node_id, operation_id } });
    const ofFailed = new Set(failed.map(({ module, identity }) => `${module}/${identity}`));
    for (const [resourceKey, { stdout, stderr }] of Object.entries(output)) {
      if (!ofFailed.has(resourceKey)) continue;
      for (const line of lastLines(stderr.trim() === '' ? stdout : stderr, tailLines))
        lines.push(dim(`    ${sanitiseLine(line)}`));
    }
    lines.push(dim(`  full output: muster operations show ${sanitiseLine(operation_id)} --output`));
  } catch (error) {
    // Ignores an error, because the failure itself was printed and the details are optional.
    if (!(error instanceof ApiError)) throw error;
  }
  return lines;
}
