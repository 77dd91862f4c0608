import type { Client } from '@muster/protocol/client';
import { cancelRun, getRun, listRuns, type Run, runKinds, runStatuses } from '@muster/protocol/http';
import { runOutcomesText } from '../../../../client/src/run-outcomes.ts';
import { statusText } from '../../../../client/src/status-text.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { paintedBy, printRun } from '../../execution/run-text.ts';
import { exitOfRun, seeRunThrough } from '../../execution/run-through.ts';
import { watchOption } from '../../execution/watch-option.ts';
import type { Exit } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted, listedId, when } from '../../text/style.ts';
import { parseChoice, parseCount } from '../../text/values.ts';
import { findRun } from './find-run.ts';
import { registerRetry } from './runs-retry.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List runs, newest first')
    .option('--status <status>', `Status: ${runStatuses.join(', ')}`)
    .option('--kind <kind>', `Kind: ${runKinds.join(', ')}`)
    .option('--assignment <name>', 'Only runs of this assignment')
    .option('--limit <n>', 'Maximum number', '50')
    .addOption(watchOption())
    .addHelpText('after', '\nExample:\n  $ muster runs list --status halted')
    .action(act(list));
  command
    .command('show')
    .description('Show a run with the outcome of each agent')
    .argument('<run>', 'the id, or the beginning or end of it if only one recent run matches')
    .addOption(watchOption())
    .addHelpText('after', '\nExample:\n  $ muster runs show 01KAGZ5R3E5F6G7H8J9K0M1N2P')
    .action(act(show));
  command
    .command('follow')
    .description('Follow a run, and exit with its exit code')
    .argument('<run>', 'the id, or the beginning or end of it if only one recent run matches')
    .addHelpText('after', '\nExample:\n  $ muster runs follow 01KAGZ5R3E5F6G7H8J9K0M1N2P')
    .action(act(follow));
  command
    .command('cancel')
    .description('Cancel runs: waiting agents are skipped, running operations are canceled')
    .argument('<runs...>', 'their ids, or the beginning or end of one if only one recent run matches')
    .addHelpText('after', '\nExample:\n  $ muster runs cancel 01KAGZ5R3E5F6G7H8J9K0M1N2P')
    .action(act(cancel));
  registerRetry(command, act);
};

type RunFilter = { status?: Run['status']; kind?: Run['kind']; assignment?: string };

const recent = (call: Client, limit: number, filter: RunFilter = {}) =>
  call(listRuns, { query: { limit: String(limit), ...filter }, atMost: limit });

async function list(
  context: Context,
  options: { limit: string; status?: string; kind?: string; assignment?: string },
): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const { assignment } = options;
  const status = options.status === undefined ? undefined : parseChoice('--status', options.status, runStatuses);
  const kind = options.kind === undefined ? undefined : parseChoice('--kind', options.kind, runKinds);
  const filter = {
    ...(status === undefined ? {} : { status }),
    ...(kind === undefined ? {} : { kind }),
    ...(assignment === undefined ? {} : { assignment }),
  };
  const { call } = await context.connect();
  const runs = await recent(call, limit, filter);
  if (out.json) return out.data(runs);
  if (runs.length === 0)
    return out.note(
      Object.keys(filter).length > 0
        ? 'No run matches.'
        : 'There are no runs yet. Start one: muster assignments plan NAME',
    );
  out.table(
    [
      { heading: 'RUN', text: ({ run_id }) => listedId(run_id, out.style) },
      { heading: 'ASSIGNMENT', text: ({ assignment }) => assignment, flexible: true },
      { heading: 'KIND', extra: true, text: ({ kind }) => kind },
      {
        heading: 'STATUS',
        text: ({ status }) => statusText(status),
        paint: (text, { status }, { color }) => paintedBy(status, color)(text),
      },
      {
        heading: 'AGENTS',
        text: ({ outcomes }) => runOutcomesText(outcomes),
        flexible: true,
        paint: (text, { outcomes }, { color }) => (outcomes.failed > 0 ? color.red(text) : text),
      },
      { heading: 'WHEN', text: ({ started_at }) => when(started_at, out.style) },
    ],
    runs,
  );
}

async function show(context: Context, idPart: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const run = await call(getRun, { params: { run_id: await findRun(call, idPart) } });
  if (out.json) out.data(run);
  else printRun(run, out);
}

async function follow(context: Context, idPart: string): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const run_id = await findRun(call, idPart);
  const current = await call(getRun, { params: { run_id } });
  const run = await seeRunThrough(context, call, {
    doing: `${current.kind === 'plan' ? 'Planning' : 'Applying'} on ${counted(current.results.length, 'agent')}:`,
    begin: async () => current,
  });
  if (out.json) out.data(run);
  else printRun(run, out);
  return exitOfRun(run);
}

async function cancel(context: Context, idParts: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const cancelled: Run[] = [];
  const exit = await eachNamed(context, idParts, async (id) => {
    const run = await call(cancelRun, { params: { run_id: await findRun(call, id) } });
    cancelled.push(run);
    const left = run.results.filter(({ status }) => status === 'running' || status === 'queued').length;
    const rest =
      left === 0 ? '' : ` ${left === 1 ? '1 agent stops' : `${left} agents stop`} after the current resource.`;
    out.print(`Canceled ${sanitiseLine(run.run_id)}.${rest}`);
  });
  if (out.json) out.data(cancelled);
  return exit;
}
