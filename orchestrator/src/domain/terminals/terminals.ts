import { MusterError } from '@muster/protocol';
import {
  apiPrefix,
  type Role,
  type TerminalSession,
  type TerminalSessionDetail,
  type TerminalStatus,
} from '@muster/protocol/http';
import { liveOperator } from '../../store/queries/operators.ts';
import { homeOfTerminal, strandedTerminals, terminalById, terminals } from '../../store/queries/terminals.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { requireAgent } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';
import { interruptLeftovers } from './leftover-terminals.ts';
import { ended } from './live-terminal.ts';
import { openTerminal, type TerminalParts } from './open-terminal.ts';
import { OpenTerminals } from './open-terminals.ts';
import type { TerminalClient, TerminalConnectionEvents, TerminalConnections } from './terminal-client.ts';
import { type EndedSession, TerminalEnds } from './terminal-ends.ts';
import { TerminalPermissions } from './terminal-permissions.ts';
import { type TerminalMode, TerminalTickets } from './terminal-tickets.ts';

/** Opens, lists, attaches to, and ends terminal sessions, and reads their transcripts. */

export interface TerminalAsker {
  readonly actor: Actor;
  readonly role: Role;
  /**
   * Token hash of the operator's sign-in session, if any. When that session ends, the connections opened with it are
   * closed.
   */
  readonly token_hash?: string;
}

export interface TerminalOptions {
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
   * Opens a session.
   * @throws MusterError agent_not_found, agent_offline, agent_not_approved, terminal_at_other_replica,
   * terminal_unrecorded, draining, and the agent's refusals
   */
  open(asker: TerminalAsker, idOrName: string, options: TerminalOptions): Promise<TerminalConnection>;
  list(filter: { status?: TerminalStatus | undefined } & PageRequest): Promise<Page<TerminalSession>>;
  /**
   * Returns a session.
   * @throws MusterError terminal_not_found
   */
  get(sessionId: string): Promise<TerminalSessionDetail>;
  /**
   * Ends a session. Has no effect if it has already ended.
   * @throws MusterError terminal_not_found, terminal_of_another, terminal_at_other_replica
   */
  close(asker: TerminalAsker, sessionId: string): Promise<void>;
  /**
   * Issues a ticket to connect to an open session.
   * @throws MusterError terminal_not_found, terminal_of_another, terminal_at_other_replica, terminal_ended,
   * terminal_limit
   */
  attach(asker: TerminalAsker, sessionId: string, mode: TerminalMode): Promise<TerminalConnection>;
  /**
   * Reads a session's transcript.
   * @throws MusterError terminal_not_found (also if there is no transcript), terminal_of_another
   */
  transcript(asker: TerminalAsker, sessionId: string, format: 'raw' | 'asciicast'): Promise<AsyncIterable<Uint8Array>>;
  /** Token hashes of the sign-in sessions that opened connections. */
  tokenHashes(): readonly string[];
  /**
   * Closes the terminal sessions that ended processes left open. Without replicas, call this once, before all other
   * calls. Resolves once these sessions are known.
   * @returns `recorded`, which resolves once the end of each session is recorded
   */
  interruptLeftovers(): Promise<{ readonly recorded: Promise<void> }>;
  /** Refuses new sessions, interrupts the open ones, and records that they ended. */
  stop(): Promise<void>;
}

/** Maximum connections per session. */
const maxConnections = 33;

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

/**
 * Returns the agent if it is approved and connected to this process.
 * @throws MusterError agent_not_found, agent_offline, agent_not_approved, terminal_at_other_replica
 */
