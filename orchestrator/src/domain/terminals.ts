import { MusterError } from '@muster/protocol';
import { apiPrefix, type Role, type TerminalSession, type TerminalStatus } from '@muster/protocol/http';
import { approvedAgent } from '../store/agents.ts';
import { liveOperator } from '../store/operators.ts';
import {
  activeTerminals,
  activeTerminalsOf,
  endTerminal,
  endTerminalsOf,
  insertTerminal,
  terminalById,
  terminals,
} from '../store/terminals.ts';
import type { Transcripts } from '../store/transcripts.ts';
import { type Statement, statement } from '../store/unit.ts';
import { agentLabel } from './agent-label.ts';
import { requireAgent } from './agents.ts';
import { asciicast } from './asciicast.ts';
import { audited } from './audit.ts';
import { type Actor, type Context, seconds, systemActor } from './context.ts';
import { mapPage, type Page, type PageWish, readPage } from './page.ts';
import type { TerminalRelay } from './terminal-relay.ts';
import { type TerminalMode, type TerminalTicket, TerminalTickets } from './terminal-tickets.ts';

/** Terminals: who has a shell open on which machine, who may see and end it, and what it showed. */

/** Who asks, and as what. */
export interface TerminalAsker {
  readonly actor: Actor;
  readonly role: Role;
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

export interface Terminals {
  /** @throws MusterError agent_not_found, agent_offline, agent_not_approved, and what the relay throws */
  open(asker: TerminalAsker, idOrName: string, wish: TerminalWish): Promise<TerminalConnection>;
  list(filter: { status?: TerminalStatus | undefined } & PageWish): Promise<Page<TerminalSession>>;
  /** @throws MusterError terminal_not_found */
  get(sessionId: string): Promise<TerminalSession & { transcript_path: string | null; viewers: number }>;
  /** Does nothing when it has ended. @throws MusterError terminal_not_found, terminal_of_another */
  close(asker: TerminalAsker, sessionId: string): Promise<void>;
  /** @throws MusterError terminal_not_found, terminal_of_another, terminal_ended, terminal_limit */
  attach(asker: TerminalAsker, sessionId: string, mode: TerminalMode): Promise<TerminalConnection>;
  /** @throws MusterError terminal_not_found (also when nothing is kept), terminal_of_another */
  transcript(
    asker: TerminalAsker,
    sessionId: string,
    format: 'raw' | 'asciicast',
  ): Promise<AsyncIterable<string | Uint8Array>>;
  /** What a ticket is for, once; null when it is not good. */
  redeem(ticket: string): TerminalTicket | null;
  /** The shell is gone: it ended by itself, or with its agent. */
  ended(sessionId: string, status: 'closed' | 'interrupted', reason: string): Promise<void>;
  /** What a former process left open is over. Once, before anything else. */
  interruptLeftovers(): Promise<void>;
  stop(): void;
}

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, sessionId: string) => db.get(terminalById, { session_id: sessionId });

const toSession = (row: Row): TerminalSession => ({
  session_id: row.session_id,
  node_id: row.node_id,
  operator_id: row.operator_id,
  status: row.status,
  opened_at: row.opened_at,
  closed_at: row.closed_at,
});

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

async function targetOf(context: Context, nodeId: string) {
  return { type: 'agent', id: nodeId, name: await agentLabel(context, nodeId) };
}

async function closedEvent(context: Context, actor: Actor, row: Row, reason: string): Promise<Statement> {
  const target = await targetOf(context, row.node_id);
  return audited(context, {
    type: 'terminal.closed',
    actor,
    target,
    summary: `terminal on ${target.name} ended: ${reason}`,
    metadata: { session_id: row.session_id, operator_id: row.operator_id, reason },
  });
}

/** For the unit that removes an operator: what it has open ends with it. */
export async function endingTerminalsOf(context: Context, actor: Actor, operatorId: string): Promise<Statement[]> {
  const open = await context.db.all(activeTerminalsOf, { operator_id: operatorId });
  const events = open.map((row) => closedEvent(context, actor, row, 'the operator was removed'));
  return [
    statement(endTerminalsOf, { operator_id: operatorId, closed_at: seconds(context.now()) }),
    ...(await Promise.all(events)),
  ];
}

