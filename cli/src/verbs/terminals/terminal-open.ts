import { constants } from 'node:os';
import { type ErrorCode, errorKinds } from '@muster/protocol';
import { ApiError } from '@muster/protocol/client';
import { type Agent, attachTerminal, closeTerminal, getTerminal, openTerminal } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { dialTerminal } from '../../terminal/dial.ts';
import { type Ending, live } from '../../terminal/live.ts';
import { agentLabel, agentNames } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { parseCount } from '../../text/values.ts';
import { explain } from '../../transport/explain.ts';
import { findTerminal } from './find-terminal.ts';

/** Opens a terminal on an agent, or attaches to an open one. */

export interface OpenOptions {
  shell?: string;
  cols?: string;
  rows?: string;
}

/** Largest size of a terminal that the API accepts. */
const longestSide = 1000;

/** Parses the requested size, because a pipe has no size. */
function sizeOf({ cols, rows }: OpenOptions): { cols?: string; rows?: string } {
  return {
    ...(cols === undefined ? {} : { cols: String(parseCount('--cols', cols, 1, longestSide)) }),
    ...(rows === undefined ? {} : { rows: String(parseCount('--rows', rows, 1, longestSide)) }),
  };
}

export async function open(context: Context, nameOrId: string, options: OpenOptions): Promise<number> {
  const { shell } = options;
  const requested = sizeOf(options);
  if (shell !== undefined && !shell.startsWith('/'))
    throw usageError(`--shell cannot be ${JSON.stringify(shell)}`, 'Specify an absolute path, such as --shell /bin/sh');
  const { call } = await context.connect();
  const agent = await chooseAgent(call, nameOrId);
  const size = (await context.terminal()).size();
  if (size !== null && Object.keys(requested).length > 0)
    throw usageError(
      '--cols and --rows are only for a pipe',
      'A shell in your terminal follows the size of its window.',
    );
  const first = await call(openTerminal, {
    params: { node_id: agent.node_id },
    query: {
      ...(size === null ? requested : { cols: String(size.cols), rows: String(size.rows) }),
      ...(shell === undefined ? {} : { shell }),
    },
  }).catch((error: unknown) => {
    throw refusedBy(agent, error);
  });
  return follow(context, first, 'control', agentLabel(agent));
}

export async function attach(context: Context, idPart: string, { view }: { view?: boolean }): Promise<number> {
  const { call } = await context.connect();
  // The orchestrator explains why a session was closed.
  const session_id = await findTerminal(call, idPart, 'active').catch((error: unknown) => {
    if (error instanceof CliError && error.code === 'id_unknown') return findTerminal(call, idPart);
    throw error;
  });
  const mode = view === true ? 'view' : 'control';
  const first = await call(attachTerminal, { params: { session_id }, body: { mode } });
  const { node_id } = await call(getTerminal, { params: { session_id } });
  const names = await agentNames(call, new Set([node_id]));
  return follow(context, first, mode, names.get(node_id) ?? node_id.slice(0, 12));
}

/** Adds the agent setting to change to the error. */
function refusedBy(agent: Agent, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code } = error.problem;
  const label = sanitiseLine(agentLabel(agent));
  const file = `in the configuration of the agent on ${label} (/etc/muster/agent.yml of a package, data/agent.yml of npm start, or the file of its --config)`;
  const remedies: Readonly<Record<string, string>> = {
    terminal_disabled: `Set remote_terminal.enabled: true ${file}.`,
    terminal_shell_refused: `Drop --shell, or set remote_terminal.allow_operator_shell_override: true ${file}.`,
    terminal_limit: `End a session (muster terminal list --status active), or raise remote_terminal.max_sessions ${file}.`,
    terminal_failed: `Check remote_terminal ${file}; see also its log.`,
    agent_offline: 'To see when it was last seen: muster agents list',
  };
  const { exit, message } = explain(error);
  const remedy =
    code === 'terminal_shell_refused' && message.includes('/etc/shells')
      ? 'Specify one of the shells in /etc/shells with --shell, or omit --shell.'
      : remedies[code];
  if (remedy === undefined) return error;
  // If the agent runs an older release without terminals, the message already states the reason.
  if (code === 'terminal_disabled' && /\brelease\b/.test(message))
    return new CliError(exit, code, message, null, { cause: error });
  return new CliError(exit, code, message, remedy, { cause: error });
}

