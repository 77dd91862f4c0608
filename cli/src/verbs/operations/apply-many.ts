import type { Client } from '@muster/protocol/client';
import type { Agent, Run } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { outcomeLine, type Pace } from '../../execution/apply-view.ts';
import { agreeToPlans, beginFleet, changingIn, planFleet, showOutcome, showPlans } from '../../execution/fleet.ts';
import { removedIn } from '../../execution/run-text.ts';
import { exitOfRun, seeRunThrough } from '../../execution/run-through.ts';
import { CliError, type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';

interface Wish {
  modules: readonly string[];
  pace: Pace & { max_failures?: number };
  yes: boolean;
  remove: boolean;
  queue: boolean;
  /** Seconds that agents that are away are waited for. */
  ttl: number | undefined;
}

/**
 * An apply on several agents: their plans, one question, then exactly those plans as one run. Who has nothing to do, and
 * whose plan failed, is left out.
 */
export async function applyToMany(
  context: Context,
  call: Client,
  agents: readonly Agent[],
  { modules, pace, yes, remove, queue, ttl }: Wish,
): Promise<Exit> {
  const { out } = context;
  const wish = { kind: 'apply' as const, modules, pace };
  if (queue) {
    const run = await beginFleet(call, agents, { ...wish, offline: 'queue', ...(ttl === undefined ? {} : { ttl }) });
    if (out.json) out.data(run);
    out.print(`Handed over to ${counted(agents.length, 'agent')} as run ${sanitiseLine(run.run_id)}.`);
    out.note(`See what becomes of it: muster runs show ${sanitiseLine(run.run_id)}`);
    return exits.done;
  }
  const isGuarded = modules.length === 0 && !remove;
  let plan: Run | null = null;
  if (!yes || isGuarded) {
    plan = await planFleet(context, call, agents, modules);
    if (!yes) await showPlans(context, call, plan);
    if (isGuarded) refuseRemovals(plan, yes);
    if (!yes) {
      const changing = changingIn(plan);
      const which = changing.length === 1 ? sanitiseLine(changing[0]?.name ?? '') : counted(changing.length, 'agent');
      if (!(await agreeToPlans(context, plan, `this on ${which}`))) return exitOfRun(plan);
    }
  }
  // What was agreed to, or found to remove nothing, is what is done: what is wanted may change in between.
  const chosen = plan === null ? agents : yes ? plannedIn(context, plan) : changingIn(plan);
  const bound = plan === null ? {} : { plan_run_id: plan.run_id };
  const run = await seeRunThrough(context, call, {
    doing: `Applying on ${counted(chosen.length, 'agent')}:`,
    pace,
    begin: () => beginFleet(call, chosen, { ...wish, ...bound }),
  });
  if (out.json) out.data(run);
  else await showOutcome(context, call, run);
  const exit = exitOfRun(run);
  // Who could not be planned was asked for, and has nothing of it.
  return exit === exits.done && plan !== null ? exitOfRun(plan) : exit;
}

/** Who can be held to a plan; the others are told of, and left out. */
function plannedIn({ out }: Context, { results, run_id }: Run): Run['results'] {
  const planned = results.filter(({ status }) => status === 'succeeded');
  const others = results.filter(({ status }) => status !== 'succeeded');
  for (const one of others) out.note(outcomeLine(one, out.noteColor));
  if (planned.length === 0)
    throw new CliError(
      exits.failed,
      'plan_failed',
      'no plan succeeded, so nothing was applied',
      `See why: muster runs show ${sanitiseLine(run_id)}`,
    );
  if (others.length > 0)
    out.note(
      `Left out, since it is not sure that nothing would be removed there: ${counted(others.length, 'agent')}. Name the modules with -m, or add --remove.`,
    );
  return planned;
}

/** Refuses what takes something away from machines without anybody having named what stays. */
function refuseRemovals(plan: Run, yes: boolean): void {
  const removed = removedIn(plan);
  if (removed === 0) return;
  const agents = plan.results.filter(({ summary }) => (summary?.removed ?? 0) > 0).length;
  throw new CliError(
    exits.failed,
    'removal_not_agreed',
    `without -m this would remove ${counted(removed, 'resource')} on ${counted(agents, 'agent')}; nothing was changed`,
    `To keep what is there, name its modules with -m. To remove it, add --remove${yes ? '' : ': you are asked again'}.\nSee which: muster runs show ${sanitiseLine(plan.run_id)}`,
  );
}
