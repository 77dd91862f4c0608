import type { Clock } from '../../../../lib/src/clock.ts';
import { approvedAgents } from '../../store/queries/agents/agents.ts';
import { removedOperators } from '../../store/queries/operators.ts';
import { sessionByHash } from '../../store/queries/sessions.ts';
import { type Context, seconds } from '../shared/context.ts';
import { ended, interrupted } from './live-terminal.ts';
import type { OpenTerminals } from './open-terminals.ts';
import type { TerminalTicket } from './terminal-tickets.ts';

/** Milliseconds after which the permissions of operators and agents are checked again, because hints may be lost. */
const recheckMs = 5_000;

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
   * Reports whether the operator of a ticket still has access. Repeats the check if an operator was removed or signed
   * out during it, because nothing else would close a connection that opens after that.
   */
  async allows({ operator_id, token_hash = null }: TerminalTicket): Promise<boolean> {
    const { db, now } = this.#context;
    for (;;) {
      const endings = this.#endings;
      if ((await db.all(removedOperators, { ids: [operator_id] })).length > 0) return false;
      if (token_hash !== null) {
        const session = await db.get(sessionByHash, { token_hash });
        if (!session || session.expires_at <= seconds(now())) return false;
      }
      if (endings === this.#endings) return true;
    }
  }

  /** Rechecks permissions if `recheckMs` has passed since the last check. */
  recheckWhenDue(): void {
    if (!this.#checking && this.#clock.monotonic() - this.#checkedAt >= recheckMs) void this.#recheck();
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
