import type { TerminalClient, TerminalNotice } from './terminal-client.ts';
import type { TerminalMode } from './terminal-tickets.ts';

export interface Attached {
  readonly operator_id: string;
  readonly username: string;
  readonly mode: TerminalMode;
  /** When the operator connected, Unix seconds. */
  readonly since: number;
}

/** Maximum number of bytes by which a viewer may lag. A viewer that exceeds it is disconnected. */
const maxBehind = 1024 * 1024;

/**
 * A connection to a terminal. It first receives the screen as of the time when it connected, then all later output in
 * order. The controlling connection drives flow control: output that it has not received counts toward the shell's
 * window.
 */
export class TerminalConnection {
  readonly who: Attached;
  tokenHash: string | undefined;
  readonly #client: TerminalClient;
  readonly #taken: (bytes: number) => void;
  readonly #tooSlow: () => void;
  /** Output that waits for the first screen; null if no screen is pending. */
  #queue: (() => void)[] | null = null;
  /** Number of bytes that the network has not accepted. */
  #behind = 0;
  /** Number of bytes to release to the shell's flow-control window. */
  #owed = 0;
  #over = false;
  #paused = false;

  /**
   * Creates a connection.
   * @param taken releases bytes; not called for a viewer
   * @param tooSlow called when a viewer is too far behind
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
    else if (this.#behind > maxBehind) {
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
    if (!this.#over) this.#inOrder(() => this.#client.notify(notice));
  }

  get waits(): boolean {
    return this.#queue !== null && !this.#over;
  }

  /**
   * Shows a screen, before all later output.
   * @param started called once the screen has been shown
   */
  begin(screen: Promise<Uint8Array>, started: () => void): void {
    const queue: (() => void)[] = [];
    this.#queue = queue;
    void screen.then((bytes) => {
      if (this.#queue !== queue) return;
      this.#queue = null;
      if (bytes.length > 0) this.#client.show(bytes, () => {});
      for (const step of queue) step();
      started();
    });
  }

  /** Stops reading input until {@link resume}. */
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

  /** Closes the connection after pending output and notices are sent. */
  close(notice: TerminalNotice): void {
    if (this.#over) return;
    this.tell(notice);
    this.#inOrder(() => this.#client.close());
    this.leave();
  }

  /** Closes the connection soon, even if the client does not receive pending output. */
  cut(notice: TerminalNotice): void {
    if (this.#over) return;
    this.#queue = null;
    this.#client.notify(notice);
    this.#client.cut();
    this.leave();
  }

  /** Releases a connection's window credit after it was closed or replaced. */
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
