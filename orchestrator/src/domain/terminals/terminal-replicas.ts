import { MusterError } from '@muster/protocol';
import { roles } from '@muster/protocol/http';
import { z } from 'zod';
import { type Ask, type Asked, AskFailed } from '../../bus/asks.ts';
import { homeOfTerminal } from '../../store/queries/terminals.ts';
import type { Context, OtherReplica } from '../shared/context.ts';
import type { TerminalRelay } from './relay/terminal-relay.ts';
import type { TerminalClient, TerminalConnectionEvents } from './terminal-client.ts';
import type { Attached } from './terminal-connection.ts';
import type { TerminalMode } from './terminal-tickets.ts';

/** Requests to the replicas that hold terminal sessions. A session belongs to the replica that opened its shell. */

const id = z.string().max(64);

const asker = z.object({
  actor: z.object({
    type: z.enum(['operator', 'agent', 'system']),
    id,
    name: z.string().max(256),
    session: id.exactOptional(),
  }),
  role: z.enum(roles),
  token_hash: id.exactOptional(),
});
type Asker = z.infer<typeof asker>;

const connection = z.object({ session_id: id, ws_url: z.string().max(1_024) });
type Connection = z.infer<typeof connection>;

const length = z.number().int().min(1).max(1_000);
const opening = z.object({
  asker,
  node_id: id,
  cols: length,
  rows: length,
  shell: z.string().max(256).nullable(),
});

/** Asks a replica to open a session on an agent that is connected to it. */
const askOpen: Ask<z.infer<typeof opening>, Connection> = {
  topic: 'terminals/open',
  question: opening,
  answer: connection,
};

const mode = z.enum(['control', 'view']);

/** Asks a replica for a ticket to connect to one of its sessions. */
const askAttach: Ask<{ asker: Asker; session_id: string; mode: TerminalMode }, Connection> = {
  topic: 'terminals/attach',
  question: z.object({ asker, session_id: id, mode }),
  answer: connection,
};

const connecting = z.object({
  session_id: id,
  ticket: z.string().max(256),
  /** ID of the relayed connection. */
  connection: z.string().regex(/^[0-9a-f]{32}$/),
});

/** Asks a replica to redeem a ticket for a relayed connection. `mode`: null if the ticket is invalid. */
const askConnect: Ask<z.infer<typeof connecting>, { mode: TerminalMode | null }> = {
  topic: 'terminals/connect',
  question: connecting,
  answer: z.object({ mode: mode.nullable() }),
};

/** Asks a replica to end one of its sessions in the name of an operator. */
const askClose: Ask<{ asker: Asker; session_id: string }, Record<string, never>> = {
  topic: 'terminals/close',
  question: z.object({ asker, session_id: id }),
  answer: z.object({}),
};

/** Asks a replica who is connected to its sessions. */
const askAttached: Ask<{ session_ids: string[] }, Record<string, Attached[]>> = {
  topic: 'terminals/attached',
  question: z.object({ session_ids: z.array(id).max(1_000) }),
  answer: z.record(
    id,
    z.array(
      z.object({
        operator_id: id,
        username: z.string().max(256),
        mode,
        since: z.number(),
      }),
    ),
  ),
};

/** Milliseconds to wait for a replica. An agent has ten seconds to start a shell. */
const openMs = 15_000;
const answerMs = 5_000;
const attachedMs = 2_000;

/**
 * Handles other replicas' requests for this replica's terminal sessions. Each handler may throw a MusterError, which
 * the other replica receives.
 */
export interface OwnSessions {
  open(question: z.infer<typeof opening>, asked: Asked): Promise<Connection>;
  attach(question: { asker: Asker; session_id: string; mode: TerminalMode }, asked: Asked): Promise<Connection>;
  close(question: { asker: Asker; session_id: string }): Promise<void>;
  /** @param isWanted returns whether to still connect; called immediately before connecting */
  connect(
    ticket: string,
    sessionId: string,
    client: TerminalClient,
    isWanted: () => boolean,
  ): Promise<TerminalConnectionEvents | null>;
  attached(sessionId: string): readonly Attached[];
}

/** The terminal sessions on other live replicas. */
export class TerminalReplicas {
  readonly #context: Context;
  readonly #relay: TerminalRelay | null;

  /** @param relay null without NATS */
  constructor(context: Context, relay: TerminalRelay | null) {
    this.#context = context;
    this.#relay = relay;
  }

  /** Returns the other live replica that holds an open session; null if there is none. */
  async homeOf(session_id: string): Promise<OtherReplica | null> {
    const { db, isReplica, incarnation } = this.#context;
    const home = isReplica ? await db.get(homeOfTerminal, { session_id }) : undefined;
    return home === undefined || home.incarnation === incarnation ? null : home;
  }

  /**
   * Ends a session on another replica.
   * @throws MusterError terminal_at_other_replica without an answer, and the refusals of that replica
   */
  async close(home: OtherReplica, asker: Asker, session_id: string): Promise<void> {
    await this.#ask(home, askClose, { asker, session_id });
  }

