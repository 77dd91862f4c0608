import { eventSentence } from '@muster/protocol/event-sentence';
import {
  type AuditEvent,
  exportAudit,
  getAuditRetention,
  listAudit,
  pruneAudit,
  setAuditRetention,
  verifyAudit,
} from '@muster/protocol/http';
import type { Command } from 'commander';
import { confirmed } from '../../context/confirm.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { actorOf, eventLine, eventWhen, severityPaint } from '../../text/event-text.ts';
import { sanitise, sanitiseLine, toJson } from '../../text/sanitize.ts';
import { counted, withRelativeTimes } from '../../text/style.ts';
import { parseCount, parseMoment } from '../../text/values.ts';
import { auditEventOf, type FollowOptions, follow } from './events.ts';

const times =
  '\nSpecify a time as a duration before now, such as 30m, 2h, or 7d, or as a date or timestamp, such as 2026-12-01 or\n2026-12-01T22:00:00Z.\n';

const withFilters = (command: Command): Command =>
  command
    .option('--agent <agent>', 'Events of which this agent is the target or the actor')
    .option('--operator <operator>', 'Actions of this operator (id or username)')
    .option('--type <type>', 'Events of one type, e.g. agent.approved')
    .option('--category <category>', 'Events of one category, e.g. agent')
    .option('--since <time>', 'Events from this time on')
    .option('--until <time>', 'Events before this time');

export const register: Register = (command, act) => {
  withFilters(command.command('list').description('List events, newest first'))
    .option('--limit <n>', 'Maximum number', '50')
    .option('--cursor <cursor>', 'Continue after this cursor, from next_cursor of --json')
    .addHelpText('after', `${times}\nExample:\n  $ muster audit list --since 2h --operator ada`)
    .action(act(list));
  command
    .command('follow')
    .description('Show events as they happen')
    .option('--category <categories>', 'Only these categories, separated by commas')
    .option('--agent <agent>', 'Events of one agent')
    .option('--after <place>', 'Start after this position in the log instead of now')
    .addHelpText(
      'after',
      '\nRuns until you press Ctrl-C. If the connection is lost, reconnects without missing\nan event. With --json, each line is an event in the format of `audit export`.\n\nExample:\n  $ muster audit follow --category auth,operator',
    )
    .action(act(followLog));
  command
    .command('verify')
    .description('Verify every hash of the log')
    .addHelpText(
      'after',
      '\nExits with 1 if the chain is broken. Keep the position and the hash of the head elsewhere: a log that was rewritten as a whole is\nconsistent, but no longer has that hash at that position.\n\nExample:\n  $ muster audit verify',
    )
    .action(act(verify));
  withFilters(command.command('export').description('Write the log as JSON lines, in the order of its chain'))
    .option('-o, --output <file>', 'Output file; - is standard output', '-')
    .addHelpText(
      'after',
      `${times}\nThe file is written completely or not at all; with standard output, the exit code shows whether the log was complete.\n\nExample:\n  $ muster audit export --since 30d -o audit.jsonl`,
    )
    .action(act(exportLog));
  command
    .command('prune')
    .description('Remove old events permanently; the rest can still be verified')
    .requiredOption('--before <time>', 'Remove events older than this')
    .option('--dry-run', 'Print how many events would be removed, without removing any')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', `${times}\nExample:\n  $ muster audit prune --before 365d`)
    .action(act(prune));
  const retention = command.command('retention').description('Show or change how long events are kept');
  retention
    .command('show')
    .description('Show the number of days that `retention set` stored')
    .addHelpText('after', '\nExample:\n  $ muster audit retention show')
    .action(act(showRetention));
  retention
    .command('set')
    .description('Keep events for this many days, overriding the configuration')
    .argument('<days>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  $ muster audit retention set 365')
    .action(act(setRetention));
  retention
    .command('off')
    .description('Keep all events, overriding the configuration')
    .addHelpText('after', '\nExample:\n  $ muster audit retention off')
    .action(act((context: Context) => keep(context, unlimitedDays, { yes: true })));
  retention
    .command('clear')
    .description('Discard the stored number of days; audit.retention_days of the configuration applies again')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  $ muster audit retention clear')
    .action(act((context: Context, options: { yes?: boolean }) => keep(context, null, options)));
  retention.helpCommand(false);
};

