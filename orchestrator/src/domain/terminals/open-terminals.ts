import type { Clock } from '../../../../lib/src/clock.ts';
import type { LiveTerminal } from './live-terminal.ts';
import { interrupted, type TerminalEnd } from './terminal-end.ts';
import type { TerminalEnds } from './terminal-ends.ts';

const sweepMs = 1000;
/** Maximum time that a read waits for the end of a session to be recorded, in milliseconds. */
const maxWaitMs = 2000;
/** Maximum time to wait on shutdown, in milliseconds. The next startup records any missing ends. */
const stopMs = 5_000;

export interface OpenTerminal {
  readonly live: LiveTerminal;
  readonly node_id: string;
  /** Resolves once the session's end is recorded, or recording it has failed. */
  readonly endRecorded: Promise<unknown>;
}

export interface OpenTerminalsParts {
  readonly clock: Clock;
  readonly ends: TerminalEnds;
  /** Called by each sweep while sessions are open. */
  readonly onSweep: () => void;
}

/**
 * This process's sessions that are open or whose end is being recorded. They share a timer, which runs only while there
 * are any.
 */
export class OpenTerminals {
  readonly #parts: OpenTerminalsParts;
  readonly #open = new Map<string, OpenTerminal>();
  #cancelTimer: (() => void) | null = null;
  #stopping = false;

  constructor(parts: OpenTerminalsParts) {
    this.#parts = parts;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  get all(): OpenTerminal[] {
    return [...this.#open.values()];
  }

  find(sessionId: string): LiveTerminal | undefined {
    return this.#open.get(sessionId)?.live;
  }

  add(one: OpenTerminal): void {
    this.#open.set(one.live.session_id, one);
    this.watch();
  }

  remove(sessionId: string): void {
    this.#open.delete(sessionId);
  }

  /** Ends the sessions that `which` accepts. */
  close(which: (one: OpenTerminal) => boolean, end: TerminalEnd): void {
    for (const one of this.#open.values()) if (which(one)) one.live.close(end);
  }

  /**
   * Waits briefly for ends that are being recorded. A client that was notified that a terminal session ended can then
   * read how it ended.
   */
  async waitForEnds(sessionIds: Iterable<string> = this.#open.keys()): Promise<void> {
    const endRecorded = [...sessionIds].flatMap((id) => {
      const one = this.#open.get(id);
      return one?.live.over ? [one.endRecorded] : [];
    });
    if (endRecorded.length > 0) await this.#atMost(maxWaitMs, Promise.all(endRecorded));
  }

  /** Starts the timer. Call this when a session opens, or when the end of a session must be recorded. */
  watch(): void {
    if (!this.#stopping) this.#cancelTimer ??= this.#parts.clock.after(sweepMs, () => this.#sweep());
  }

  /** Interrupts all sessions, and records that they ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#cancelTimer?.();
    this.close(() => true, interrupted('the orchestrator is stopping'));
    const endRecorded = Promise.all(this.all.map((one) => one.endRecorded)).then(() => this.#parts.ends.retry());
    await this.#atMost(stopMs, endRecorded);
  }

  #sweep(): void {
    const { ends, onSweep } = this.#parts;
    this.#cancelTimer = null;
    for (const { live } of this.#open.values()) live.sweep();
    if (this.#open.size > 0) onSweep();
    if (ends.waiting > 0) void ends.retry();
    if (this.#open.size > 0 || ends.waiting > 0) this.watch();
  }

  async #atMost(ms: number, done: Promise<unknown>): Promise<void> {
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#parts.clock.after(ms, resolve);
    });
    await Promise.race([done, late]);
    cancel();
  }
}
