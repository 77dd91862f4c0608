import type { Client } from '@muster/protocol/client';
import { createWindow, getWindow, listWindows, removeWindow, updateWindow, type Window } from '@muster/protocol/http';
import { confirmRemoval } from '../../context/confirm.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import { type Exit, usageError } from '../../exit.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { duration, listedId, timestamp } from '../../text/style.ts';
import { parseDuration, parseMoment } from '../../text/values.ts';

const naming = '\nSpecify a window by its id, or the beginning or end of the id if only one matches.\n';
const times =
  '\nSpecify a time such as 2026-12-01T22:00:00Z, a day such as 2026-12-01, or a duration from now such as 2h. A time\nwithout Z or +01:00 is local time. With a day, --until includes that day.\n';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List maintenance windows, the latest start first')
    .addHelpText('after', '\nExample:\n  $ muster maintenance list')
    .action(act(list));
  command
    .command('add')
    .description(
      'Add a maintenance window: its agents send no notifications to channels, and window-only assignments may be applied',
    )
    .argument('<reason>')
    .option('--from <time>', 'Start time; now by default')
    .option('--until <time>', 'End')
    .option('--for <duration>', 'How long it lasts, e.g. 2h')
    .option('-l, --selector <selector>', 'Agents that the window covers; default: all')
    .addHelpText(
      'after',
      `${times}\nExample:\n  $ muster maintenance add "kernel updates" --for 2h --selector site=paris`,
    )
    .action(act(add));
  command
    .command('show')
    .description('Show a maintenance window')
    .argument('<window>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster maintenance show 01KAGZ8S4F6G7H8J9K0M1N2P3Q`)
    .action(act(show));
  command
    .command('update')
    .description('Change the end or the reason of a maintenance window')
    .argument('<window>')
    .option('--until <time>', 'New end')
    .option('--for <duration>', 'New duration from its start, e.g. 4h')
    .option('--reason <text>', 'New reason')
    .addHelpText(
      'after',
      `${naming}${times}\nTo change the start or the agents, remove the window and add another.\n\nExample:\n  $ muster maintenance update 01KAGZ8S4F6G7H8J9K0M1N2P3Q --for 4h`,
    )
    .action(act(update));
  command
    .command('end')
    .description('End open maintenance windows now')
    .argument('<windows...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster maintenance end 01KAGZ8S4F6G7H8J9K0M1N2P3Q`)
    .action(act(end));
  command
    .command('remove')
    .description('Remove maintenance windows')
    .argument('<windows...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', `${naming}\nExample:\n  $ muster maintenance remove 01KAGZ8S4F6G7H8J9K0M1N2P3Q`)
    .action(act(remove));
};

const recent = (call: Client) => call(listWindows, { query: { limit: '500' } });

const stateOf = ({ starts_at, ends_at }: Window, now: number): string =>
  now < starts_at
    ? `in ${duration(starts_at - now)}, for ${duration(ends_at - starts_at)}`
    : now < ends_at
      ? `open, ${duration(ends_at - now)} left`
      : `ended ${duration(now - ends_at)} ago`;

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const windows = await recent(call);
  if (out.json) return out.data(windows);
  if (windows.length === 0)
    return out.note('There are no maintenance windows. Add one: muster maintenance add REASON --for 2h');
  out.table(
    [
      { heading: 'WINDOW', text: ({ id }) => listedId(id, out.style) },
      { heading: 'WHEN', text: (window) => stateOf(window, out.style.now) },
      {
        heading: 'AGENTS',
        text: ({ selector }) => (selector === null ? 'all agents' : selector || 'none'),
        flexible: true,
      },
      { heading: 'REASON', text: ({ reason }) => reason, flexible: true },
    ],
    windows,
  );
}

interface AddOptions {
  from?: string;
  until?: string;
  for?: string;
  selector?: string;
}

