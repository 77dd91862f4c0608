import type { Client } from '@muster/protocol/client';
import type { Agent, Run } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { type FanOut, outcomeLine } from '../../execution/apply-view.ts';
import { agreeToPlans, beginFleet, changingIn, planFleet, showOutcome, showPlans } from '../../execution/fleet.ts';
import { removedIn } from '../../execution/run-text.ts';
import { exitOfRun, seeRunThrough } from '../../execution/run-through.ts';
import { CliError, type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';

interface ApplyOptions {
  modules: readonly string[];
  /** Whether the operator named the modules. Otherwise, removing resources needs `remove`. */
  isNamed: boolean;
  fanOut: FanOut & { max_failures?: number };
  yes: boolean;
  remove: boolean;
  queue: boolean;
  /** Seconds for which offline agents may still start the apply. */
  ttl: number | undefined;
}

/**
 * Applies on several agents: shows their plans, asks once, and applies exactly these plans. Excludes agents without
 * changes and agents whose plan failed.
 */
export async function applyToMany(
  context: Context,
  call: Client,
  agents: readonly Pick<Agent, 'node_id'>[],
  { modules, isNamed, fanOut, yes, remove, queue, ttl }: ApplyOptions,
): Promise<Exit> {
  const { out } = context;
  const options = { kind: 'apply' as const, modules, fanOut };
  if (queue) {
    const run = await beginFleet(call, agents, { ...options, offline: 'queue', ...(ttl === undefined ? {} : { ttl }) });
    if (out.json) out.data(run);
    out.print(`Queued for ${counted(agents.length, 'agent')} as run ${sanitiseLine(run.run_id)}.`);
    out.note(`To see the progress: muster runs show ${sanitiseLine(run.run_id)}`);
    return exits.done;
  }
  const isGuarded = !isNamed && !remove;
  let plan: Run | null = null;
  if (!yes || isGuarded) {
    plan = await planFleet(context, call, agents, modules);
    if (!yes) await showPlans(context, call, plan);
    if (isGuarded) refuseRemovals(plan);
    if (!yes) {
      const changing = changingIn(plan);
      const which = changing.length === 1 ? sanitiseLine(changing[0]?.name ?? '') : counted(changing.length, 'agent');
      if (!(await agreeToPlans(context, plan, `this on ${which}`))) return exitOfRun(plan);
    }
  }
  // Binds the apply to the plan that was confirmed or checked, because the desired state may have changed since.
  const chosen = plan === null ? agents : yes ? plannedIn(context, plan) : changingIn(plan);
  const bound = plan === null ? {} : { plan_run_id: plan.run_id };
  const run = await seeRunThrough(context, call, {
    doing: `Applying on ${counted(chosen.length, 'agent')}:`,
    fanOut,
    begin: () => beginFleet(call, chosen, { ...options, ...bound }),
  });
  if (out.json) out.data(run);
  else await showOutcome(context, call, run);
  const exit = exitOfRun(run);
  // Agents whose plan failed count as failed.
  return exit === exits.done && plan !== null ? exitOfRun(plan) : exit;
}

/** Returns the agents whose plan succeeded, and reports the remaining agents. */
function plannedIn({ out }: Context, { results, run_id }: Run): Run['results'] {
  const planned = results.filter(({ status }) => status === 'succeeded');
  const others = results.filter(({ status }) => status !== 'succeeded');
  for (const one of others) out.note(outcomeLine(one, 'plan', out.noteColor));
  if (planned.length === 0)
    throw new CliError(
      exits.failed,
      'plan_failed',
      'no plan succeeded, so nothing was applied',
      `To see why: muster runs show ${sanitiseLine(run_id)}`,
    );
  if (others.length > 0)
    out.note(
      `Left out ${counted(others.length, 'agent')}: without a plan, removals there are unknown. Specify the modules with -m, or add --remove.`,
    );
  return planned;
}

/** Refuses to remove resources unless the operator named modules or passed --remove. */
function refuseRemovals(plan: Run): void {
  const removed = removedIn(plan);
  if (removed === 0) return;
  const agents = plan.results.filter(({ summary }) => (summary?.removed ?? 0) > 0).length;
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `without -m this would remove ${counted(removed, 'resource')} on ${counted(agents, 'agent')}; nothing was changed`,
    `To see which: muster runs show ${sanitiseLine(plan.run_id)}\nTo keep them, name their modules with -m. To remove them, add --remove.`,
  );
}
