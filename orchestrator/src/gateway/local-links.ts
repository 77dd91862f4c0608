import type { Contact } from '../domain/presence/contacts.ts';
import type { OwnLinks } from '../domain/presence/follow-replicas.ts';
import type { Dispatcher } from './dispatch.ts';
import { workFlags } from './link.ts';
import type { LinkRegistry } from './presence.ts';
import type { Reception } from './reception.ts';

/** The links of this process, for what other processes change about their agents. */
export class LocalLinks implements OwnLinks {
  readonly #registry: LinkRegistry;
  readonly #reception: Reception;
  readonly #dispatcher: Dispatcher;

  constructor(parts: { registry: LinkRegistry; reception: Reception; dispatcher: Dispatcher }) {
    this.#registry = parts.registry;
    this.#reception = parts.reception;
    this.#dispatcher = parts.dispatcher;
  }

  /** The agents with an open link. */
  get nodeIds(): string[] {
    return Array.from(this.#registry.all(), ({ nodeId }) => nodeId!);
  }

  /** Reports whether the agent has a link that is open or being admitted. */
  has(nodeId: string): boolean {
    return this.#registry.get(nodeId) !== undefined || this.#reception.claimant(nodeId) !== undefined;
  }

  /** Sends the agent its operations or cancellations. */
  wake(nodeId: string, { waits, cancels }: { waits: boolean; cancels: boolean }): void {
    const link = this.#registry.get(nodeId);
    if (link) this.#dispatcher.wake(link, (waits ? workFlags.work : 0) | (cancels ? workFlags.cancellations : 0));
  }

  /** Closes the agent's open link, because another process has a newer one. */
  cut(nodeId: string): void {
    this.#registry.get(nodeId)?.cut('the agent is connected to another replica');
  }

  /** Checks whether the agent answers. Closes its link if it does not. @returns whether it answered */
  async probe(nodeId: string): Promise<boolean> {
    const link = this.#registry.get(nodeId);
    if (!link) return false;
    const outcome = await this.#registry.probe(link);
    if (outcome === 'silent') link.cut('connection lost: no answer to a probe');
    return outcome === 'answered';
  }

  contacts(): Contact[] {
    return Array.from(this.#registry.all(), (link) => ({
      nodeId: link.nodeId!,
      heardAt: this.#registry.lastFrameAt(link),
      ahead: link.clockSkewSecs ?? 0,
    }));
  }
}
