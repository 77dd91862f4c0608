import type { Clock } from '../../../../lib/src/clock.ts';
import { approvedAgents } from '../../store/queries/agents/agents.ts';
import { removedOperators } from '../../store/queries/operators.ts';
import type { Context } from '../shared/context.ts';
import { ended, interrupted } from './live-terminal.ts';
import type { OpenTerminals } from './open-terminals.ts';
import type { TerminalTickets } from './terminal-tickets.ts';

/** Milliseconds after which the permissions of operators and agents are checked again, because hints may be lost. */
const recheckMs = 5_000;

/**
 * Ends terminal sessions and revokes tickets when their operator is removed or signs out, or when their agent is no
 * longer approved.
 */
export class TerminalPermissions {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #open: OpenTerminals;
  readonly #tickets: TerminalTickets;
  readonly #unsubscribe: () => void;
  #checkedAt: number;
  #checking = false;

  constructor(context: Context, clock: Clock, open: OpenTerminals, tickets: TerminalTickets) {
    this.#context = context;
    this.#clock = clock;
    this.#open = open;
    this.#tickets = tickets;
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
    this.#tickets.revoke((ticket) => ticket.operator_id === operatorId);
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
    if (renewedAs === null) this.#tickets.revoke(({ token_hash }) => token_hash === tokenHash);
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
