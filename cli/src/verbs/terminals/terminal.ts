import {
  closeTerminal,
  getAgent,
  getTerminal,
  getTranscript,
  listTerminals,
  type TerminalSession,
  type TerminalSessionDetail,
  terminalStatuses,
} from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachOf } from '../../execution/each.ts';
import { agentLabel, agentNames } from '../../execution/find-agent.ts';
import { type Exit, usageError } from '../../exit.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, type Colors, counted, duration, listedId, when } from '../../text/style.ts';
import { parseChoice, parseCount } from '../../text/values.ts';
import { findTerminal } from './find-terminal.ts';

const naming = 'its id, or the beginning or end of it if only one recent session fits';

const keys = `
At the beginning of a line ~. leaves and ends the session, ~d leaves it running for a while, ~~ types one ~, ~? helps. All
other keys, Ctrl-C among them, go to the agent.
`;

export const register: Register = (command, act) => {
  command
    .command('open')
    .description('open a shell on an agent, here; it ends with the exit code of that shell')
    .argument('<agent>')
    .option('--shell <path>', 'another shell than the agent is configured for, where it allows that')
    .addHelpText(
      'after',
      `${keys}\nWithout a terminal on standard input, what comes there is typed, and its end is Ctrl-D.\n\nExample:\n  $ muster terminal open web-1\n  $ echo uptime | muster terminal open web-1`,
    )
    .action(act(async (...words: [Context, string, { shell?: string }]) => (await shells()).open(...words)));
  command
    .command('attach')
    .description('take a session over that is open elsewhere, or look on')
    .argument('<session>', naming)
    .option('--view', 'look on: nothing is typed there; Ctrl-C leaves')
    .addHelpText('after', `${keys}\nExample:\n  $ muster terminal attach 01KAGZ7Q4W8E2R5T6Y9V0P3A1S --view`)
    .action(act(async (...words: [Context, string, { view?: boolean }]) => (await shells()).attach(...words)));
  command
    .command('list')
    .description('list sessions, newest first, and who is attached to them')
    .option('--status <status>', terminalStatuses.join(', '))
    .option('--limit <n>', 'at most so many', '50')
    .addHelpText('after', '\nExample:\n  $ muster terminal list --status active')
    .action(act(list));
  command
    .command('show')
    .description('show a session: whose, where, when, how it ended, and its transcript')
    .argument('<session>', naming)
    .addHelpText('after', '\nExample:\n  $ muster terminal show 01KAGZ7Q4W8E2R5T6Y9V0P3A1S')
    .action(act(show));
  command
    .command('replay')
    .description('play what a session showed')
    .argument('<session>', naming)
    .option('--speed <n>', 'so many times as fast', '1')
    .option('--idle-limit <secs>', 'no pause is longer than so many seconds')
    .option('--raw', 'the very bytes that were shown, at once, for a file or a pipe')
    .addHelpText(
      'after',
      '\nSpace pauses, the right and left arrows skip 5 s, q leaves. In a pipe it is the text alone, at once.\n\nExample:\n  $ muster terminal replay 01KAGZ7Q4W8E2R5T6Y9V0P3A1S --speed 4 --idle-limit 2',
    )
    .action(
      act(async (...words: [Context, string, { speed: string; idleLimit?: string; raw?: boolean }]) =>
        (await import('./terminal-replay.ts')).replay(...words),
      ),
    );
  command
    .command('download')
    .description('write the transcript of a session to a file')
    .argument('<session>', naming)
    .option('--format <format>', 'asciicast, for players; raw, the very bytes that were shown', 'asciicast')
    .requiredOption('-o, --output <file>', 'where to; - is standard output')
    .addHelpText('after', '\nExample:\n  $ muster terminal download 01KAGZ7Q4W8E2R5T6Y9V0P3A1S -o session.cast')
    .action(act(download));
  command
    .command('close')
    .description('end sessions, and with them the shells and what runs in them')
    .argument('<sessions...>', naming)
    .addHelpText('after', '\nExample:\n  $ muster terminal close 01KAGZ7Q4W8E2R5T6Y9V0P3A1S')
    .action(act(close));
};

const shells = () => import('./terminal-open.ts');

const paintStatus = (text: string, status: TerminalSession['status'], color: Colors): string =>
  status === 'active' ? color.green(text) : status === 'interrupted' ? color.yellow(text) : text;

