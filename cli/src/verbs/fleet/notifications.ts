import { eventSentence } from '@muster/protocol/event-sentence';
import { listNotifications, maxUnreadCounted, readAllNotifications, readNotification } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted, listedId, when, withRelativeTimes } from '../../text/style.ts';
import { parseCount } from '../../text/values.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List notifications, newest first')
    .option('--unread', 'Only those you have not read')
    .option('--limit <n>', 'Maximum number', '50')
    .addOption(watchOption())
    .addHelpText('after', '\nExample:\n  $ muster notifications list --unread')
    .action(act(list));
  command
    .command('read')
    .description('Mark notifications as read, for your account only')
    .argument(
      '[ids...]',
      'Ids of notifications, or the beginning or end of an id if only one recent notification matches',
    )
    .option('--all', 'Mark all notifications')
    .addHelpText('after', '\nExample:\n  $ muster notifications read --all')
    .action(act(read));
};

async function list(context: Context, options: { unread?: boolean; limit: string }): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const { call } = await context.connect();
  const page = await call(listNotifications, {
    query: { limit: String(limit), ...(options.unread ? { unread: 'true' as const } : {}) },
  });
  if (out.json) return out.data(page);
  if (page.notifications.length === 0)
    return out.note(options.unread ? 'You have no unread notifications.' : 'There are no notifications yet.');
  out.table(
    [
      { heading: '', text: ({ read: seen }) => (seen ? ' ' : '•') },
      {
        heading: 'SEVERITY',
        extra: true,
        text: ({ severity }) => severity,
        paint: (text, { severity }, { color }) =>
          severity === 'critical' ? color.red(text) : severity === 'warning' ? color.yellow(text) : text,
      },
      { heading: 'WHEN', text: ({ timestamp_ms }) => when(Math.floor(timestamp_ms / 1000), out.style) },
      {
        heading: 'SUMMARY',
        text: (notification) =>
          `${withRelativeTimes(eventSentence(notification), out.style)}${notification.suppressed ? ' (in a maintenance window)' : ''}`,
        flexible: true,
        wraps: true,
        wants: 24,
      },
      { heading: 'NOTIFICATION', text: ({ id }) => listedId(id, out.style), extra: true },
    ],
    page.notifications,
  );
  const { unread_count: unread } = page;
  out.note(
    unread >= maxUnreadCounted
      ? `${unread} or more are unread.`
      : unread === 0
        ? 'None are unread.'
        : `${counted(unread, 'notification')} unread.`,
  );
}

async function read(context: Context, ids: string[], options: { all?: boolean }): Promise<Exit> {
  const { out } = context;
  if (options.all === true ? ids.length > 0 : ids.length === 0)
    throw usageError(
      'no notification was named',
      'Specify ids, or use --all. To list the ids: muster notifications list --unread',
    );
  const { call } = await context.connect();
  if (options.all) {
    await call(readAllNotifications, {});
    if (out.json) out.data({ read: 'all' });
    out.print('Marked all as read.');
    return exits.done;
  }
  const marked: string[] = [];
  const recent = async () =>
    (await call(listNotifications, { query: { limit: '500' } })).notifications.map(({ id }) => id);
  const exit = await eachNamed(context, ids, async (each) => {
    const id = await findId('notification', 'muster notifications list', each, recent);
    await call(readNotification, { params: { id } });
    marked.push(id);
    out.print(`Marked ${sanitiseLine(id)} as read.`);
  });
  if (out.json) out.data({ read: marked });
  return exit;
}
