import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Agent,
  getOperation,
  getOperationOutput,
  mostRunAgents,
  type Operation,
  type Run,
  startRun,
} from '@muster/protocol/http';
import type { Context } from '../context/context.ts';
import { CliError, exits, usageError } from '../exit.ts';
import { lastLines } from '../text/output-text.ts';
import { sanitise, sanitiseLine } from '../text/sanitize.ts';
import { counted, duration } from '../text/style.ts';
import { byName, countsOf, outcomeLine, outcomeName, type Pace } from './apply-view.ts';
import { inTurns } from './each.ts';
import { workRefused } from './operation.ts';
import { renderPlans } from './plan-groups.ts';
import { seeRunThrough } from './run-through.ts';

/** Plans and applies on many agents: as runs, which the orchestrator paces and which go on by themselves. */

/** Requests at one time, for what is asked of each agent. */
const atOnce = 16;

/** How a run of agents that were named is to go, as the API takes it. */
export interface FleetWish {
  kind: 'plan' | 'apply';
  modules: readonly string[];
  pace?: Pace & { max_failures?: number };
  plan_run_id?: string;
  offline?: 'queue';
  ttl?: number;
}

/** Begins a run on these agents. @returns at once, what it has come to so far */
export async function beginFleet(
  call: Client,
  agents: readonly Pick<Agent, 'node_id'>[],
  wish: FleetWish,
): Promise<Run> {
  if (agents.length > mostRunAgents)
    throw usageError(
      `${agents.length} agents are more than one run is for`,
      `Up to ${mostRunAgents}; for more there are assignments: muster assignments create`,
    );
  const { modules, pace = {}, ...rest } = wish;
  const { canary, batch, max_failures } = pace;
  const body = {
    ...rest,
    ...(canary === undefined ? {} : { canary }),
    ...(batch === undefined ? {} : { batch }),
    ...(max_failures === undefined ? {} : { max_failures }),
    node_ids: agents.map(({ node_id }) => node_id),
    modules: [...modules],
  };
  return await call(startRun, { body, respondAsync: true }).catch((error) =>
    workRefused(call, counted(agents.length, 'agent'), modules, error),
  );
}

/** Plans on all of them, and waits for that. */
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

/** The plans of a run that have something to tell, by node id. */
async function plansOf(call: Client, { results }: Run): Promise<Map<string, Operation>> {
  const telling = results.filter(
    ({ status, summary, operation_id }) =>
      operation_id !== null && (status !== 'succeeded' || summary === null || summary.changed + summary.removed > 0),
  );
  const operations = await inTurns(telling, atOnce, ({ operation_id }) =>
    call(getOperation, { params: { operation_id: operation_id as string } }),
  );
  return new Map(operations.map((operation) => [operation.node_id, operation]));
}

/** A run on nobody: only an assignment, which stands for whoever comes to match it, can have one. */
const nobodyText = ({ assignment, kind }: Run): string => {
  const whose = assignment === null ? 'The selector' : `The selector of ${sanitiseLine(assignment)}`;
  return `${whose} matches nobody: there is nothing to ${kind}.`;
};

/** Shows the plans of a run: those that are alike once. */
export async function showPlans({ out }: Context, call: Client, run: Run): Promise<void> {
  if (out.json) return;
  if (run.results.length === 0) out.print(nobodyText(run));
  else out.print(renderPlans(run, await plansOf(call, run), out.style));
}

/** Who has something to do, by a plan that succeeded. */
export const changingIn = ({ results }: Run): Run['results'] =>
  results.filter(
    ({ status, summary }) => status === 'succeeded' && summary !== null && summary.changed + summary.removed > 0,
  );

/**
 * Asks whether these plans shall be carried out.
 * @param what is applied on how many, for the question
 * @returns false when there is nothing to do
 */