async function list(context: Context, options: { status?: string; limit: string }): Promise<undefined> {
  const { out } = context;
  const { style } = out;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const status = options.status === undefined ? undefined : parseChoice('--status', options.status, terminalStatuses);
  const { call } = await context.connect();
  const sessions = await call(listTerminals, {
    query: { limit: String(limit), ...(status === undefined ? {} : { status }) },
    atMost: limit,
  });
  if (out.json) {
    out.data(sessions);
    return undefined;
  }
  if (sessions.length === 0) {
    out.note(
      status === undefined
        ? 'There is no terminal session yet: muster terminal open AGENT'
        : 'There is no such terminal session.',
    );
    return undefined;
  }
  const [agents, operators] = await Promise.all([
    agentNames(call, new Set(sessions.map(({ node_id }) => node_id))),
    operatorNames(call),
  ]);
  out.table(
    [
      { heading: 'SESSION', text: ({ session_id }) => listedId(session_id, style) },
      { heading: 'AGENT', text: ({ node_id }) => agents.get(node_id) ?? node_id.slice(0, 12), flexible: true },
      {
        heading: 'OPERATOR',
        text: ({ operator_id }) => operators.get(operator_id) ?? operator_id.slice(0, 12),
        flexible: true,
      },
      {
        heading: 'STATUS',
        text: ({ status }) => status,
        paint: (text, { status }, { color }) => paintStatus(text, status, color),
      },
      { heading: 'OPENED', extra: true, text: ({ opened_at }) => when(opened_at, style) },
      { heading: 'LASTED', extra: true, text: (session) => lasted(session, style.now) },
      { heading: 'ATTACHED', text: ({ attached }) => attachedTo(attached), flexible: true },
    ],
    sessions,
  );
  return undefined;
}

/** @returns null when it is nobody */
const attachedTo = (attached: TerminalSession['attached']): string | null =>
  attached.map(({ username, mode }) => (mode === 'view' ? `${username} (looks on)` : username)).join(', ') || null;

const lasted = ({ opened_at, closed_at }: TerminalSession, now: number): string =>
  duration((closed_at ?? now) - opened_at);

async function show(context: Context, wanted: string): Promise<undefined> {
  const { out } = context;
  const { color, now } = out.style;
  const { call } = await context.connect();
  const session = await call(getTerminal, { params: { session_id: await findTerminal(call, wanted) } });
  if (out.json) {
    out.data(session);
    return undefined;
  }
  const { session_id, node_id, operator_id, status, opened_at, closed_at, attached, end_reason } = session;
  const [agent, operators] = await Promise.all([
    call(getAgent, { params: { node_id } }).catch(() => null),
    operatorNames(call),
  ]);
  const time = (at: number) => `${new Date(at * 1000).toISOString().replace('.000Z', 'Z')}, ${ago(at, now)}`;
  const lines: [string, string][] = [
    ['session', session_id],
    ['agent', `${agent === null ? 'one that is gone' : agentLabel(agent)} (${node_id})`],
    ['operator', `${operators.get(operator_id) ?? 'one that is gone'} (${operator_id})`],
    ['status', status],
    ['opened', time(opened_at)],
    ['ended', closed_at === null ? 'not yet' : `${time(closed_at)}${end_reason === null ? '' : `: ${end_reason}`}`],
    ['lasted', lasted(session, now)],
    ['attached', attachedTo(attached) ?? 'nobody'],
    ['transcript', transcriptOf(session)],
    ...(session.transcript_sha256 === null ? [] : [['sha256', session.transcript_sha256] as [string, string]]),
  ];
  out.print(
    lines
      .map(([name, text]) => {
        const clean = sanitiseLine(text);
        return `${name.padEnd(11)}${name === 'status' ? paintStatus(clean, status, color) : clean}`;
      })
      .join('\n'),
  );
  return undefined;
}

function transcriptOf({ transcript_path, transcript_bytes, session_id }: TerminalSessionDetail): string {
  if (transcript_path === null) return 'none is kept';
  const size = transcript_bytes === null ? '' : `${counted(transcript_bytes, 'byte')}: `;
  return `${size}muster terminal replay ${session_id}`;
}

async function download(
  context: Context,
  wanted: string,
  options: { format: string; output: string },
): Promise<undefined> {
  const { out } = context;
  const format = parseChoice('--format', options.format, ['asciicast', 'raw']);
  const { call } = await context.connect();
  const session_id = await findTerminal(call, wanted);
  const { body } = await call(getTranscript, { params: { session_id }, query: { format } });
  if (options.output === '-') {
    const terminal = await context.terminal();
    if (terminal.hasScreen)
      throw usageError(
        'what a session showed may do anything to a terminal',
        `Play it: muster terminal replay ${session_id}`,
      );
    for await (const piece of body) await terminal.write(piece);
    return undefined;
  }
  const { writeNewFile } = await import('../../keys/new-file.ts');
  const size = await writeNewFile(options.output, body);
  if (out.json) out.data({ session_id, format, file: options.output, bytes: size });
  out.print(`Wrote ${counted(size, 'byte')} to ${sanitiseLine(options.output)}.`);
  return undefined;
}

async function close(context: Context, wanted: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const closed: string[] = [];
  const exit = await eachOf(
    context,
    wanted,
    (id) => id,
    async (one) => {
      const session_id = await findTerminal(call, one);
      await call(closeTerminal, { params: { session_id } });
      closed.push(session_id);
      out.print(`Closed ${session_id}.`);
    },
  );
  if (out.json) out.data({ closed });
  return exit;
}
