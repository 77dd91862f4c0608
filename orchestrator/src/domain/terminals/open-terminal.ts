import { MusterError } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { LiveWire } from '../../bus/live-wire.ts';
import type { CastHeader } from '../../store/cast.ts';
import { OutcomeUnknown } from '../../store/database.ts';
import { approvedAgent } from '../../store/queries/agents/agents.ts';
import { liveOperator } from '../../store/queries/operators.ts';
import { insertTerminal } from '../../store/queries/terminals.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Recording, Transcripts } from '../../store/transcripts/transcripts.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { LiveTerminal, type TerminalRules } from './live-terminal.ts';
import type { OpenTerminals } from './open-terminals.ts';
import type { RecentScreen } from './screen-source.ts';
import type { Shell, Shells } from './shells.ts';
import { ended } from './terminal-end.ts';
import type { EndedSession, TerminalEnds } from './terminal-ends.ts';
import type { TerminalTickets } from './terminal-tickets.ts';

export interface TerminalParts {
  readonly clock: Clock;
  readonly transcripts: Transcripts;
  readonly shells: Shells;
  readonly recentScreen: RecentScreen;
  readonly rules: TerminalRules;
  /** Carries relayed connections; null without NATS. */
  readonly wire: LiveWire | null;
}

interface Opening extends TerminalParts {
  readonly context: Context;
  readonly tickets: TerminalTickets;
  readonly ends: TerminalEnds;
  readonly open: OpenTerminals;
}

/** The operator who opens a session. */
interface Opener {
  readonly actor: Actor;
  readonly token_hash?: string | undefined;
}

export interface ShellChoice {
  readonly cols: number;
  readonly rows: number;
  /** The shell to run; null for the shell in the agent's configuration. */
  readonly shell: string | null;
}

/**
 * Opens a session: starts its transcript and its shell, and records it in the database. If a step fails, the earlier
 * steps are reverted.
 * @returns the open, recorded session, and a ticket to control it
 * @throws MusterError agent_not_approved, terminal_unrecorded, unauthenticated, terminal_ended, and the agent's
 * refusals
 */
export async function openTerminal(
  opening: Opening,
  { actor, token_hash }: Opener,
  agent: EndedSession['agent'],
  { cols, rows, shell: requested }: ShellChoice,
): Promise<{ session_id: string; ticket: string }> {
  const { context, shells, tickets } = opening;
  const session_id = context.newId();
  const session = { session_id, operator_id: actor.id, opened_at: seconds(context.now()), agent };
  const { live, onRecord, endRecorded } = await startRecording(opening, session, { cols, rows });
  let ticket = '';
  try {
    // A shell runs its user's profile, so it must not start for an operator who was removed.
    await stillSignedIn(context, actor);
    const shell = await shells.open(
      { session_id, node_id: agent.node_id, cols, rows, shell: requested, operator: actor.name },
      live,
    );
    live.begin(shell, headerOf(session, actor, shell, { cols, rows }));
    const drawn = tickets.draw({
      ...{ session_id, operator_id: actor.id, username: actor.name },
      ...{ mode: 'control', token_hash },
    });
    ticket = drawn.text;
    await record(context, session, { actor, shell, more: drawn.statements });
    onRecord(true);
  } catch (error) {
    onRecord(error instanceof OutcomeUnknown);
    live.close(ended('terminal_closed', 'the terminal could not be opened'));
    await endRecorded;
    throw error;
  }
  if (live.end) {
    const { notice, reason } = live.end;
    throw new MusterError(notice.type === 'error' ? notice.code : 'terminal_ended', reason);
  }
  return { session_id, ticket };
}

interface Recorded {
  readonly live: LiveTerminal;
  /**
   * Must be called exactly once.
   * @param hasRow whether the session has, or may have, a row. Without a row, the transcript is removed when the
   *   session ends
   */
  readonly onRecord: (hasRow: boolean) => void;
  /** Resolves once the session's end is recorded, or recording it has failed. */
  readonly endRecorded: Promise<void>;
}

/** Starts the transcript for a session without a shell, and adds the session to the open sessions. */
async function startRecording(
  { context, clock, rules, recentScreen, transcripts, ends, open }: Opening,
  session: EndedSession,
  size: { cols: number; rows: number },
): Promise<Recorded> {
  const { session_id, operator_id, agent } = session;
  const onRecord = Promise.withResolvers<boolean>();
  const endRecorded = Promise.withResolvers<void>();
  const recording = await createTranscript(context, transcripts, session_id, (reason) => {
    context.log.error({ err: reason, session_id }, 'failed to record terminal session; ending it');
    live.unrecorded(reason);
  });
  const live = new LiveTerminal({
    session_id,
    operator_id,
    ...size,
    clock,
    rules,
    recording,
    recentScreen,
    onEnded: (end, digest) => {
      onRecord.promise
        .then<unknown>((hasRow) => (hasRow ? ends.record(session, end, digest) : transcripts.remove(session_id)))
        .catch((error: unknown) => context.log.warn({ err: error, session_id }, 'failed to remove transcript'))
        .finally(() => {
          open.remove(session_id);
          endRecorded.resolve();
        });
    },
  });
  open.add({ live, node_id: agent.node_id, endRecorded: endRecorded.promise });
  return { live, onRecord: onRecord.resolve, endRecorded: endRecorded.promise };
}

async function createTranscript(
  { log }: Context,
  transcripts: Transcripts,
  sessionId: string,
  onFailure: (reason: Error) => void,
): Promise<Recording> {
  try {
    return await transcripts.create(sessionId, onFailure);
  } catch (error) {
    log.error({ err: error }, 'failed to create transcript; refusing terminal session');
    throw new MusterError('terminal_unrecorded', `the transcript cannot be created: ${(error as Error).message}`);
  }
}

async function record(
  context: Context,
  session: EndedSession,
  { actor, shell, more }: { actor: Actor; shell: Shell; more: readonly Statement[] },
): Promise<void> {
  const { session_id, operator_id, opened_at, agent } = session;
  const { node_id, name } = agent;
  await context.db.write({
    name: 'terminals/open',
    statements: [
      // Prevents a concurrently removed operator from getting a terminal.
      statement(liveOperator, { operator_id }, { expect: 'row', else: 'unauthenticated' }),
      statement(approvedAgent, { node_id }, { expect: 'row', else: 'agent_not_approved' }),
      statement(insertTerminal, { session_id, node_id, operator_id, opened_at, home: context.incarnation }),
      ...more,
      audited(context, {
        type: 'terminal.opened',
        actor,
        target: { type: 'agent', id: node_id, name },
        summary: `${actor.name} opened a terminal on ${name}`,
        metadata: { session_id, shell: shell.program, user: shell.user },
      }),
    ],
  });
}

const headerOf = (
  { session_id, operator_id, opened_at, agent }: EndedSession,
  operator: Actor,
  shell: Shell,
  { cols, rows }: { cols: number; rows: number },
): CastHeader => ({
  width: cols,
  height: rows,
  timestamp: opened_at,
  title: `${operator.name} on ${agent.name}`,
  env: { TERM: 'xterm-256color', SHELL: shell.program },
  muster: {
    session_id,
    operator_id,
    operator: operator.name,
    node_id: agent.node_id,
    agent: agent.name,
    user: shell.user,
  },
});
