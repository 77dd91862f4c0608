import type { TerminalClient, TerminalNotice } from './terminal-client.ts';
import type { TerminalMode } from './terminal-tickets.ts';

/** Who is connected to a terminal. */
export interface Attached {
  readonly operator_id: string;
  readonly username: string;
  readonly mode: TerminalMode;
  /** Unix seconds. */
  readonly since: number;
}

/** A viewer that is so many bytes behind is cut off. */
const mostBehind = 1024 * 1024;

/**
 * One connection to a terminal: what is shown reaches it in order, behind the screen as it was when it came. Whoever is
 * in control sets the pace: what it has not taken is owed to the shell's window.
 */
export class TerminalConnection {
  readonly who: Attached;
  tokenHash: string | undefined;
  readonly #client: TerminalClient;
  readonly #taken: (bytes: number) => void;
  readonly #tooSlow: () => void;
  /** What waits for the screen to be shown first; null when nothing does. */
  #queue: (() => void)[] | null = null;
  /** Bytes that its network has not taken. */
  #behind = 0;
  /** Bytes that the shell's window waits for. */
  #owed = 0;
  #over = false;
  #paused = false;

  /**
   * @param taken so many bytes need no memory here any more; not called for a connection that looks on
   * @param tooSlow it looks on, and is too far behind
   */
  constructor(
    client: TerminalClient,
    who: Attached,
    tokenHash: string | undefined,
    taken: (bytes: number) => void,
    tooSlow: () => void,
  ) {
    this.#client = client;
    this.who = who;
    this.tokenHash = tokenHash;
    this.#taken = taken;
    this.#tooSlow = tooSlow;
  }

  get over(): boolean {
    return this.#over;
  }

  show(bytes: Uint8Array): void {
    if (this.#over) return;
    const { length } = bytes;
    this.#behind += length;
    if (this.who.mode === 'control') this.#owed += length;
    else if (this.#behind > mostBehind) {
      this.#tooSlow();
      return;
    }
    const sent = () => {
      this.#behind -= length;
      const owed = Math.min(this.#owed, length);
      this.#owed -= owed;
      if (owed > 0) this.#taken(owed);
    };
    this.#inOrder(() => this.#client.show(bytes, sent));
  }

  tell(notice: TerminalNotice): void {
    if (!this.#over) this.#inOrder(() => this.#client.tell(notice));
  }

  /** Whether it has yet to be shown its first screen. */
  get waits(): boolean {
    return this.#queue !== null && !this.#over;
  }

  /** Shows a screen before anything else that comes from now on. @param begun when it has been */
  begin(screen: Promise<Uint8Array>, begun: () => void): void {
    const queue: (() => void)[] = [];
    this.#queue = queue;
    void screen.then((bytes) => {
      if (this.#queue !== queue) return;
      this.#queue = null;
      if (bytes.length > 0) this.#client.show(bytes, () => {});
      for (const step of queue) step();
      begun();
    });
  }

  /** Reads nothing from it until {@link resume}. */
  pause(): void {
    if (this.#paused || this.#over) return;
    this.#paused = true;
    this.#client.pause();
  }

  resume(): void {
    if (!this.#paused || this.#over) return;
    this.#paused = false;
    this.#client.resume();
  }

  /** Closes it, after what it was shown and told. */
  close(notice: TerminalNotice): void {
    if (this.#over) return;
    this.tell(notice);
    this.#inOrder(() => this.#client.close());
    this.leave();
  }

  /** Ends it soon, whether or not it takes what it was shown and told. */
  cut(notice: TerminalNotice): void {
    if (this.#over) return;
    this.#queue = null;
    this.#client.tell(notice);
    this.#client.cut();
    this.leave();
  }

  /** It is gone, or no longer counts: the shell waits for it no more. */
  leave(): void {
    this.#over = true;
    const owed = this.#owed;
    this.#owed = 0;
    if (owed > 0) this.#taken(owed);
  }

  #inOrder(step: () => void): void {
    if (this.#queue === null) step();
    else this.#queue.push(step);
  }
}
