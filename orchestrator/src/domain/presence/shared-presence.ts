import type { OtherReplica, Presence } from '../shared/context.ts';
import type { LinkView } from './link-view.ts';

/** The agents that are connected to any live process. This process's own links come first. */
export class SharedPresence implements Presence {
  readonly #own: Presence;
  readonly #view: LinkView;

  /** @param own the agents that are connected to this process */
  constructor(own: Presence, view: LinkView) {
    this.#own = own;
    this.#view = view;
  }

  get count(): number {
    return this.#own.count + this.#view.count;
  }

  isConnected(nodeId: string): boolean {
    return this.#own.isConnected(nodeId) || this.#view.ownerOf(nodeId) !== null;
  }

  lastContactAt(nodeId: string): number | null {
    return this.#own.lastContactAt(nodeId) ?? this.#view.heardAt(nodeId);
  }

  clockAheadSecs(nodeId: string): number {
    return this.#own.isConnected(nodeId) ? this.#own.clockAheadSecs(nodeId) : this.#view.clockAheadSecs(nodeId);
  }

  replicaOf(nodeId: string): OtherReplica | null {
    return this.#own.isConnected(nodeId) ? null : this.#view.ownerOf(nodeId);
  }
}
