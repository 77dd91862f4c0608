import { MusterError } from '@muster/protocol';
import {
  apiPrefix,
  type Role,
  type TerminalSession,
  type TerminalSessionDetail,
  type TerminalStatus,
} from '@muster/protocol/http';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { CastHeader } from '../../store/cast.ts';
import { OutcomeUnknown } from '../../store/database.ts';
import { approvedAgent, approvedAgents } from '../../store/queries/agents.ts';
import { liveOperator, removedOperators } from '../../store/queries/operators.ts';
import { activeTerminals, insertTerminal, terminalById, terminals } from '../../store/queries/terminals.ts';
import { statement } from '../../store/transaction.ts';
import type { Recording } from '../../store/transcripts/transcript-writer.ts';
import type { Transcripts } from '../../store/transcripts/transcripts.ts';
import { requireAgent } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type Page, type PageWish, readPage } from '../shared/page.ts';
import {
  ended,
  interrupted,
  LiveTerminal,
  type RecentScreen,
  type TerminalEnd,
  type TerminalRules,
} from './live-terminal.ts';
import type { Shell, Shells } from './shells.ts';
import type { TerminalConnections } from './terminal-client.ts';
import { type EndedSession, TerminalEnds } from './terminal-ends.ts';
import { type TerminalMode, type TerminalTicket, TerminalTickets } from './terminal-tickets.ts';

/** Terminal sessions: opening, listing, attaching, ending, and their transcripts. */

export interface TerminalAsker {
  readonly actor: Actor;
  readonly role: Role;
  /** Token hash of its sign-in session, if any: signing out cuts its connections. */
  readonly token_hash?: string;
}

export interface TerminalWish {
  cols?: number | undefined;
  rows?: number | undefined;
  shell?: string | undefined;
}

export interface TerminalConnection {
  session_id: string;
  ws_url: string;
}

export interface Terminals extends TerminalConnections {
  /**
   * @throws MusterError agent_not_found, agent_offline, agent_not_approved, terminal_unrecorded, draining, and refusals of the
   * agent
   */
  open(asker: TerminalAsker, idOrName: string, wish: TerminalWish): Promise<TerminalConnection>;
  list(filter: { status?: TerminalStatus | undefined } & PageWish): Promise<Page<TerminalSession>>;
  /** @throws MusterError terminal_not_found */
  get(sessionId: string): Promise<TerminalSessionDetail>;
  /** Does nothing when the session has already ended. @throws MusterError terminal_not_found, terminal_of_another */
  close(asker: TerminalAsker, sessionId: string): Promise<void>;
  /** @throws MusterError terminal_not_found, terminal_of_another, terminal_ended, terminal_limit */
  attach(asker: TerminalAsker, sessionId: string, mode: TerminalMode): Promise<TerminalConnection>;
  /** @throws MusterError terminal_not_found (also when no transcript is kept), terminal_of_another */
  transcript(asker: TerminalAsker, sessionId: string, format: 'raw' | 'asciicast'): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Ends the sessions that a former process left open. Call it once, before anything else.
   * @returns once these sessions are known; `recorded` resolves once all of them are on record
   */
  interruptLeftovers(): Promise<{ readonly recorded: Promise<void> }>;
  /** Refuses new sessions, interrupts the open ones, and records their ends. */
  stop(): Promise<void>;
}

export interface TerminalParts {
  readonly clock: Clock;
  readonly transcripts: Transcripts;
  readonly shells: Shells;
  readonly recentScreen: RecentScreen;
  readonly rules: TerminalRules;
}

/** Maximum number of connections to one session. */
const maxConnections = 33;
const sweepMs = 1000;
/** How often operators' and agents' permissions are rechecked: a hint on the bus may be lost. */
const recheckMs = 5_000;
/** Maximum time that a stop waits; the next start handles the rest. */
const stopMs = 5_000;

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, sessionId: string) => db.get(terminalById, { session_id: sessionId });

const addressOf = (sessionId: string) => `${apiPrefix}/terminal/session/${sessionId}`;

async function requireSession(context: Context, sessionId: string): Promise<Row> {
  const row = await findRow(context, sessionId);
  if (!row)
    throw new MusterError(
      'terminal_not_found',
      `there is no terminal session ${JSON.stringify(sessionId.slice(0, 64))}`,
    );
  return row;
}

