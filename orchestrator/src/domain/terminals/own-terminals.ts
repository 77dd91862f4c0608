import { MusterError } from '@muster/protocol';
import { apiPrefix, type Role } from '@muster/protocol/http';
import { liveOperator } from '../../store/queries/operators.ts';
import { terminalById } from '../../store/queries/terminals.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { requireAgent } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, type OtherReplica, seconds } from '../shared/context.ts';
import type { LiveTerminal } from './live-terminal.ts';
import { openTerminal, type ShellChoice, type TerminalParts } from './open-terminal.ts';
import type { OpenTerminals } from './open-terminals.ts';
import type { TerminalClient, TerminalConnectionEvents } from './terminal-client.ts';
import { ended } from './terminal-end.ts';
import type { EndedSession, TerminalEnds } from './terminal-ends.ts';
import type { TerminalPermissions } from './terminal-permissions.ts';
import type { OwnSessions } from './terminal-replicas.ts';
import type { TerminalMode, TerminalTickets } from './terminal-tickets.ts';

/**
 * Opens, ends, and connects to the sessions of this process, for its own clients and for other replicas.
 */

export interface TerminalAsker {
  readonly actor: Actor;
  readonly role: Role;
  /**
   * Token hash of the operator's sign-in session, if any. When that session ends, the connections opened with it are
   * closed.
   */
  readonly token_hash?: string;
}

export interface TerminalConnection {
  session_id: string;
  ws_url: string;
}

/** Maximum number of connections per session. */
const maxConnections = 33;

export type TerminalRow = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, sessionId: string) => db.get(terminalById, { session_id: sessionId });

export const addressOf = (sessionId: string) => `${apiPrefix}/terminal/session/${sessionId}`;

export async function requireSession(context: Context, sessionId: string): Promise<TerminalRow> {
  const row = await findRow(context, sessionId);
  if (!row)
    throw new MusterError(
      'terminal_not_found',
      `there is no terminal session ${JSON.stringify(sessionId.slice(0, 64))}`,
    );
  return row;
}

/**
 * Returns the agent if it is approved and connected.
 * @returns `replica`: the other replica that the agent is connected to, if any
 * @throws MusterError agent_not_found, agent_offline, agent_not_approved
 */
