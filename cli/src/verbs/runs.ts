import type { Client } from '@muster/protocol/client';
import { getRun, listRuns } from '@muster/protocol/http';
import type { Context } from '../context.ts';
import { findId } from '../find-id.ts';
import { paintedBy, printRun } from '../run-text.ts';
import { ago } from '../style.ts';
import { parseCount } from '../values.ts';
import type { Register } from '../verb.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('list runs, newest first')
    .option('--limit <n>', 'at most so many', '50')
    .addHelpText('after', '\nExample:\n  $ muster runs list --limit 10')
    .action(act(list));
  command
    .command('show')
    .description('show a run with the outcome of each agent')
    .argument('<run>', 'its id, or the beginning or end of it if only one recent run fits')
    .addHelpText('after', '\nExample:\n  $ muster runs show 01KAGZ5R3E5F6G7H8J9K0M1N2P')
    .action(act(show));
};

const recent = (call: Client, limit: number) => call(listRuns, { query: { limit: String(limit) } });

async function list(context: Context, options: { limit: string }): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const { call } = await context.connect();
  const runs = await recent(call, limit);
  if (out.json) {
    out.data(runs);
    return undefined;
  }
  if (runs.length === 0) {
    out.note('There is no run yet: muster assignments plan NAME');
    return undefined;
  }
  out.table(
    [
      { heading: 'RUN', text: ({ run_id }) => run_id },
      { heading: 'ASSIGNMENT', text: ({ assignment }) => assignment, flexible: true },
      { heading: 'KIND', text: ({ kind }) => kind },
      {
        heading: 'STATUS',
        text: ({ status }) => status,
        paint: (text, { status }, { color }) => paintedBy(status, color)(text),
      },
      { heading: 'WHEN', text: ({ started_at }) => ago(started_at, out.style.now) },
    ],
    runs,
  );
  return undefined;
}

async function show(context: Context, wanted: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const run_id = await findId('run', 'muster runs list', wanted, async () =>
    (await recent(call, 500)).map(({ run_id: id }) => id),
  );
  const run = await call(getRun, { params: { run_id } });
  if (out.json) out.data(run);
  else printRun(run, out);
  return undefined;
}
