import type { Clock } from '../../../lib/src/clock.ts';
import type { Contact } from '../domain/presence/contacts.ts';
import type { OwnLinks } from '../domain/presence/follow-replicas.ts';
import type { Dispatcher } from './dispatch.ts';
import { type Link, workFlags } from './link.ts';
import type { LinkRegistry } from './presence.ts';
import type { Reception } from './reception.ts';

/** Seconds after which an agent reconnects if its link was closed to move it to another replica. */
const reconnectSecs = 1;

/** This process's links, to which changes by other processes are applied. */
export class LocalLinks implements OwnLinks {
  readonly #registry: LinkRegistry;
  readonly #reception: Reception;
  readonly #dispatcher: Dispatcher;

  readonly #clock: Clock;
  readonly #commitMs: number;
  readonly #released = new WeakSet<Link>();

  /**
   * @param parts.commitMs maximum milliseconds to wait for reports that are being stored when an agent's link is closed
   */
  constructor(parts: {
    registry: LinkRegistry;
    reception: Reception;
    dispatcher: Dispatcher;
    clock: Clock;
    commitMs: number;
  }) {
    this.#registry = parts.registry;
    this.#reception = parts.reception;
    this.#dispatcher = parts.dispatcher;
    this.#clock = parts.clock;
    this.#commitMs = parts.commitMs;
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

  /**
   * Closes the links of some agents, which then connect to another replica.
   * @returns the number of agents that were connected, up to `count`
   */
  release(count: number): number {
    let released = 0;
    for (const link of this.#registry.all()) {
      if (released === count) break;
      if (this.#released.has(link)) continue;
      this.#released.add(link);
      link.send({ type: 'drain', retry_after_secs: reconnectSecs });
      void this.#committed(link).then(() => link.close(1001, 'drain'));
      released++;
    }
    return released;
  }

  /**
   * Waits until an agent's pending reports are stored. The agent resends reports that were not stored within the time
   * limit.
   */
  async #committed(link: Link): Promise<void> {
    if (link.committing === null) return;
    let cancelTimer = () => {};
    const late = new Promise<void>((resolve) => {
      cancelTimer = this.#clock.after(this.#commitMs, resolve);
    });
    await Promise.race([link.committing.catch(() => {}), late]);
    cancelTimer();
  }

  contacts(): Contact[] {
    return Array.from(this.#registry.all(), (link) => ({
      nodeId: link.nodeId!,
      heardAt: this.#registry.lastFrameAt(link),
      ahead: link.clockSkewSecs ?? 0,
    }));
  }
}