  /**
   * Opens a session at the replica that the agent is connected to.
   * @throws MusterError outcome_unknown without an answer, terminal_at_other_replica if the question cannot be sent, and
   * the refusals of that replica
   */
  async open(home: OtherReplica, label: string, question: z.infer<typeof opening>): Promise<Connection> {
    const where = `${label} is connected to the replica ${home.name}`;
    this.#requireRelay(where);
    return this.#context.bus
      .ask(home.incarnation, askOpen, question, { milliseconds: openMs })
      .catch((error: unknown) => {
        if (!(error instanceof AskFailed && error.isOutcomeUnknown)) throw atOther(where, error);
        const look = 'list the open terminals before you open another one';
        throw new MusterError('outcome_unknown', `${where}; ${error.message}; ${look}`);
      });
  }

  /**
   * Gets a ticket for a session on another replica.
   * @throws MusterError terminal_at_other_replica without an answer, and the refusals of that replica
   */
  attach(home: OtherReplica, asker: Asker, session_id: string, mode: TerminalMode): Promise<Connection> {
    this.#requireRelay(hasSession(home));
    return this.#ask(home, askAttach, { asker, session_id, mode });
  }

  /**
   * Connects a client to a session on another replica.
   * @returns null if the ticket is invalid
   * @throws MusterError terminal_at_other_replica without an answer, and the refusals of that replica
   */
  async connect(home: OtherReplica, ticket: string, session_id: string, client: TerminalClient) {
    const relay = this.#requireRelay(hasSession(home));
    return relay.dial(home.incarnation, client, async (connection) => {
      const { mode } = await this.#ask(home, askConnect, { session_id, ticket, connection });
      return mode;
    });
  }

  /** Answers other replicas' requests for this replica's sessions. @returns a function that stops answering */
  answer({ open, attach, close, connect, attached }: OwnSessions): () => void {
    const { bus } = this.#context;
    const stop = [
      bus.answer(askOpen, async (question, asked) => {
        this.#requireRelay(isHome);
        return open(question, asked);
      }),
      bus.answer(askAttach, async (question, asked) => {
        this.#requireRelay(isHome);
        return attach(question, asked);
      }),
      bus.answer(askClose, async (question) => {
        await close(question);
        return {};
      }),
      bus.answer(askConnect, async ({ ticket, session_id, connection }, { from, signal }) => {
        const relayed = this.#requireRelay(isHome).accept(from, connection);
        const isWanted = () => relayed.isOpen && !signal.aborted;
        const events = await connect(ticket, session_id, relayed.client, isWanted).catch((error: unknown) => {
          relayed.bind(null);
          throw error;
        });
        if (!isWanted()) {
          events?.left();
          relayed.bind(null);
          throw new MusterError('terminal_at_other_replica', `${isHome}; the connection to it was lost`);
        }
        relayed.bind(events);
        return { mode: events?.mode ?? null };
      }),
      bus.answer(askAttached, async ({ session_ids }) =>
        Object.fromEntries(session_ids.map((id) => [id, [...attached(id)]])),
      ),
    ];
    return () => {
      for (const one of stop) one();
    };
  }

  #ask<Question, Answer>(home: OtherReplica, ask: Ask<Question, Answer>, question: Question): Promise<Answer> {
    return this.#context.bus
      .ask(home.incarnation, ask, question, { milliseconds: answerMs })
      .catch((error: unknown) => Promise.reject(atOther(hasSession(home), error)));
  }

  #requireRelay(where: string): TerminalRelay {
    if (this.#relay?.isConnected) return this.#relay;
    const who = where === isHome ? 'it' : 'this replica';
    throw new MusterError('terminal_at_other_replica', `${where}; ${who} has no connection to NATS`);
  }

  /**
   * Returns who is connected to sessions on other replicas, by session ID. Omits sessions of replicas that do not
   * answer.
   * @param sessions open sessions, with the incarnation of the process that holds each
   */
  async attached(
    sessions: readonly { readonly session_id: string; readonly home: string | null }[],
  ): Promise<ReadonlyMap<string, readonly Attached[]>> {
    const { isReplica, incarnation, bus, log } = this.#context;
    const all = new Map<string, readonly Attached[]>();
    if (!isReplica) return all;
    const others = Map.groupBy(sessions, ({ home }) => home);
    await Promise.all(
      [...others].map(async ([home, of]) => {
        if (home === null || home === incarnation) return;
        const session_ids = of.map(({ session_id }) => session_id);
        try {
          const answer = await bus.ask(home, askAttached, { session_ids }, { milliseconds: attachedMs });
          for (const [sessionId, attached] of Object.entries(answer)) all.set(sessionId, attached);
        } catch (error) {
          if (!(error instanceof AskFailed)) throw error;
          log.debug(
            { incarnation: home, reason: error.reason },
            'failed to list the operators connected to terminals of another replica',
          );
        }
      }),
    );
    return all;
  }
}

const isHome = 'another replica holds the terminal session';
const hasSession = ({ name }: OtherReplica): string => `the replica ${name} holds the terminal session`;

/** @param error a refusal is returned unchanged */
const atOther = (where: string, error: unknown): unknown =>
  error instanceof AskFailed ? new MusterError('terminal_at_other_replica', `${where}; ${error.message}`) : error;