export async function requireReachable(
  context: Context,
  idOrName: string,
): Promise<{ agent: EndedSession['agent']; replica: OtherReplica | null }> {
  const { node_id, name: chosen, initial_hostname, status } = await requireAgent(context, idOrName);
  const name = chosen ?? initial_hostname;
  if (!context.presence.isConnected(node_id)) throw new MusterError('agent_offline', `${name} is offline`);
  if (status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${status}`);
  return { agent: { node_id, name }, replica: context.presence.replicaOf(node_id) };
}

/**
 * Returns the session if the operator may use it.
 * @throws MusterError terminal_not_found, terminal_of_another
 */
export async function requireOwn(
  context: Context,
  { actor, role }: TerminalAsker,
  sessionId: string,
): Promise<TerminalRow> {
  const row = await requireSession(context, sessionId);
  if (row.operator_id !== actor.id && role !== 'admin') throw new MusterError('terminal_of_another');
  return row;
}

/**
 * Records that an operator joins a session, and stores the operator's ticket.
 * @throws MusterError unauthenticated if the operator was removed concurrently; terminal_limit
 */
async function recordJoin(
  context: Context,
  actor: Actor,
  { session_id, node_id }: TerminalRow,
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

const atReplica = ({ name }: EndedSession['agent'], replica: OtherReplica): MusterError =>
  new MusterError('terminal_at_other_replica', `${name} is connected to the replica ${replica.name}`);

const connectionTo = (session_id: string, ticket: string): TerminalConnection => ({
  session_id,
  ws_url: `${addressOf(session_id)}/ws?ticket=${ticket}`,
});

interface State {
  readonly tickets: TerminalTickets;
  readonly ends: TerminalEnds;
  readonly open: OpenTerminals;
  readonly permissions: TerminalPermissions;
}

export class OwnTerminals {
  readonly #context: Context;
  readonly #parts: TerminalParts;
  readonly #state: State;

  constructor(context: Context, parts: TerminalParts, state: State) {
    this.#context = context;
    this.#parts = parts;
    this.#state = state;
  }

  /** Opens a session on an agent that is connected to this process. @throws MusterError as {@link openTerminal} */
  async open(asker: TerminalAsker, agent: EndedSession['agent'], choice: ShellChoice): Promise<TerminalConnection> {
    const { permissions: _, ...state } = this.#state;
    if (state.open.stopping) throw new MusterError('draining');
    const opening = { ...this.#parts, ...state, context: this.#context };
    const { session_id, ticket } = await openTerminal(opening, asker, agent, choice);
    return connectionTo(session_id, ticket);
  }

  /**
   * Issues a ticket to connect to a session.
   * @param signal if it is aborted, no ticket is issued
   * @throws MusterError terminal_ended, terminal_limit, unauthenticated
   */
  async attach(
    { actor, token_hash }: TerminalAsker,
    row: TerminalRow,
    mode: TerminalMode,
    signal?: AbortSignal,
  ): Promise<TerminalConnection> {
    const { session_id, node_id, status } = row;
    const live = this.#state.open.find(session_id);
    if (status !== 'active' || !live || live.over) throw new MusterError('terminal_ended');
    const agent = await agentLabel(this.#context, node_id);
    const ticket = { session_id, operator_id: actor.id, username: actor.name, mode, token_hash };
    const { text, statements } = this.#state.tickets.draw(ticket);
    signal?.throwIfAborted();
    await recordJoin(this.#context, actor, row, { agent, mode, more: statements });
    return connectionTo(session_id, text);
  }

  /** Ends a session. @throws MusterError unauthenticated */
  async close(asker: TerminalAsker, live: LiveTerminal): Promise<void> {
    const actor = await stillSignedIn(this.#context, asker.actor);
    live.close(ended('terminal_closed', `ended by ${actor.name}`, actor));
    await this.#state.open.waitForEnds([live.session_id]);
  }

  /**
   * Redeems a ticket, and connects the client.
   * @param isWanted returns whether to still connect; called immediately before connecting
   * @returns null if the ticket is invalid, or the connection is no longer wanted
   */
  async connect(
    ticket: string,
    sessionId: string,
    client: TerminalClient,
    isWanted = () => true,
  ): Promise<TerminalConnectionEvents | null> {
    const { tickets, permissions, open } = this.#state;
    const found = await tickets.take(ticket);
    if (found === null || found.session_id !== sessionId) return null;
    return permissions.admit(found, (tokenHash) => {
      const live = open.find(found.session_id);
      if (!live || live.over || !isWanted()) return null;
      const { operator_id, username, mode } = found;
      if (mode === 'view' && live.attached.length >= maxConnections) return refuseViewer(client);
      const since = seconds(this.#context.now());
      return live.connect(client, { operator_id, username, mode, since }, tokenHash);
    });
  }

  /** The handlers for requests from other replicas. */
  get answers(): OwnSessions {
    const context = this.#context;
    const { open } = this.#state;
    return {
      open: async ({ asker, node_id, ...choice }, { signal }) => {
        const { agent, replica } = await requireReachable(context, node_id);
        // The agent has moved since the other replica asked.
        if (replica !== null) throw atReplica(agent, replica);
        const opened = await this.open(asker, agent, choice);
        if (signal.aborted)
          open
            .find(opened.session_id)
            ?.close(ended('terminal_closed', 'the replica that requested the terminal is no longer waiting'));
        return opened;
      },
      attach: async ({ asker, session_id, mode }, { signal }) =>
        this.attach(asker, await requireOwn(context, asker, session_id), mode, signal),
      close: async ({ asker, session_id }) => {
        await requireOwn(context, asker, session_id);
        const live = open.find(session_id);
        if (live) await this.close(asker, live);
      },
      connect: (ticket, sessionId, client, isWanted) => this.connect(ticket, sessionId, client, isWanted),
      attached: (sessionId) => open.find(sessionId)?.attached ?? [],
    };
  }
}
