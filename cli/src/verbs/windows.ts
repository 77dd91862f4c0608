import type { Client } from '@muster/protocol/client';
import { createWindow, listWindows, removeWindow, updateWindow, type Window } from '@muster/protocol/http';
import type { Context } from '../context.ts';
import { eachOf } from '../each.ts';
import { type Exit, usageError } from '../exit.ts';
import { findId } from '../find-id.ts';
import { sanitiseLine } from '../sanitise.ts';
import { duration } from '../style.ts';
import { parseDuration, parseTime } from '../values.ts';
import type { Register } from '../verb.ts';

const naming = '\nA window is named by its id, or the beginning or end of it if only one fits.\n';
const times = '\nTimes are like 2026-12-01T22:00:00Z; without Z or +01:00 they are those of this machine.\n';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('list maintenance windows, the one that starts last first')
    .addHelpText('after', '\nExample:\n  $ muster windows list')
    .action(act(list));
  command
    .command('add')
    .description(
      'plan a maintenance window: no channel is told of its agents, and what waits for windows may be applied',
    )
    .argument('<reason>')
    .option('--from <time>', 'when it starts; now when absent')
    .option('--until <time>', 'when it ends')
    .option('--for <duration>', 'how long it lasts, e.g. 2h')
    .option('--selector <selector>', 'which agents it is for; all when absent')
    .addHelpText('after', `${times}\nExample:\n  $ muster windows add "kernel updates" --for 2h --selector site=paris`)
    .action(act(add));
  command
    .command('end')
    .description('end open maintenance windows now')
    .argument('<windows...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster windows end 01KAGZ8S4F6G7H8J9K0M1N2P3Q`)
    .action(act(end));
  command
    .command('remove')
    .description('remove maintenance windows, as if they had not been planned')
    .argument('<windows...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster windows remove 01KAGZ8S4F6G7H8J9K0M1N2P3Q`)
    .action(act(remove));
};

const recent = (call: Client) => call(listWindows, { query: { limit: '500' } });

const when = ({ starts_at, ends_at }: Window, now: number): string =>
  now < starts_at
    ? `in ${duration(starts_at - now)}, for ${duration(ends_at - starts_at)}`
    : now < ends_at
      ? `open, ${duration(ends_at - now)} left`
      : `ended ${duration(now - ends_at)} ago`;

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const windows = await recent(call);
  if (out.json) {
    out.data(windows);
    return undefined;
  }
  if (windows.length === 0) {
    out.note('There is no maintenance window: muster windows add REASON --for 2h');
    return undefined;
  }
  out.table(
    [
      { heading: 'WINDOW', text: ({ id }) => id },
      { heading: 'WHEN', text: (window) => when(window, out.style.now) },
      {
        heading: 'FOR',
        text: ({ selector }) => (selector === null ? 'all agents' : selector || 'none'),
        flexible: true,
      },
      { heading: 'REASON', text: ({ reason }) => reason, flexible: true },
    ],
    windows,
  );
  return undefined;
}

interface AddOptions {
  from?: string;
  until?: string;
  for?: string;
  selector?: string;
}

async function add(context: Context, reason: string, options: AddOptions): Promise<undefined> {
  const { out } = context;
  if ((options.until === undefined) === (options.for === undefined))
    throw usageError('say when it ends', 'Give --until with a time, or --for with a length of time.');
  const starts_at = options.from === undefined ? Math.floor(context.now()) : parseTime(options.from);
  const ends_at = options.until === undefined ? starts_at + parseDuration(options.for ?? '') : parseTime(options.until);
  const { call } = await context.connect();
  const { selector } = options;
  const window = await call(createWindow, {
    body: { starts_at, ends_at, reason, ...(selector === undefined ? {} : { selector }) },
  });
  if (out.json) out.data(window);
  out.print(`Planned ${window.id}: ${when(window, out.style.now)}.`);
  return undefined;
}

const each =
  (act: (call: Client, id: string, context: Context) => Promise<string>, done: string) =>
  async (context: Context, wanted: string[]): Promise<Exit> => {
    const { out } = context;
    const { call } = await context.connect();
    const ids: string[] = [];
    const known = async () => (await recent(call)).map(({ id }) => id);
    const exit = await eachOf(
      context,
      wanted,
      (id) => id,
      async (one) => {
        const id = await findId('maintenance window', 'muster windows list', one, known);
        out.print(await act(call, id, context));
        ids.push(id);
      },
    );
    if (out.json) out.data({ [done]: ids });
    return exit;
  };

const end = each(async (call, id, { now }) => {
  const window = await call(updateWindow, { params: { id }, body: { ends_at: Math.floor(now()) } });
  return `Ended ${sanitiseLine(window.reason)}.`;
}, 'ended');

const remove = each(async (call, id) => {
  await call(removeWindow, { params: { id } });
  return `Removed ${sanitiseLine(id)}.`;
}, 'removed');
