import { MusterError } from '@muster/protocol';
import type { TerminalSession, TerminalSessionDetail, TerminalStatus } from '@muster/protocol/http';
import { strandedTerminals, terminals } from '../../store/queries/terminals.ts';
import type { Context } from '../shared/context.ts';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';
import { interruptLeftovers } from './leftover-terminals.ts';
import type { TerminalParts } from './open-terminal.ts';
import { OpenTerminals } from './open-terminals.ts';
import {
  addressOf,
  OwnTerminals,
  requireOwn,
  requireReachable,
  requireSession,
  type TerminalAsker,
  type TerminalConnection,
  type TerminalRow,
} from './own-terminals.ts';
import { TerminalRelay } from './relay/terminal-relay.ts';
import type { TerminalConnections } from './terminal-client.ts';
import type { Attached } from './terminal-connection.ts';
import { TerminalEnds } from './terminal-ends.ts';
import { TerminalPermissions } from './terminal-permissions.ts';
import { TerminalReplicas } from './terminal-replicas.ts';
import { type TerminalMode, TerminalTickets } from './terminal-tickets.ts';

/** Opens, lists, attaches to, and ends terminal sessions, and reads their transcripts. */

export interface TerminalOptions {
  cols?: number | undefined;
  rows?: number | undefined;
  shell?: string | undefined;
}

export interface Terminals extends TerminalConnections {
  /**
   * Opens a session.
   * @throws MusterError agent_not_found, agent_offline, agent_not_approved, terminal_at_other_replica,
   * outcome_unknown, terminal_unrecorded, draining, and the agent's refusals
   */
  open(asker: TerminalAsker, idOrName: string, options: TerminalOptions): Promise<TerminalConnection>;
  list(filter: { status?: TerminalStatus | undefined } & PageRequest): Promise<Page<TerminalSession>>;
  /**
   * Returns a session.
   * @throws MusterError terminal_not_found
   */
  get(sessionId: string): Promise<TerminalSessionDetail>;
  /**
   * Ends a session, also on another replica. Has no effect if it has already ended.
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
  /** Returns the token hashes of the sign-in sessions that opened connections. */
  tokenHashes(): readonly string[];
  /**
   * Closes the sessions that ended processes left open. Without replicas, call this once, before all other calls.
   * Resolves once these sessions are known.
   * @returns `recorded`, which resolves once the end of each session is recorded
   */
  interruptLeftovers(): Promise<{ readonly recorded: Promise<void> }>;
  /** Refuses new sessions, interrupts the open sessions, and records that they ended. */
  stop(): Promise<void>;
}

const toSession = (row: TerminalRow, attached: readonly Attached[] | undefined): TerminalSession => ({
  session_id: row.session_id,
  node_id: row.node_id,
  operator_id: row.operator_id,
  status: row.status,
  opened_at: row.opened_at,
  closed_at: row.closed_at,
  attached: row.status === 'active' ? [...(attached ?? [])] : [],
});

export function createTerminals(context: Context, parts: TerminalParts): Terminals {
  const { db } = context;
  const { clock, transcripts } = parts;
  const tickets = new TerminalTickets(context);
  const ends = new TerminalEnds(context);
  const open = new OpenTerminals({ clock, ends, onSweep: () => permissions.recheckWhenDue() });
  const permissions = new TerminalPermissions(context, clock, open);
  const own = new OwnTerminals(context, parts, { tickets, ends, open, permissions });
  const relay = parts.wire && new TerminalRelay(context, parts.wire, (ms, act) => clock.after(ms, act));
  const replicas = new TerminalReplicas(context, relay);
  const toSessions = async (rows: readonly TerminalRow[]): Promise<TerminalSession[]> => {
    const elsewhere = rows.filter(({ status, session_id }) => status === 'active' && !open.find(session_id));
    const others = await replicas.attached(elsewhere);
    return rows.map((row) => toSession(row, open.find(row.session_id)?.attached ?? others.get(row.session_id)));
  };
  const stopAnswering = replicas.answer(own.answers);

  return {
    async open(asker, idOrName, { cols = 80, rows = 24, shell = null }) {
      if (open.stopping) throw new MusterError('draining');
      const { agent, replica } = await requireReachable(context, idOrName);
      const choice = { cols, rows, shell };
      if (replica === null) return own.open(asker, agent, choice);
      return replicas.open(replica, agent.name, { asker, node_id: agent.node_id, ...choice });
    },

    async list({ status, ...request }) {
      await open.waitForEnds();
      const query = terminals({ status: status !== undefined });
      const page = await readPage(request, (part) => db.all(query, { status, ...part }));
      return { ...page, items: await toSessions(page.items) };
    },

    async get(sessionId) {
      await open.waitForEnds([sessionId]);
      const row = await requireSession(context, sessionId);
      const hasTranscript = await transcripts.has(row.session_id);
      const [session] = (await toSessions([row])) as [TerminalSession];
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
      if (row.status !== 'active') return;
      if (live) return own.close(asker, live);
      const home = await replicas.homeOf(sessionId);
      if (home !== null) await replicas.close(home, asker, sessionId);
    },

    async attach(asker, sessionId, mode) {
      await open.waitForEnds([sessionId]);
      const row = await requireOwn(context, asker, sessionId);
      const home = row.status === 'active' && !open.find(sessionId) ? await replicas.homeOf(sessionId) : null;
      return home === null ? own.attach(asker, row, mode) : replicas.attach(home, asker, sessionId, mode);
    },

    async transcript(asker, sessionId, format) {
      const row = await requireOwn(context, asker, sessionId);
      const content = await (format === 'raw' ? transcripts.raw(row.session_id) : transcripts.cast(row.session_id));
      if (content === null) throw new MusterError('terminal_not_found', 'this session has no transcript');
      return content;
    },

    async connect(ticket, sessionId, client) {
      if (!context.isReplica || open.find(sessionId)) return own.connect(ticket, sessionId, client);
      if (!(await tickets.exists(ticket))) return null;
      const home = await replicas.homeOf(sessionId);
      if (home === null) return own.connect(ticket, sessionId, client);
      return replicas.connect(home, ticket, sessionId, client);
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
      stopAnswering();
      permissions.stop();
      return open.stop();
    },
  };
}