async function follow(
  context: Context,
  first: { session_id: string; ws_url: string },
  mode: 'control' | 'view',
  label: string,
): Promise<number> {
  const { call, target, agentFor } = await context.connect();
  const { session_id } = first;
  const params = { session_id };
  const ending = await live({
    terminal: await context.terminal(),
    mode,
    first,
    attach: () => call(attachTerminal, { params, body: { mode }, signal: AbortSignal.timeout(10_000) }),
    dial: (address, events) => dialTerminal(new URL(address, target.url), agentFor, events),
    end: () => call(closeTerminal, { params, signal: AbortSignal.timeout(3_000) }),
    clock: () => performance.now(),
    sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds).unref()),
  });
  return conclude(context, ending, { session_id, mode, label: sanitiseLine(label) });
}

interface About {
  session_id: string;
  mode: 'control' | 'view';
  label: string;
}

/** Prints how the session was closed, once the local terminal is restored. */
async function conclude(context: Context, ending: Ending, about: About): Promise<number> {
  const { out } = context;
  const { session_id, mode, label } = about;
  const looksOnNoMore = `no longer viewing the session on ${label}`;
  const left = (continues = false) =>
    continues
      ? `the orchestrator did not answer, so the session on ${label} continues for a while; to end it: muster terminal close ${session_id}`
      : `the session on ${label} has ended`;
  switch (ending.kind) {
    case 'exit': {
      if (ending.code !== null) return ending.code;
      const number = constants.signals[ending.signal as NodeJS.Signals];
      out.note(
        `the shell on ${label} ended${ending.signal === null ? '' : ` by signal ${sanitiseLine(ending.signal)}`}`,
      );
      return number === undefined ? exits.failed : 128 + number;
    }
    case 'error':
      throw terminalError(ending.code, ending.message, about);
    case 'left':
      if (ending.how === 'detach' && mode === 'control')
        out.note(`detached; the session on ${label} continues for a while: muster terminal attach ${session_id}`);
      else out.note(mode === 'view' ? looksOnNoMore : `left; ${left(ending.continues)}`);
      // The exit code of the remote shell is unknown.
      return ending.how === 'detach' || mode === 'view' ? exits.done : exits.failed;
    case 'signal':
      out.note(`${ending.signal}; ${mode === 'view' ? looksOnNoMore : left(ending.continues)}`);
      return 128 + constants.signals[ending.signal];
    case 'unread':
      throw ending.error;
    case 'lost':
      throw await lost(context, ending.error, about);
  }
}

/** Returns the error for one of the orchestrator's codes, with a command that continues the session. */
function terminalError(code: string, message: string, { session_id }: About): CliError {
  const known = Object.hasOwn(errorKinds, code) ? errorKinds[code as ErrorCode] : null;
  const again = `muster terminal attach ${session_id}`;
  const shown = `To see the session: muster terminal replay ${session_id}`;
  const remedies: Readonly<Record<string, string>> = {
    terminal_taken_over: `To take control again: ${again}. To view only, add --view.`,
    terminal_too_slow: `To view it again: ${again} --view`,
    terminal_interrupted: shown,
    terminal_closed: shown,
    terminal_ended: shown,
  };
  const exit = code === 'terminal_interrupted' || code === 'draining' ? exits.unreachable : exits.failed;
  return new CliError(exit, code, message || (known?.title ?? code), remedies[code] ?? known?.remedy ?? null);
}

/**
 * Returns the error to report when reconnecting fails: the terminal session was closed, or the orchestrator is
 * unreachable.
 */
async function lost(context: Context, error: unknown, about: About): Promise<Error> {
  const { session_id, label } = about;
  const code = error instanceof ApiError ? error.problem.code : null;
  if (code === 'terminal_ended') {
    const { call } = await context.connect();
    const session = await call(getTerminal, { params: { session_id } }).catch(() => null);
    return session?.status === 'interrupted'
      ? terminalError('terminal_interrupted', `the session on ${label} was interrupted`, about)
      : terminalError('terminal_ended', `the session on ${label} ended while the connection was lost`, about);
  }
  const { message, remedy, exit } = explain(error);
  const isUnreachable = exit === exits.unreachable;
  return new CliError(
    exit,
    'connection_lost',
    `the connection to the session on ${label} was lost: ${message}`,
    isUnreachable ? `If the session continues: muster terminal attach ${session_id}` : remedy,
    { cause: error },
  );
}
