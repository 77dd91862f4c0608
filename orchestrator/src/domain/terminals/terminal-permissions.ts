import type { Clock } from '../../../../lib/src/clock.ts';
import { approvedAgents } from '../../store/queries/agents/agents.ts';
import { removedOperators } from '../../store/queries/operators.ts';
import { sessionsOf } from '../../store/queries/sessions.ts';
import { type Context, seconds } from '../shared/context.ts';
import type { OpenTerminals } from './open-terminals.ts';
import { ended, interrupted } from './terminal-end.ts';
import type { TakenTicket } from './terminal-tickets.ts';

/** Milliseconds after which the permissions of operators and agents are checked again, because hints may be lost. */
const recheckMs = 5_000;
/** {@link recheckMs} for a replica, which gets no hints about changes on other replicas. */
const replicaRecheckMs = 1_000;

/**
 * Ends terminal sessions when their operator is removed or their agent is no longer approved, and connections when their
 * operator is removed or signs out. Refuses tickets of such operators.
 */
export class TerminalPermissions {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #open: OpenTerminals;
  readonly #unsubscribe: () => void;
  #checkedAt: number;
  /** Number of removed operators and ended sign-in sessions. */
  #endings = 0;
  #checking = false;

  constructor(context: Context, clock: Clock, open: OpenTerminals) {
    this.#context = context;
    this.#clock = clock;
    this.#open = open;
    this.#checkedAt = clock.monotonic();
    this.#unsubscribe = context.bus.subscribe((hint) => {
      if (hint.type === 'operator_removed') this.#operatorRemoved(hint.operator_id);
      else if (hint.type === 'session_ended') this.#signInEnded(hint.token_hash, hint.renewed_as);
      else if ((hint.type === 'agent_changed' || hint.type === 'agent_removed') && this.#isInUse(hint.node_id))
        this.#endOfRejected([hint.node_id]).catch((error: unknown) =>
          context.log.warn({ err: error }, 'failed to look up agent with open terminals'),
        );
    });
  }

  /**
   * Opens a connection if the operator of a ticket still has access. Repeats the check if, during it, an operator was
   * removed, or a sign-in session ended or was renewed. Otherwise, nothing would close a connection that opens after
   * such a change.
   * @param open called immediately after the check, with the current token hash of the ticket's sign-in session
   * @returns null if the operator has no access
   */
  async admit<T>(ticket: TakenTicket, open: (tokenHash: string | undefined) => T): Promise<T | null> {
    for (;;) {
      const endings = this.#endings;
      const { operator_id } = ticket;
      const removed = await this.#context.db.all(removedOperators, { ids: [operator_id] });
      if (removed.length > 0) return null;
      const tokenHash = await this.#currentToken(ticket);
      if (tokenHash === null) return null;
      if (endings === this.#endings) return open(tokenHash);
    }
  }

  /**
   * Returns the token hash of the ticket's sign-in session, or of the session that replaced it; null if it has ended,
   * and undefined if the ticket has none.
   */
  async #currentToken({ operator_id, token_hash, sign_in_id }: TakenTicket): Promise<string | null | undefined> {
    if (token_hash == null) return undefined;
    const { db, now } = this.#context;
    const live = await db.all(sessionsOf, { operator_id, now: seconds(now()) });
    const found = live.find((one) =>
      sign_in_id === null ? one.token_hash === token_hash : one.session_id === sign_in_id,
    );
    return found?.token_hash ?? null;
  }

  /** Rechecks permissions if `recheckMs` has passed since the last check. */
  recheckWhenDue(): void {
    const interval = this.#context.isReplica ? replicaRecheckMs : recheckMs;
    if (!this.#checking && this.#clock.monotonic() - this.#checkedAt >= interval) void this.#recheck();
  }

  stop(): void {
    this.#unsubscribe();
  }

  async #recheck(): Promise<void> {
    this.#checking = true;
    try {
      const operators = new Set(this.#open.all.flatMap(({ live }) => live.operators));
      const removed = await this.#context.db.all(removedOperators, { ids: [...operators] });
      for (const { operator_id } of removed) this.#operatorRemoved(operator_id);
      await this.#endOfRejected([...new Set(this.#open.all.map(({ node_id }) => node_id))]);
    } catch (error) {
      this.#context.log.warn({ err: error }, 'failed to recheck terminal permissions');
    }
    this.#checking = false;
    this.#checkedAt = this.#clock.monotonic();
  }

  #operatorRemoved(operatorId: string): void {
    this.#endings++;
    for (const { live } of this.#open.all) live.cutOff(operatorId);
    this.#open.close(
      ({ live }) => live.operator_id === operatorId,
      ended('terminal_closed', 'the operator was removed'),
    );
  }

  /**
   * Closes the connections of the sign-in session. Their shells continue for the reattach time, as after any
   * disconnect.
   */
  #signInEnded(tokenHash: string, renewedAs: string | null): void {
    this.#endings++;
    for (const { live } of this.#open.all) live.signInEnded(tokenHash, renewedAs);
  }

  /** Ends the terminal sessions on agents that are not approved, without waiting for the agents' links to close. */
  async #endOfRejected(nodeIds: readonly string[]): Promise<void> {
    const rows = await this.#context.db.all(approvedAgents, { ids: nodeIds });
    const approved = new Set(rows.map(({ node_id }) => node_id));
    const rejected = new Set(nodeIds.filter((id) => !approved.has(id)));
    this.#open.close((one) => rejected.has(one.node_id), interrupted('the agent is no longer approved'));
  }

  #isInUse(nodeId: string): boolean {
    return this.#open.all.some(({ node_id }) => node_id === nodeId);
  }
}