async function add(context: Context, reason: string, options: AddOptions): Promise<undefined> {
  const { out } = context;
  if (options.until !== undefined && options.for !== undefined)
    throw usageError('--until cannot be combined with --for', 'Drop one of them.');
  if (options.until === undefined && options.for === undefined)
    throw usageError('--until or --for is missing', 'Specify --until with a time, or --for with a duration.');
  const starts_at =
    options.from === undefined ? Math.floor(context.now()) : parseMoment(options.from, context.now(), 'from');
  const ends_at =
    options.until === undefined
      ? starts_at + parseDuration(options.for ?? '')
      : parseMoment(options.until, context.now(), 'until');
  const { call } = await context.connect();
  const { selector } = options;
  const window = await call(createWindow, {
    body: { starts_at, ends_at, reason, ...(selector === undefined ? {} : { selector }) },
  });
  if (out.json) out.data(window);
  out.print(`Added ${sanitiseLine(window.id)}: ${stateOf(window, out.style.now)}.`);
  warnOf(out, window);
}

const warnOf = (out: Context['out'], { warnings = [] }: Window): void => {
  for (const warning of warnings) out.warn(sanitiseLine(warning));
};

const findWindow = (call: Client, idPart: string): Promise<string> =>
  findId('maintenance window', 'muster maintenance list', idPart, async () => (await recent(call)).map(({ id }) => id));

async function show(context: Context, idPart: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const window = await call(getWindow, { params: { id: await findWindow(call, idPart) } });
  if (out.json) return out.data(window);
  const { id, starts_at, ends_at, reason, created_by, selector } = window;
  const names = await operatorNames(call);
  out.print(`${out.style.color.bold(sanitiseLine(reason))}  ${stateOf(window, out.style.now)}`);
  out.print(`window   ${sanitiseLine(id)}`);
  out.print(`starts   ${timestamp(starts_at)}`);
  out.print(`ends     ${timestamp(ends_at)}`);
  out.print(`agents   ${sanitiseLine(selector === null ? 'all agents' : selector || 'no agent')}`);
  warnOf(out, window);
  out.print(`creator  ${sanitiseLine(names.get(created_by) ?? created_by)}`);
}

async function update(
  context: Context,
  idPart: string,
  options: { until?: string; for?: string; reason?: string },
): Promise<undefined> {
  const { out } = context;
  const { until, reason } = options;
  if (until !== undefined && options.for !== undefined) throw usageError('--until cannot be combined with --for');
  if (until === undefined && options.for === undefined && reason === undefined)
    throw usageError('no change was specified', 'Specify --until, --for, or --reason.');
  const lasts = options.for === undefined ? undefined : parseDuration(options.for);
  const end = until === undefined ? undefined : parseMoment(until, context.now(), 'until');
  const { call } = await context.connect();
  const id = await findWindow(call, idPart);
  const starts = lasts === undefined ? 0 : (await call(getWindow, { params: { id } })).starts_at;
  const ends_at = lasts === undefined ? end : starts + lasts;
  const window = await call(updateWindow, {
    params: { id },
    body: { ...(ends_at === undefined ? {} : { ends_at }), ...(reason === undefined ? {} : { reason }) },
  });
  if (out.json) out.data(window);
  out.print(`Changed ${sanitiseLine(window.reason)}: ${stateOf(window, out.style.now)}.`);
}

const each =
  (act: (call: Client, id: string, context: Context) => Promise<string>, done: string) =>
  async (context: Context, idParts: string[]): Promise<Exit> => {
    const { out } = context;
    const { call } = await context.connect();
    const ids: string[] = [];
    const exit = await eachNamed(context, idParts, async (one) => {
      const id = await findWindow(call, one);
      out.print(await act(call, id, context));
      ids.push(id);
    });
    if (out.json) out.data({ [done]: ids });
    return exit;
  };

const end = each(async (call, id, { now }) => {
  const window = await call(updateWindow, { params: { id }, body: { ends_at: Math.floor(now()) } });
  return `Ended ${sanitiseLine(window.reason)}.`;
}, 'ended');

const removeThem = each(async (call, id) => {
  await call(removeWindow, { params: { id } });
  return `Removed ${sanitiseLine(id)}.`;
}, 'removed');

async function remove(context: Context, idParts: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  await confirmRemoval(context, idParts, { yes, noun: 'maintenance window' });
  return removeThem(context, idParts);
}