function requireOwn({ actor, role }: TerminalAsker, row: Row): void {
  if (row.operator_id !== actor.id && role !== 'admin') throw new MusterError('terminal_of_another');
}

/** A session of this process. */
interface Open {
  readonly live: LiveTerminal;
  readonly node_id: string;
  /** Resolves when its end is on record, or recording it failed. */
  readonly gone: Promise<unknown>;
}

export function createTerminals(context: Context, parts: TerminalParts): Terminals {
  const { db } = context;
  const { clock, transcripts, shells, recentScreen, rules } = parts;
  const tickets = new TerminalTickets(() => clock.monotonic(), context.randomBytes);
  const ends = new TerminalEnds(context);
  const open = new Map<string, Open>();
  let stopping = false;
  let cancelTimer: (() => void) | null = null;
  let checkedAt = clock.monotonic();
  let checking = false;

  const sweep = () => {
    cancelTimer = null;
    for (const { live } of open.values()) live.sweep();
    if (open.size > 0 && !checking && clock.monotonic() - checkedAt >= recheckMs) void recheck();
    if (ends.waiting > 0) void ends.retry();
    if ((open.size > 0 || ends.waiting > 0) && !stopping) cancelTimer = clock.after(sweepMs, sweep);
  };
  const watch = () => {
    if (!stopping) cancelTimer ??= clock.after(sweepMs, sweep);
  };

  const endAll = (which: (one: Open) => boolean, end: TerminalEnd) => {
    for (const one of open.values()) if (which(one)) one.live.close(end);
  };
  /** Does not wait for the agent's link, which ends too. */
  const endOfRejected = async (ids: readonly string[]) => {
    const approved = new Set((await db.all(approvedAgents, { ids })).map(({ node_id }) => node_id));
    const rejected = new Set(ids.filter((id) => !approved.has(id)));
    endAll((one) => rejected.has(one.node_id), interrupted('its agent is no longer approved'));
  };
  const endOfRemoved = (operatorId: string) => {
    tickets.revoke((ticket) => ticket.operator_id === operatorId);
    for (const { live } of open.values()) live.cutOff(operatorId);
    endAll(({ live }) => live.operator_id === operatorId, ended('terminal_closed', 'its operator was removed'));
  };
  /** The shells continue for the reattach time, as after any disconnect. */
  const endOfSignIn = (tokenHash: string, renewedAs: string | null) => {
    if (renewedAs === null) tickets.revoke(({ token_hash }) => token_hash === tokenHash);
    for (const { live } of open.values()) live.signInEnded(tokenHash, renewedAs);
  };
  const recheck = async () => {
    checking = true;
    try {
      const operators = new Set([...open.values()].flatMap(({ live }) => live.operators));
      const removed = await db.all(removedOperators, { ids: [...operators] });
      for (const { operator_id } of removed) endOfRemoved(operator_id);
      await endOfRejected([...new Set([...open.values()].map(({ node_id }) => node_id))]);
    } catch (error) {
      context.log.warn({ err: error }, 'failed to recheck permissions of terminals');
    }
    checking = false;
    checkedAt = clock.monotonic();
  };
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'operator_removed') endOfRemoved(hint.operator_id);
    else if (hint.type === 'session_ended') endOfSignIn(hint.token_hash, hint.renewed_as);
    else if ((hint.type === 'agent_changed' || hint.type === 'agent_removed') && isInUse(hint.node_id))
      endOfRejected([hint.node_id]).catch((error: unknown) =>
        context.log.warn({ err: error }, 'failed to look up agent with open terminals'),
      );
  });
  const isInUse = (nodeId: string) => [...open.values()].some(({ node_id }) => node_id === nodeId);

  const connection = (ticket: TerminalTicket): TerminalConnection => {
    const text = tickets.issue(ticket);
    if (text === null)
      throw new MusterError('terminal_limit', 'too many tickets for this session were asked for and not used');
    return { session_id: ticket.session_id, ws_url: `${addressOf(ticket.session_id)}/ws?ticket=${text}` };
  };

  const begun = async (sessionId: string, onFailure: (reason: Error) => void): Promise<Recording> => {
    try {
      return await transcripts.create(sessionId, onFailure);
    } catch (error) {
      context.log.error({ err: error }, 'failed to begin a transcript; terminal refused');
      throw new MusterError('terminal_unrecorded', `no transcript can be begun: ${(error as Error).message}`);
    }
  };

  /** Waits briefly for ends that are being recorded, so that a client that was notified finds them on record. */
  const settled = async (ids: Iterable<string>): Promise<void> => {
    const gone = [...ids].flatMap((id) => {
      const one = open.get(id);
      return one?.live.over ? [one.gone] : [];
    });
    if (gone.length === 0) return;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = clock.after(2000, resolve);
    });
    await Promise.race([Promise.all(gone), late]);
    cancel();
  };

  const toSession = (row: Row): TerminalSession => ({
    session_id: row.session_id,
    node_id: row.node_id,
    operator_id: row.operator_id,
    status: row.status,
    opened_at: row.opened_at,
    closed_at: row.closed_at,
    attached: row.status === 'active' ? (open.get(row.session_id)?.live.attached ?? []) : [],
  });

  return {
    async open({ actor, token_hash }, idOrName, { cols = 80, rows = 24, shell: wanted = undefined }) {
      if (stopping) throw new MusterError('draining');
      const agent = await requireAgent(context, idOrName);
      const label = agent.name ?? agent.initial_hostname;
      if (!context.presence.isConnected(agent.node_id))
        throw new MusterError('agent_offline', `${label} is not connected`);
      if (agent.status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${agent.status}`);
      const session_id = context.newId();
      const { node_id } = agent;
      const opened_at = seconds(context.now());
      const session: EndedSession = { session_id, operator_id: actor.id, opened_at, agent: { node_id, name: label } };
      /** Whether a row exists, or may exist. */
      const onRecord = Promise.withResolvers<boolean>();
      const gone = Promise.withResolvers<void>();
      const recording = await begun(session_id, (reason) => {
        context.log.error({ err: reason, session_id }, 'failed to record terminal; ending it');
        live.unrecorded(reason);
      });
      const live = new LiveTerminal({
        session_id,
        operator_id: actor.id,
        cols,
        rows,
        clock,
        rules,
        recording,
        recentScreen,
        onEnded: (end, digest) => {
          tickets.revoke((ticket) => ticket.session_id === session_id);
          onRecord.promise
            .then<unknown>((is) => (is ? ends.record(session, end, digest) : transcripts.remove(session_id)))
            .catch((error: unknown) => context.log.warn({ err: error, session_id }, 'failed to remove transcript'))
            .finally(() => {
              open.delete(session_id);
              gone.resolve();
            });
        },
      });
      open.set(session_id, { live, node_id, gone: gone.promise });
      watch();
      try {
        // No shell starts for an operator who was removed, because a shell runs the profile of its user.
        await stillSignedIn(context, actor);
        const shell = await shells.open(
          { session_id, node_id, cols, rows, shell: wanted ?? null, operator: actor.name },
          live,
        );
        live.begin(shell, headerOf(session, actor, shell, { cols, rows }));
        await db.write({
          name: 'terminals/open',
          statements: [
            // In the same transaction: an operator removed concurrently gets no terminal.
            statement(liveOperator, { operator_id: actor.id }, { expect: 'row', else: 'unauthenticated' }),
            statement(approvedAgent, { node_id }, { expect: 'row', else: 'agent_not_approved' }),
            statement(insertTerminal, { session_id, node_id, operator_id: actor.id, opened_at }),
            audited(context, {
              type: 'terminal.opened',
              actor,
              target: { type: 'agent', id: node_id, name: label },
              summary: `${actor.name} opened a terminal on ${label}`,
              metadata: { session_id, shell: shell.program, user: shell.user },
            }),
          ],
        });
        onRecord.resolve(true);
      } catch (error) {
        onRecord.resolve(error instanceof OutcomeUnknown);
        live.close(ended('terminal_closed', 'it could not be opened'));
        await gone.promise;
        throw error;
      }
      if (live.end) {
        const { notice, reason } = live.end;
        throw new MusterError(notice.type === 'error' ? notice.code : 'terminal_ended', reason);
      }
      return connection({ session_id, operator_id: actor.id, username: actor.name, mode: 'control', token_hash });
    },

    async list({ status, ...wish }) {
      await settled(open.keys());
      const query = terminals({ status: status !== undefined });
      return mapPage(await readPage(wish, (part) => db.all(query, { status, ...part })), toSession);
    },

    async get(sessionId) {
      await settled([sessionId]);
      const row = await requireSession(context, sessionId);
      const kept = await transcripts.has(row.session_id);
      const session = toSession(row);
      return {
        ...session,
        end_reason: row.end_reason,
        transcript_path: kept ? `${addressOf(row.session_id)}/transcript` : null,
        transcript_sha256: row.transcript_sha256,
        transcript_bytes: row.transcript_bytes,
        viewers: session.attached.length,
      };
    },

    async close(asker, sessionId) {
      await settled([sessionId]);
      const row = await requireSession(context, sessionId);
      requireOwn(asker, row);
      const one = open.get(sessionId);
      if (row.status !== 'active' || !one) return;
      const actor = await stillSignedIn(context, asker.actor);
      one.live.close(ended('terminal_closed', `${actor.name} ended it`, actor));
      await settled([sessionId]);
    },

    async attach(asker, sessionId, mode) {
      await settled([sessionId]);
      const row = await requireSession(context, sessionId);
      requireOwn(asker, row);
      const live = open.get(sessionId)?.live;
      if (row.status !== 'active' || !live || live.over) throw new MusterError('terminal_ended');
      const { actor, token_hash } = asker;
      const { session_id } = row;
      const target = { type: 'agent', id: row.node_id, name: await agentLabel(context, row.node_id) };
      const given = connection({ session_id, operator_id: actor.id, username: actor.name, mode, token_hash });
      await db.write({
        name: 'terminals/attach',
        statements: [
          // An operator removed concurrently gets no ticket, or has it revoked.
          statement(liveOperator, { operator_id: actor.id }, { expect: 'row', else: 'unauthenticated' }),
          audited(context, {
            type: 'terminal.joined',
            actor,
            target,
            summary: `${actor.name} joined a terminal on ${target.name} to ${mode}`,
            metadata: { session_id: row.session_id, mode },
          }),
        ],
      });
      return given;
    },

    async transcript(asker, sessionId, format) {
      const row = await requireSession(context, sessionId);
      requireOwn(asker, row);
      const kept = await (format === 'raw' ? transcripts.raw(row.session_id) : transcripts.cast(row.session_id));
      if (kept === null) throw new MusterError('terminal_not_found', 'nothing is kept of what this session showed');
      return kept;
    },

    connect(ticket, sessionId, client) {
      const found = tickets.redeem(ticket);
      if (found === null || found.session_id !== sessionId) return null;
      const live = open.get(found.session_id)?.live;
      if (!live || live.over) return null;
      const { operator_id, username, mode, token_hash } = found;
      if (mode === 'view' && live.attached.length >= maxConnections) {
        client.tell({ type: 'error', code: 'terminal_limit', message: 'too many viewers are connected' });
        client.close();
        return { mode, typed: () => {}, resized: () => {}, left: () => {} };
      }
      return live.connect(client, { operator_id, username, mode, since: seconds(context.now()) }, token_hash);
    },

    async interruptLeftovers() {
      const rows = await db.all(activeTerminals, {});
      const end = interrupted('the orchestrator restarted');
      const record = async () => {
        for (const row of rows) {
          const { session_id, node_id } = row;
          // An unreadable file must not keep other sessions from ending.
          await transcripts
            .repair(session_id)
            .catch((error: unknown) =>
              context.log.warn(
                { err: error, session_id },
                'failed to repair transcript; its last line may be incomplete',
              ),
            );
          const digest = await transcripts.digest(session_id).catch((error: unknown) => {
            context.log.warn({ err: error, session_id }, 'failed to read transcript');
            return null;
          });
          const name = await agentLabel(context, node_id).catch(() => node_id);
          await ends.record({ ...row, agent: { node_id, name } }, end, digest);
        }
        if (ends.waiting > 0) watch();
      };
      return { recorded: record() };
    },

    async stop() {
      stopping = true;
      cancelTimer?.();
      unsubscribe();
      endAll(() => true, interrupted('the orchestrator is stopping'));
      const gone = Promise.all([...open.values()].map((one) => one.gone)).then(() => ends.retry());
      let cancel = () => {};
      const late = new Promise<void>((resolve) => {
        cancel = clock.after(stopMs, resolve);
      });
      await Promise.race([gone, late]);
      cancel();
    },
  };
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
