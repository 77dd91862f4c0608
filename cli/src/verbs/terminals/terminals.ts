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
import { eachNamed } from '../../execution/each.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, usageError } from '../../exit.ts';
import { agentLabel, agentNames } from '../../text/agent-label.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, type Colors, counted, duration, listedId, timestamp, when } from '../../text/style.ts';
import { parseChoice, parseCount } from '../../text/values.ts';
import { findTerminal } from './find-terminal.ts';
import type { OpenOptions } from './terminal-open.ts';

const naming = 'the id, or the beginning or end of it if only one recent session matches';

const keys = `
At the start of a line, ~. ends the session and leaves, ~d detaches and keeps it running for a while, ~~ types a ~, and ~?
shows help. All other keys, including Ctrl-C, go to the agent.
`;

export const register: Register = (command, act) => {
  command
    .command('open')
    .description('Open a shell on an agent, and exit with its exit code')
    .argument('<agent>')
    .option('--shell <path>', 'Start this shell, if the agent allows it')
    .option('--cols <n>', 'Columns of the terminal, if standard input is a pipe')
    .option('--rows <n>', 'Rows of the terminal, if standard input is a pipe')
    .addHelpText(
      'after',
      `${keys}\nIf standard input is not a terminal, its content is sent as if typed, followed by Ctrl-D.\n\nExample:\n  $ muster terminal open web-1\n  $ echo uptime | muster terminal open web-1`,
    )
    .action(act(async (...words: [Context, string, OpenOptions]) => (await shells()).open(...words)));
  command
    .command('attach')
    .description('Take over or view an open terminal session')
    .argument('<session>', naming)
    .option('--view', 'View only; Ctrl-C leaves')
    .addHelpText('after', `${keys}\nExample:\n  $ muster terminal attach 01KAGZ7Q4W8E2R5T6Y9V0P3A1S --view`)
    .action(act(async (...words: [Context, string, { view?: boolean }]) => (await shells()).attach(...words)));
  command
    .command('list')
    .description('List terminal sessions and attached operators')
    .option('--status <status>', `Status: ${terminalStatuses.join(', ')}`)
    .option('--limit <n>', 'Maximum number', '50')
    .addOption(watchOption())
    .addHelpText('after', '\nExample:\n  $ muster terminal list --status active')
    .action(act(list));
  command
    .command('show')
    .description('Show a terminal session and its transcript')
    .argument('<session>', naming)
    .addHelpText('after', '\nExample:\n  $ muster terminal show 01KAGZ7Q4W8E2R5T6Y9V0P3A1S')
    .action(act(show));
  command
    .command('replay')
    .description('Replay a terminal session')
    .argument('<session>', naming)
    .option('--speed <n>', 'Playback speed', '1')
    .option('--idle-limit <secs>', 'Shorten pauses to this many seconds')
    .option('--raw', 'Print the exact bytes immediately, for a file or a pipe')
    .addHelpText(
      'after',
      '\nSpace pauses, the arrow keys skip 5 s, q leaves. In a pipe only the text is printed, immediately.\n\nExample:\n  $ muster terminal replay 01KAGZ7Q4W8E2R5T6Y9V0P3A1S --speed 4 --idle-limit 2',
    )
    .action(
      act(async (...words: [Context, string, { speed: string; idleLimit?: string; raw?: boolean }]) =>
        (await import('./terminal-replay.ts')).replay(...words),
      ),
    );
  command
    .command('download')
    .description('Write a terminal transcript to a file')
    .argument('<session>', naming)
    .option('--format <format>', 'File format: asciicast or raw', 'asciicast')
    .requiredOption('-o, --output <file>', 'Output file; - is standard output')
    .addHelpText('after', '\nExample:\n  $ muster terminal download 01KAGZ7Q4W8E2R5T6Y9V0P3A1S -o session.cast')
    .action(act(download));
  command
    .command('close')
    .description('End terminal sessions and all their processes')
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
  if (out.json) return out.data(sessions);
  if (sessions.length === 0)
    return out.note(
      status === undefined
        ? 'There are no terminal sessions yet. Open one: muster terminal open AGENT'
        : 'No terminal session matches.',
    );
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
      { heading: 'DURATION', extra: true, text: (session) => lasted(session, style.now) },
      { heading: 'ATTACHED', text: ({ attached }) => attachedTo(attached), flexible: true },
    ],
    sessions,
  );
}

/** Returns who is attached; null if no one is. */
const attachedTo = (attached: TerminalSession['attached']): string | null =>
  attached.map(({ username, mode }) => (mode === 'view' ? `${username} (view only)` : username)).join(', ') || null;

const lasted = ({ opened_at, closed_at }: TerminalSession, now: number): string =>
  duration((closed_at ?? now) - opened_at);

async function show(context: Context, idPart: string): Promise<undefined> {
  const { out } = context;
  const { color, now } = out.style;
  const { call } = await context.connect();
  const session = await call(getTerminal, { params: { session_id: await findTerminal(call, idPart) } });
  if (out.json) return out.data(session);
  const { session_id, node_id, operator_id, status, opened_at, closed_at, attached, end_reason } = session;
  const [agent, operators] = await Promise.all([
    call(getAgent, { params: { node_id } }).catch(() => null),
    operatorNames(call),
  ]);
  const time = (at: number) => `${timestamp(at)}, ${ago(at, now)}`;
  const lines: [string, string][] = [
    ['session', session_id],
    ['agent', `${agent === null ? 'removed' : agentLabel(agent)} (${node_id})`],
    ['operator', `${operators.get(operator_id) ?? 'removed'} (${operator_id})`],
    ['status', status],
    ['opened', time(opened_at)],
    ['ended', closed_at === null ? 'not yet' : `${time(closed_at)}${end_reason === null ? '' : `: ${end_reason}`}`],
    ['duration', lasted(session, now)],
    ['attached', attachedTo(attached) ?? 'no one'],
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
}

function transcriptOf({ transcript_path, transcript_bytes, session_id }: TerminalSessionDetail): string {
  if (transcript_path === null) return 'not kept';
  const size = transcript_bytes === null ? '' : `${counted(transcript_bytes, 'byte')}: `;
  return `${size}muster terminal replay ${session_id}`;
}

async function download(
  context: Context,
  idPart: string,
  options: { format: string; output: string },
): Promise<undefined> {
  const { out } = context;
  const format = parseChoice('--format', options.format, ['asciicast', 'raw']);
  const { call } = await context.connect();
  const session_id = await findTerminal(call, idPart);
  const { body } = await call(getTranscript, { params: { session_id }, query: { format } });
  if (options.output === '-') {
    const terminal = await context.terminal();
    if (terminal.hasScreen)
      throw usageError(
        'raw output of a session is unsafe on a terminal',
        `To play it: muster terminal replay ${session_id}`,
      );
    for await (const piece of body) await terminal.write(piece);
    return undefined;
  }
  const { writeNewFile } = await import('../../keys/new-file.ts');
  const size = await writeNewFile(options.output, body);
  if (out.json) out.data({ session_id, format, file: options.output, bytes: size });
  out.print(`Wrote ${counted(size, 'byte')} to ${sanitiseLine(options.output)}.`);
}

async function close(context: Context, idParts: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const closed: string[] = [];
  const exit = await eachNamed(context, idParts, async (one) => {
    const session_id = await findTerminal(call, one);
    await call(closeTerminal, { params: { session_id } });
    closed.push(session_id);
    out.print(`Closed ${session_id}.`);
  });
  if (out.json) out.data({ closed });
  return exit;
}