export function createTerminals(context: Context, transcripts: Transcripts, relay: TerminalRelay): Terminals {
  const { db } = context;
  const tickets = new TerminalTickets(context.now, context.randomBytes);
  /** Open ones by operator, so that a removal ends them at once; the rows end in the removal's own unit. */
  const open = new Map<string, string>();

  const letGo = (sessionId: string) => {
    open.delete(sessionId);
    tickets.revoke({ session_id: sessionId });
    relay.close(sessionId);
  };
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type !== 'operator_removed') return;
    tickets.revoke({ operator_id: hint.operator_id });
    for (const [sessionId, operatorId] of open) if (operatorId === hint.operator_id) letGo(sessionId);
  });

  const connection = (ticket: TerminalTicket): TerminalConnection => {
    const text = tickets.issue(ticket);
    if (text === null)
      throw new MusterError('terminal_limit', 'too many tickets for this session were asked for and not used');
    return { session_id: ticket.session_id, ws_url: `${addressOf(ticket.session_id)}/ws?ticket=${text}` };
  };

  const end = async (row: Row, status: 'closed' | 'interrupted', actor: Actor, reason: string): Promise<void> => {
    try {
      await db.write({
        name: 'terminals/end',
        statements: [
          statement(
            endTerminal,
            { session_id: row.session_id, status, closed_at: seconds(context.now()) },
            { expect: 'changed', else: 'terminal_ended' },
          ),
          await closedEvent(context, actor, row, reason),
        ],
      });
    } catch (error) {
      // It ended otherwise in this moment: that is what was asked for.
      if (!(error instanceof MusterError && error.code === 'terminal_ended')) throw error;
    }
    letGo(row.session_id);
  };

  return {
    async open({ actor }, idOrName, { cols = 80, rows = 24, shell = undefined }) {
      const agent = await requireAgent(context, idOrName);
      const label = agent.name ?? agent.initial_hostname;
      if (!context.presence.isConnected(agent.node_id))
        throw new MusterError('agent_offline', `${label} is not connected`);
      if (agent.status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${agent.status}`);
      const session_id = context.newId();
      const { node_id } = agent;
      await relay.open({ session_id, node_id, cols, rows, shell: shell ?? null });
      open.set(session_id, actor.id);
      try {
        await db.write({
          name: 'terminals/open',
          statements: [
            // In the same unit: whoever is removed in this moment gets no terminal.
            statement(liveOperator, { operator_id: actor.id }, { expect: 'row', else: 'unauthenticated' }),
            statement(approvedAgent, { node_id }, { expect: 'row', else: 'agent_not_approved' }),
            statement(insertTerminal, {
              session_id,
              node_id,
              operator_id: actor.id,
              opened_at: seconds(context.now()),
            }),
            audited(context, {
              type: 'terminal.opened',
              actor,
              target: { type: 'agent', id: node_id, name: label },
              summary: `${actor.name} opened a terminal on ${label}`,
              metadata: { session_id, ...(shell === undefined ? {} : { shell }) },
            }),
          ],
        });
      } catch (error) {
        letGo(session_id);
        throw error;
      }
      return connection({ session_id, operator_id: actor.id, mode: 'control' });
    },

    async list({ status, ...wish }) {
      const query = terminals({ status: status !== undefined });
      return mapPage(await readPage(wish, (part) => db.all(query, { status, ...part })), toSession);
    },

    async get(sessionId) {
      const row = await requireSession(context, sessionId);
      const kept = await transcripts.has(row.session_id);
      return {
        ...toSession(row),
        transcript_path: kept ? `${addressOf(row.session_id)}/transcript` : null,
        viewers: row.status === 'active' ? relay.viewers(row.session_id) : 0,
      };
    },

    async close(asker, sessionId) {
      const row = await requireSession(context, sessionId);
      requireOwn(asker, row);
      if (row.status === 'active') await end(row, 'closed', asker.actor, `${asker.actor.name} ended it`);
    },

    async attach(asker, sessionId, mode) {
      const row = await requireSession(context, sessionId);
      requireOwn(asker, row);
      if (row.status !== 'active') throw new MusterError('terminal_ended');
      const { actor } = asker;
      const target = await targetOf(context, row.node_id);
      const given = connection({ session_id: row.session_id, operator_id: actor.id, mode });
      await db.write({
        name: 'terminals/attach',
        statements: [
          // Whoever is removed in this moment has the ticket taken back, or does not get it.
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
      const raw = await transcripts.raw(row.session_id);
      if (raw === null) throw new MusterError('terminal_not_found', 'nothing is kept of what this session showed');
      if (format === 'raw') return raw;
      const marks = await transcripts.timing(row.session_id);
      return asciicast(row.opened_at, raw, marks ?? nothing());
    },

    redeem: (ticket) => tickets.redeem(ticket),

    async ended(sessionId, status, reason) {
      const row = await findRow(context, sessionId);
      if (row?.status === 'active') await end(row, status, systemActor, reason);
      else letGo(sessionId);
    },

    async interruptLeftovers() {
      for (const row of await db.all(activeTerminals, {}))
        await end(row, 'interrupted', systemActor, 'the orchestrator was started anew');
    },

    stop: unsubscribe,
  };
}

async function* nothing(): AsyncGenerator<never> {}