interface Filters {
  agent?: string;
  operator?: string;
  type?: string;
  category?: string;
  since?: string;
  until?: string;
}

const rfc3339 = (seconds: number): string => new Date(seconds * 1000).toISOString();

/** Returns the filters as query parameters of the API. A removed agent can only be identified by its complete ID. */
async function queryOf(context: Context, options: Filters): Promise<Record<string, string>> {
  const { now } = context;
  const { operator, type, category, since, until } = options;
  // Parses the options first, so that a typo causes an error before the sign-in.
  const after = since === undefined ? undefined : rfc3339(parseMoment(since, now()));
  const before = until === undefined ? undefined : rfc3339(parseMoment(until, now()));
  let { agent } = options;
  if (agent !== undefined && !/^[0-9a-f]{32}$/i.test(agent))
    agent = (await chooseAgent((await context.connect()).call, agent)).node_id;
  const query = { agent: agent?.toLowerCase(), operator, event_type: type, category, after, before };
  return Object.fromEntries(Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

const maxListed = 100_000;

async function list(context: Context, options: Filters & { limit: string; cursor?: string }): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, maxListed);
  const filter = await queryOf(context, options);
  const { call } = await context.connect();
  const progress = out.progress('reading the audit log');
  const found: AuditEvent[] = [];
  let cursor: string | null = options.cursor ?? null;
  let hasMore = true;
  try {
    while (hasMore && found.length < limit) {
      const page: { events: AuditEvent[]; has_more: boolean; next_cursor: string | null } = await call(listAudit, {
        query: {
          ...filter,
          limit: String(Math.min(500, limit - found.length)),
          ...(cursor === null ? {} : { cursor }),
        },
      });
      found.push(...page.events);
      ({ has_more: hasMore, next_cursor: cursor } = page);
    }
  } finally {
    progress.end();
  }
  if (out.json) return out.data({ events: found, has_more: hasMore, next_cursor: cursor });
  if (found.length === 0)
    return out.note(Object.keys(filter).length === 0 ? 'There are no events yet.' : 'No event matches.');
  out.table(
    [
      { heading: 'WHEN', text: (event) => eventWhen(event, out.style) },
      {
        heading: 'TYPE',
        extra: true,
        text: ({ event_type }) => event_type,
        paint: (text, { severity }, { color }) => severityPaint(severity, color)(text),
      },
      {
        heading: 'EVENT',
        text: (event) => withRelativeTimes(eventSentence(event), out.style),
        flexible: true,
        wraps: true,
        wants: 28,
      },
      { heading: 'BY', text: (event) => actorOf(event) ?? 'muster', flexible: true, extra: true },
    ],
    found,
  );
  if (hasMore) out.note('\nThere are more events: use --limit, --since, or muster audit export');
}

const followLog = (context: Context, options: FollowOptions): Promise<undefined> => {
  const { out } = context;
  return follow(context, options, async (frame) => {
    if (frame.event === 'gap') {
      out.warn('some events are missing (removed, or never recorded); continuing after them');
      return;
    }
    const event = auditEventOf(frame);
    if (event === null) return;
    if (out.json) out.raw(`${toJson(event, 'line')}\n`);
    else out.print(eventLine(event, out.style));
  });
};

async function verify(context: Context): Promise<Exit> {
  const { out } = context;
  const { color } = out.style;
  const { call } = await context.connect();
  const progress = out.progress('computing the hashes of the log');
  const verdict = await call(verifyAudit, {}).finally(progress.end);
  if (out.json) {
    out.data(verdict);
    return verdict.ok ? exits.done : exits.failed;
  }
  const { ok, verified, anchor, head, unchained, fault } = verdict;
  out.print(
    ok
      ? `${color.green('The chain is intact:')} ${counted(verified, 'event')} verified.`
      : `${color.red('The chain is broken')} at position ${fault?.place ?? verified + anchor.place + 1}: ${sanitiseLine(fault?.message ?? 'no reason was reported')}`,
  );
  if (fault !== null) {
    if (fault.event_id !== null) out.print(`event   ${sanitiseLine(fault.event_id)}`);
    out.print(`before  ${counted(verified, 'event')} after the oldest ${verified === 1 ? 'is' : 'are'} intact`);
  }
  out.print(
    anchor.place === 0
      ? 'begins  with the first recorded event'
      : `begins  after position ${anchor.place}, where it was pruned (${sanitiseLine(anchor.hash)})`,
  );
  out.print(`head    position ${head.place}, ${sanitiseLine(head.hash)}`);
  if (unchained > 0) out.print(`newest  ${counted(unchained, 'event')} without a position yet`);
  return ok ? exits.done : exits.failed;
}