export async function agreeToPlans({ out, prompt }: Context, plan: Run, what: string): Promise<boolean> {
  const unplanned = plan.results.filter(({ status }) => status !== 'succeeded').length;
  // What a plan that failed half way would have changed is not applied.
  if (changingIn(plan).length === 0) {
    if (unplanned === plan.results.length && unplanned > 0)
      throw new CliError(
        exits.failed,
        'plan_failed',
        'no plan succeeded, so nothing was applied',
        'Mend what it names.',
      );
    return false;
  }
  const removed = plan.results.reduce((sum, { summary }) => sum + (summary?.removed ?? 0), 0);
  const warning = removed === 0 ? '' : out.noteColor.red(` It removes ${counted(removed, 'resource')}.`);
  const without =
    unplanned === 0
      ? ''
      : ` ${unplanned === 1 ? '1 agent that was not planned is' : `${unplanned} that were not planned are`} left out.`;
  if (!(await prompt.confirm(`Apply ${what}?${warning}${without}`)))
    throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
  return true;
}

/** As many agents as are told of one by one, also when all is well. */
const fewAgents = 20;
/** As many failures as are told with what the scripts printed. */
const toldFailures = 5;
const tailLines = 5;

/** How an apply on many ended: who did what, who failed and why, what to type to see more. */
export async function showOutcome({ out }: Context, call: Client, run: Run): Promise<void> {
  if (out.json) return;
  if (run.results.length === 0 && run.status === 'succeeded') {
    out.print(nobodyText(run));
    return;
  }
  const { color, verbose } = out.style;
  const { started_at, finished_at, status } = run;
  const results = byName(run.results);
  const bad = results.filter((result) => result.status !== 'succeeded');
  if (verbose || results.length <= fewAgents) for (const result of results) out.print(outcomeLine(result, color));
  else for (const result of bad.slice(0, 4 * fewAgents)) out.print(outcomeLine(result, color));
  for (const result of bad.slice(0, toldFailures)) {
    const lines = await whyFailed(call, result, out.style.color.dim);
    if (lines.length > 0) out.print(['', color.bold(outcomeName(result)), ...lines].join('\n'));
  }
  const { succeeded, failed, cancelled, untried } = countsOf(results);
  const took = finished_at === null ? '' : ` in ${duration(finished_at - started_at)}`;
  const parts = [
    color.green(`${succeeded} succeeded`),
    ...(failed === 0 ? [] : [color.red(`${failed} failed`)]),
    ...(cancelled === 0 ? [] : [color.red(`${cancelled} cancelled`)]),
    ...(untried === 0 ? [] : [`${untried} not tried`]),
  ];
  out.print(
    `\n${color.bold(`${status === 'cancelled' ? 'Cancelled' : 'Applied'} on ${counted(results.length, 'agent')}${took}:`)} ${parts.join(', ')}`,
  );
  if (status === 'halted')
    out.print(
      color.red('The run was halted: too many failed, or a canary did; who had not had its turn was not tried.'),
    );
  if (status === 'cancelled') out.print('The run was cancelled: who had not had its turn was not tried.');
  out.note(out.noteColor.dim(`See more: muster runs show ${sanitiseLine(run.run_id)}`));
}

/** What failed on one agent: the resources with their messages, and the end of what their scripts printed. */
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
        `  ${sanitiseLine(`${type} ${identity}`)}: ${sanitise(message ?? 'no reason was given').replaceAll('\n', '\n    ')}`,
      );
    const { output } = await call(getOperationOutput, { params: { node_id, operation_id } });
    const ofFailed = new Set(failed.map(({ module, identity }) => `${module}/${identity}`));
    for (const [place, { stdout, stderr }] of Object.entries(output)) {
      if (!ofFailed.has(place)) continue;
      for (const line of lastLines(stderr.trim() === '' ? stdout : stderr, tailLines))
        lines.push(dim(`    ${sanitiseLine(line)}`));
    }
    lines.push(dim(`  all of it: muster operations show ${sanitiseLine(operation_id)} --output`));
  } catch (error) {
    // That it failed was told; why is one command away.
    if (!(error instanceof ApiError)) throw error;
  }
  return lines;
}