async function requireReachable(context: Context, idOrName: string): Promise<EndedSession['agent']> {
  const { node_id, name: chosen, initial_hostname, status } = await requireAgent(context, idOrName);
  const name = chosen ?? initial_hostname;
  if (!context.presence.isConnected(node_id)) throw new MusterError('agent_offline', `${name} is offline`);
  if (status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${status}`);
  const replica = context.presence.replicaOf(node_id);
  if (replica !== null)
    throw new MusterError('terminal_at_other_replica', `${name} is connected to the replica ${replica.name}`);
  return { node_id, name };
}

/**
 * Returns the session if the operator may use it.
 * @throws MusterError terminal_not_found, terminal_of_another
 */
async function requireOwn(context: Context, { actor, role }: TerminalAsker, sessionId: string): Promise<Row> {
  const row = await requireSession(context, sessionId);
  if (row.operator_id !== actor.id && role !== 'admin') throw new MusterError('terminal_of_another');
  return row;
}

/** @throws MusterError terminal_at_other_replica if another live replica holds the terminal session */
async function requireHere({ db, isReplica, incarnation }: Context, session_id: string): Promise<void> {
  const home = isReplica ? await db.get(homeOfTerminal, { session_id }) : undefined;
  if (home !== undefined && home.incarnation !== incarnation)
    throw new MusterError('terminal_at_other_replica', `the replica ${home.name} holds the terminal session`);
}

/**
 * Verifies, before a ticket is redeemed, that no other replica holds the terminal session, so that the ticket stays
 * valid there.
 * @throws MusterError terminal_at_other_replica
 */
async function requireTicketHere(
  context: Context,
  tickets: TerminalTickets,
  ticket: string,
  sessionId: string,
): Promise<void> {
  if (context.isReplica && (await tickets.exists(ticket))) await requireHere(context, sessionId);
}

/**
 * Records that an operator joins a session, and stores the operator's ticket.
 * @throws MusterError unauthenticated if the operator was removed concurrently; terminal_limit
 */
async function recordJoin(
  context: Context,
  actor: Actor,
  { session_id, node_id }: Row,
  { agent, mode, more }: { agent: string; mode: TerminalMode; more: readonly Statement[] },
): Promise<void> {
  await context.db.write({
    name: 'terminals/attach',
    statements: [
      statement(liveOperator, { operator_id: actor.id }, { expect: 'row', else: 'unauthenticated' }),
      ...more,
      audited(context, {
        type: 'terminal.joined',
        actor,
        target: { type: 'agent', id: node_id, name: agent },
        summary: `${actor.name} joined a terminal on ${agent} to ${mode}`,
        metadata: { session_id, mode },
      }),
    ],
  });
}

/** Refuses a viewer because the session has reached its maximum number of connections. */
function refuseViewer(client: TerminalClient): TerminalConnectionEvents {
  client.notify({
    type: 'error',
    code: 'terminal_limit',
    message: 'the session has its maximum number of connections',
  });
  client.close();
  return { mode: 'view', typed: () => {}, resized: () => {}, left: () => {} };
}

const connectionTo = (session_id: string, ticket: string): TerminalConnection => ({
  session_id,
  ws_url: `${addressOf(session_id)}/ws?ticket=${ticket}`,
});

const toSession = (row: Row, open: OpenTerminals): TerminalSession => ({
  session_id: row.session_id,
  node_id: row.node_id,
  operator_id: row.operator_id,
  status: row.status,
  opened_at: row.opened_at,
  closed_at: row.closed_at,
  attached: row.status === 'active' ? (open.find(row.session_id)?.attached ?? []) : [],
});

export function createTerminals(context: Context, parts: TerminalParts): Terminals {
  const { db } = context;
  const { clock, transcripts } = parts;
  const tickets = new TerminalTickets(context);
  const ends = new TerminalEnds(context);
  const open = new OpenTerminals({ clock, ends, onSweep: () => permissions.recheckWhenDue() });
  const permissions = new TerminalPermissions(context, clock, open);

  return {
    async open(asker, idOrName, { cols = 80, rows = 24, shell = null }) {
      if (open.stopping) throw new MusterError('draining');
      const agent = await requireReachable(context, idOrName);
      const choice = { cols, rows, shell };
      const opened = await openTerminal({ ...parts, context, tickets, ends, open }, asker, agent, choice);
      return connectionTo(opened.session_id, opened.ticket);
    },

    async list({ status, ...request }) {
      await open.waitForEnds();
      const query = terminals({ status: status !== undefined });
      return mapPage(await readPage(request, (part) => db.all(query, { status, ...part })), (row) =>
        toSession(row, open),
      );
    },

    async get(sessionId) {
      await open.waitForEnds([sessionId]);
      const row = await requireSession(context, sessionId);
      const hasTranscript = await transcripts.has(row.session_id);
      const session = toSession(row, open);
      return {
        ...session,
        end_reason: row.end_reason,
        transcript_path: hasTranscript ? `${addressOf(row.session_id)}/transcript` : null,
        transcript_sha256: row.transcript_sha256,
        transcript_bytes: row.transcript_bytes,
        viewers: session.attached.length,
      };
    },

    async close(asker, sessionId) {
      await open.waitForEnds([sessionId]);
      const row = await requireOwn(context, asker, sessionId);
      const live = open.find(sessionId);
      if (row.status === 'active' && !live) await requireHere(context, sessionId);
      if (row.status !== 'active' || !live) return;
      const actor = await stillSignedIn(context, asker.actor);
      live.close(ended('terminal_closed', `ended by ${actor.name}`, actor));
      await open.waitForEnds([sessionId]);
    },

    async attach(asker, sessionId, mode) {
      await open.waitForEnds([sessionId]);
      const row = await requireOwn(context, asker, sessionId);
      const live = open.find(sessionId);
      if (row.status === 'active' && !live) await requireHere(context, sessionId);
      if (row.status !== 'active' || !live || live.over) throw new MusterError('terminal_ended');
      const agent = await agentLabel(context, row.node_id);
      const { actor, token_hash } = asker;
      const ticket = { session_id: row.session_id, operator_id: actor.id, username: actor.name, mode, token_hash };
      const { text, statements } = tickets.draw(ticket);
      await recordJoin(context, actor, row, { agent, mode, more: statements });
      return connectionTo(row.session_id, text);
    },

    async transcript(asker, sessionId, format) {
      const row = await requireOwn(context, asker, sessionId);
      const content = await (format === 'raw' ? transcripts.raw(row.session_id) : transcripts.cast(row.session_id));
      if (content === null) throw new MusterError('terminal_not_found', 'this session has no transcript');
      return content;
    },

    async connect(ticket, sessionId, client) {
      if (!open.find(sessionId)) await requireTicketHere(context, tickets, ticket, sessionId);
      const found = await tickets.take(ticket);
      if (found === null || found.session_id !== sessionId) return null;
      return permissions.admit(found, (tokenHash) => {
        const live = open.find(found.session_id);
        if (!live || live.over) return null;
        const { operator_id, username, mode } = found;
        if (mode === 'view' && live.attached.length >= maxConnections) return refuseViewer(client);
        return live.connect(client, { operator_id, username, mode, since: seconds(context.now()) }, tokenHash);
      });
    },

    async interruptLeftovers() {
      const rows = await db.all(strandedTerminals, {});
      const recorded = interruptLeftovers(context, transcripts, ends, rows).then(() => {
        if (ends.waiting > 0) open.watch();
      });
      return { recorded };
    },

    tokenHashes: () => open.all.flatMap(({ live }) => live.tokenHashes),
    stop() {
      permissions.stop();
      return open.stop();
    },
  };
}
