import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import { TerminalPeer } from './terminal-peer.ts';

/** Interval between checks, in milliseconds. All sockets share one timer, which stops when no socket is open. */
const checkMs = 1_000;

export class TerminalPeers {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new Set<TerminalPeer>();
  #cancelTimer: (() => void) | null = null;
  #onEmpty = () => {};

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Creates a peer, which counts toward the maximum number of peers from {@link add} until it closes. */
  create(): TerminalPeer {
    return new TerminalPeer({ clock: this.#clock, log: this.#log, onClosed: (peer) => this.#remove(peer) });
  }

  add(peer: TerminalPeer): void {
    this.#open.add(peer);
    this.#schedule();
  }

  /** Closes all sockets, and resolves when they are closed. */
  interrupt(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const peer of [...this.#open]) peer.interrupt();
    return emptied;
  }

  #remove(peer: TerminalPeer): void {
    this.#open.delete(peer);
    if (this.#open.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#onEmpty();
  }

  #schedule(): void {
    if (this.#open.size > 0) this.#cancelTimer ??= this.#clock.after(checkMs, () => this.#check());
  }

  #check(): void {
    this.#cancelTimer = null;
    const now = this.#clock.monotonic();
    for (const peer of this.#open) peer.look(now);
    this.#schedule();
  }
}
