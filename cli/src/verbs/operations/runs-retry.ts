import type { Client } from '@muster/protocol/client';
import { getRun, listAgents, listAudit, type Run } from '@muster/protocol/http';
import type { Command } from 'commander';
import { runOutcomeOf } from '../../../../client/src/run-outcomes.ts';
import { statusText } from '../../../../client/src/status-text.ts';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import type { FanOut } from '../../execution/apply-view.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { applyToMany } from './apply-many.ts';
import { type FanOutOptions, fanOutOf, fanOutOptions } from './fan-out.ts';
import { findRun } from './find-run.ts';
import { moduleOption } from './plan.ts';

interface Options extends FanOutOptions {
  includeSkipped?: boolean;
  module?: string[];
  yes?: boolean;
  remove?: boolean;
}

export const registerRetry = (command: Command, act: Act): void => {
  fanOutOptions(
    command
      .command('retry')
      .description('Apply again on the failed agents of a run')
      .argument('<run>', 'the id, or the beginning or end of it if only one recent run matches')
      .option('--include-skipped', 'Include the agents that were skipped or canceled')
      .addOption(moduleOption('Module; by default those of the run'))
      .option('-y, --yes', 'Apply without showing the plan or asking')
      .option('--remove', 'Without -m: allow removing unassigned resources'),
  )
    .addHelpText(
      'after',
      '\nStarts a new run on these agents, with their current desired state, and the modules and the pace of the\nrun. Shows the plan, and asks. Agents that are no longer approved are left out.\n\nExample:\n  $ muster runs retry 01KAGZ5R3E5F6G7H8J9K0M1N2P',
    )
    .action(act(retry));
};

async function retry(context: Context, idPart: string, options: Options): Promise<Exit> {
  const { out, prompt } = context;
  const { yes = false, remove = false, includeSkipped = false } = options;
  if (!yes && (!prompt.interactive || out.json))
    throw usageError(
      'the plan needs confirmation, but there is no terminal to ask on',
      'To apply without asking: --yes. To see the run first: muster runs show',
    );
  const typedPace = fanOutOf(options);
  const { call } = await context.connect();
  const run = await call(getRun, { params: { run_id: await findRun(call, idPart) } });
  const id = sanitiseLine(run.run_id);
  if (run.kind !== 'apply')
    throw usageError(`run ${id} is a plan`, 'Only an apply can be retried. To plan again: muster plan');
  // Operations of a halted or canceled run may still be open.
  if (run.finished_at === null)
    throw new CliError(
      exits.failed,
      'run_not_ended',
      `run ${id} has not ended`,
      `To follow it: muster runs follow ${id}`,
    );
  const chosen = run.results.filter((result) => {
    const outcome = runOutcomeOf(result);
    return outcome === 'failed' || (includeSkipped && (outcome === 'skipped' || outcome === 'cancelled'));
  });
  if (chosen.length === 0) {
    const left = run.results.filter((result) => ['skipped', 'cancelled'].includes(runOutcomeOf(result))).length;
    if (out.json) out.data(run);
    out.note(
      left === 0
        ? `No agent of this run failed: it is ${statusText(run.status)}.`
        : `No agent of this run failed. To apply on the skipped and canceled agents: muster runs retry ${id} --include-skipped`,
    );
    return exits.done;
  }
  const metadata = await startOf(call, run);
  const modules = options.module ?? modulesOf(run, metadata);
  if (metadata === undefined && Object.keys(typedPace).length === 0)
    out.note('The audit log no longer contains the pace of this run. To set it: --canary, --batch, --max-failures.');
  const agents = await stillApproved(context, call, chosen);
  return await applyToMany(context, call, agents, {
    ...{ modules, isNamed: options.module !== undefined, yes, remove, queue: false, ttl: undefined },
    fanOut: { ...paceOf(metadata), ...typedPace },
  });
}

/** Leaves out removed and rejected agents, on which an apply would be refused, and says so. */
async function stillApproved({ out }: Context, call: Client, chosen: Run['results']): Promise<Run['results']> {
  const approved = new Set((await call(listAgents, { query: { status: 'approved' } })).map(({ node_id }) => node_id));
  const agents = chosen.filter(({ node_id }) => approved.has(node_id));
  const left = counted(chosen.length - agents.length, 'agent');
  if (agents.length === 0)
    throw new CliError(
      exits.failed,
      'no_agents',
      `no agent can be retried: ${left} no longer approved`,
      'List the agents: muster agents list',
    );
  if (agents.length < chosen.length) out.note(`Left out ${left} no longer approved.`);
  return agents;
}

/** Values that a run was started with. */
type Metadata = Readonly<Record<string, unknown>>;

/** Returns the values that a run was started with; undefined if the audit log no longer contains them. */
async function startOf(call: Client, { run_id, started_at }: Run): Promise<Metadata | undefined> {
  const at = (seconds: number) => new Date((started_at + seconds) * 1000).toISOString();
  // Only the audit log shows these values. The event is written in the same second as the run, or the next.
  const { events } = await call(listAudit, {
    query: { event_type: 'run.started', after: at(-2), before: at(5), limit: '500' },
  });
  return events.find(({ target }) => target.id === run_id)?.metadata;
}

/** Returns the pace of a run, which the options of a retry replace. */
const paceOf = ({ canary, batch, max_failures }: Metadata = {}): FanOut & { max_failures?: number } => ({
  // The event contains 0 for a run without a canary.
  ...(typeof canary === 'number' && canary > 0 ? { canary } : {}),
  ...(typeof batch === 'number' ? { batch } : {}),
  ...(typeof max_failures === 'number' ? { max_failures } : {}),
});

/**
 * Returns the modules that a run was started with. Runs of assignments have none, because each agent gets the modules
 * of its assignments.
 */
function modulesOf({ assignment }: Run, metadata: Metadata | undefined): string[] {
  if (assignment !== null) return [];
  const modules = metadata?.modules;
  if (Array.isArray(modules)) return modules.filter((name) => typeof name === 'string');
  throw new CliError(
    exits.failed,
    'run_modules_unknown',
    'the audit log no longer contains the modules of this run',
    'Name them with -m, or apply the assigned modules: muster apply AGENTS',
  );
}
