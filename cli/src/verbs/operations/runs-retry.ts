import type { Client } from '@muster/protocol/client';
import { getRun, listAudit, type Run } from '@muster/protocol/http';
import type { Command } from 'commander';
import { runOutcomeOf } from '../../../../client/src/run-outcomes.ts';
import { statusText } from '../../../../client/src/status-text.ts';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
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
      .option('--remove', 'Allow removing resources no longer assigned'),
  )
    .addHelpText(
      'after',
      '\nStarts a new run on these agents, with their current desired state and the modules of the run. Shows the plan, and asks.\n\nExample:\n  $ muster runs retry 01KAGZ5R3E5F6G7H8J9K0M1N2P',
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
  const fanOut = fanOutOf(options);
  const { call } = await context.connect();
  const run = await call(getRun, { params: { run_id: await findRun(call, idPart) } });
  const id = sanitiseLine(run.run_id);
  if (run.kind !== 'apply')
    throw usageError(`run ${id} is a plan`, 'Only an apply can be retried. To plan again: muster plan');
  if (run.status === 'running')
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
  const modules = options.module ?? (await modulesOf(call, run));
  return await applyToMany(context, call, chosen, { modules, fanOut, yes, remove, queue: false, ttl: undefined });
}

/**
 * Returns the modules that a run was started with. Runs of assignments have none, because each agent gets the modules
 * of its assignments.
 */
async function modulesOf(call: Client, { run_id, started_at, assignment }: Run): Promise<string[]> {
  if (assignment !== null) return [];
  const at = (seconds: number) => new Date((started_at + seconds) * 1000).toISOString();
  // Only the audit log keeps the modules. The event is written in the same second as the run, or the next.
  const { events } = await call(listAudit, {
    query: { event_type: 'run.started', after: at(-2), before: at(5), limit: '500' },
  });
  const modules = events.find(({ target }) => target.id === run_id)?.metadata.modules;
  if (Array.isArray(modules)) return modules.filter((name) => typeof name === 'string');
  throw new CliError(
    exits.failed,
    'run_modules_unknown',
    'the audit log no longer contains the modules of this run',
    'Name them with -m, or apply the assigned modules: muster apply AGENTS',
  );
}