async function exportLog(context: Context, options: Filters & { output: string }): Promise<undefined> {
  const { out } = context;
  const filter = await queryOf(context, options);
  const { call } = await context.connect();
  const { body } = await call(exportAudit, { query: filter });
  let lines = 0;
  async function* counting(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      for (const byte of piece) if (byte === 10) lines++;
      yield piece;
    }
  }
  if (options.output === '-') {
    const terminal = await context.terminal();
    // A pipe receives the exact bytes; a terminal receives escaped text.
    const decoder = new TextDecoder();
    for await (const piece of counting())
      if (terminal.hasScreen) out.raw(sanitise(decoder.decode(piece, { stream: true })));
      else await terminal.write(piece);
    return undefined;
  }
  const progress = out.progress('writing the audit log');
  const { writeNewFile } = await import('../../keys/new-file.ts');
  const bytes = await writeNewFile(options.output, counting()).finally(progress.end);
  if (out.json) out.data({ file: options.output, events: lines, bytes });
  out.print(`Wrote ${counted(lines, 'event')} to ${sanitiseLine(options.output)}.`);
}

async function prune(
  context: Context,
  options: { before: string; dryRun?: boolean; yes?: boolean },
): Promise<undefined> {
  const { out, now } = context;
  const before = rfc3339(parseMoment(options.before, now()));
  if (!options.dryRun && !options.yes && (!context.prompt.interactive || out.json))
    throw usageError(
      `audit events before ${before} would be removed permanently`,
      'Count them with --dry-run. Confirm with --yes.',
    );
  const { call } = await context.connect();
  if (options.dryRun || !options.yes) {
    const { deleted } = await call(pruneAudit, { query: { before, dry_run: 'true' } });
    if (options.dryRun) {
      if (out.json) out.data({ before, would_delete: deleted });
      out.print(`${counted(deleted, 'event')} before ${before} would be removed.`);
      return undefined;
    }
    if (deleted === 0) {
      out.print(`No event is older than ${before}.`);
      return undefined;
    }
    const question = `Remove ${counted(deleted, 'event')} before ${before} permanently?`;
    await confirmed(context, false, { question, what: question });
  }
  const progress = out.progress('removing events');
  const { deleted } = await call(pruneAudit, { query: { before } }).finally(progress.end);
  if (out.json) out.data({ before, deleted });
  out.print(`Removed ${counted(deleted, 'event')} before ${before}.`);
}

/**
 * Maximum retention in days, about 2,700 years. `off` sets this value, because the API has no value for unlimited
 * retention: it refuses 0, and null restores the configured retention.
 */
const unlimitedDays = 1_000_000;

const printRetention = ({ out }: Context, days: number | null): void => {
  if (out.json) out.data({ retention_days: days });
  out.print(
    days === null
      ? 'The configuration determines how long events are kept: muster settings show audit.retention_days'
      : days >= unlimitedDays
        ? 'All events are kept.'
        : `Events are kept for ${counted(days, 'day')}.`,
  );
};

async function showRetention(context: Context): Promise<undefined> {
  const { call } = await context.connect();
  printRetention(context, (await call(getAuditRetention, {})).retention_days);
}

const setRetention = (context: Context, typed: string, options: { yes?: boolean }): Promise<undefined> =>
  keep(context, parseCount('the number of days', typed, 1, unlimitedDays), options);

async function keep(context: Context, days: number | null, { yes }: { yes?: boolean }): Promise<undefined> {
  const rule = days === null ? 'for as long as the configuration specifies' : `for ${counted(days, 'day')}`;
  await confirmed(context, yes, {
    question: `Keep audit events ${rule}, and remove older ones permanently?`,
    what: `audit events would be kept ${rule}, and older ones removed permanently`,
  });
  const { call } = await context.connect();
  const stored = await call(setAuditRetention, { body: days === null ? {} : { retention_days: days } });
  printRetention(context, stored.retention_days);
}
