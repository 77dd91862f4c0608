import { TextDecoder } from 'node:util';
import { ApiError } from '@muster/protocol/client';
import { readTerminalNotice, type TerminalNotice } from '../../../client/src/terminal-notice.ts';
import { isFinalRefusal, reattachDelayMs, stableConnectionMs } from '../../../client/src/terminal-reattach.ts';
import { CliError, exits } from '../exit.ts';
import { EscapeKeys } from './escape-keys.ts';
import type { EndSignal, LocalTerminal, Size } from './local-terminal.ts';
import { ReplayFilter } from './replay-filter.ts';
import { ScreenState } from './screen-state.ts';

/** Permission for a single connection to a session. */
interface Ticket {
  readonly ws_url: string;
}

export interface Wire {
  send(data: Uint8Array | string, sent?: () => void): void;
  /** Number of bytes that are queued but not yet written to the network. */
  readonly unsent: number;
  pause(): void;
  resume(): void;
  ping(): void;
  cut(): void;
}

export interface WireEvents {
  bytes(bytes: Uint8Array): void;
  text(text: string): void;
  /** Called whenever data arrives. */
  alive(): void;
  /** Called when the server responds to a ping, which means that it has read all earlier data. */
  answered(): void;
  closed(): void;
}

export interface LiveOptions {
  readonly terminal: LocalTerminal;
  readonly mode: 'control' | 'view';
  readonly first: Ticket;
  /** Requests a ticket for another connection. */
  attach(): Promise<Ticket>;
  /**
   * Opens a connection.
   * @returns the connection, paused so that no data arrives before the caller listens
   * @throws if the orchestrator does not respond or refuses
   */
  dial(address: string, events: WireEvents): Promise<Wire>;
  end(): Promise<void>;
  /** Returns milliseconds on a monotonic clock. */
  readonly clock: () => number;
  /** Sleeps without keeping the program running. */
  readonly sleep: (milliseconds: number) => Promise<void>;
}

/** Why this program left the terminal session. */
export type Ending =
  | { readonly kind: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** The orchestrator closed the connection or the session, for this reason. */
  | { readonly kind: 'error'; readonly code: string; readonly message: string }
  /** The operator left. `continues` is true if the orchestrator has not confirmed that the session is closed. */
  | { readonly kind: 'left'; readonly how: 'leave' | 'detach'; readonly continues?: true }
  | { readonly kind: 'signal'; readonly signal: EndSignal; readonly continues?: true }
  /** The connection was lost and reconnecting failed. */
  | { readonly kind: 'lost'; readonly error: unknown }
  /** Output could not be written, for example because the reader closed the pipe or the disk is full. */
  | { readonly kind: 'unread'; readonly error: unknown };

/** Limits for unwritten output, in bytes. The connection pauses above the first limit and resumes below the second. */
const maxUnwritten = 256 * 1024;
const fewUnwritten = 64 * 1024;
/** Limits for unsent input, in bytes. The keyboard pauses above the first limit and resumes below the second. */
const maxUnsent = 256 * 1024;
const fewUnsent = 64 * 1024;

const reattachFor = 60_000;
const maxReattachDelayMs = 2_000;
/** Milliseconds of silence before a ping is sent, and before the connection is considered lost. */
const askAfter = 10_000;
const lostAfter = 30_000;
/**
 * Limit for unread input, in bytes. Above it, the remote program may not be reading its input, in which case the
 * orchestrator stops reading and does not respond to pings. The orchestrator's own pings, one every 30 s, still prove
 * that it is alive.
 */
const maxUnread = 32 * 1024;
const lostAfterUnread = 75_000;
/** Maximum size of a message to the orchestrator, in bytes. The orchestrator accepts messages four times as large. */
const longestTyped = 16 * 1024;

const endOfInput = Uint8Array.of(0x04);

const helpText = [
  '~.  leave and end the session',
  '~d  detach; the session continues for a while',
  '~~  type a ~',
  '~?  show this help',
  'Type them at the start of a line.',
].join('\n');

/**
 * Connects the local terminal to a session until either side closes it. Tries to reconnect for up to a minute after a
 * lost connection. Restores the local terminal before returning.
 */
export async function live(options: LiveOptions): Promise<Ending> {
  const session = new Live(options);
  try {
    return await session.run();
  } finally {
    session.close();
  }
}

class Live {
  readonly #options: LiveOptions;
  readonly #screen = new ScreenState();
  readonly #keys = new EscapeKeys();
  readonly #over = Promise.withResolvers<Ending>();
  #isOver = false;
  #exited = false;
  #wire: Wire | null = null;
  /** Incremented with each connection, to ignore events from earlier ones. */
  #generation = 0;
  #unwritten = 0;
  #wirePaused = false;
  #inputPaused = false;
  #inputEnded = false;
  #lastByte = 0x0a;
  #lastReceivedAt = 0;
  #connectedAt = 0;
  /** Number of input bytes since the orchestrator last proved that it is reading. */
  #unread = 0;
  /** Failed attempts to attach since the last stable connection. */
  #trouble: { since: number; failures: number } | null = null;
  #shownAt = 0;
  /** The last byte of output, which shows whether the cursor is at the start of a line. */
  #lastShown = 0x0a;
  #sentSize: Size | null = null;
  /**
   * Filters output that must not reach the terminal unchanged: all output while viewing, otherwise only the recent
   * screen.
   */
  #filter: { filter: ReplayFilter; decoder: TextDecoder; once: boolean } | null = null;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  async run(): Promise<Ending> {
    const { terminal, mode, first } = this.#options;
    terminal.beforeExit(() => this.#closingText());
    terminal.onSignal((signal) => this.#leave({ kind: 'signal', signal }));
    terminal.onResize(() => this.#sendSize());
    await this.#connect(first, false);
    terminal.read({ bytes: (bytes) => this.#typed(bytes), end: () => this.#ended() });
    if (mode === 'view' && !terminal.hasKeys) terminal.pause();
    this.#timers.push(setInterval(() => this.#watch(), 1_000));
    return await this.#over.promise;
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#generation++;
    this.#wire?.cut();
    this.#options.terminal.close();
  }

  /** Returns the text that restores the screen. Appends a newline for a following message unless the shell exited. */
  #closingText(): string {
    const restored = this.#screen.restore();
    return this.#exited || (restored === '' && this.#lastShown === 0x0a) ? restored : `${restored}\r\n`;
  }

  #finish(ending: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve(ending);
  }

  /** Leaves the session at the operator's request. Closes it unless the operator only viewed it or detached. */
  #leave(ending: Extract<Ending, { kind: 'left' | 'signal' | 'unread' }>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const continues = this.#options.mode === 'view' || (ending.kind === 'left' && ending.how === 'detach');
    if (continues) this.#over.resolve(ending);
    // The orchestrator may not respond. In that case, it closes the session later, when it times out.
    else
      void Promise.race([
        this.#options.end().then(
          () => true,
          () => false,
        ),
        this.#options.sleep(3_000).then(() => false),
      ]).then((ended) =>
        this.#over.resolve(ended || ending.kind === 'unread' ? ending : { ...ending, continues: true }),
      );
  }

  async #connect(ticket: Ticket, again: boolean): Promise<void> {
    const { terminal, mode, dial } = this.#options;
    const generation = ++this.#generation;
    const mine = () => generation === this.#generation && !this.#isOver;
    this.#wirePaused = false;
    if (mode === 'view' || again) this.#resetFilter(mode === 'control');
    const wire = await dial(ticket.ws_url, {
      bytes: (bytes) => {
        if (mine()) this.#show(bytes);
      },
      text: (text) => {
        if (mine()) this.#handleNotice(readTerminalNotice(text), again);
      },
      alive: () => {
        this.#lastReceivedAt = this.#options.clock();
      },
      answered: () => {
        this.#unread = 0;
      },
      closed: () => {
        if (mine()) void this.#lost();
      },
    });
    if (!mine()) {
      wire.cut();
      return;
    }
    this.#wire = wire;
    this.#connectedAt = this.#lastReceivedAt = this.#shownAt = this.#options.clock();
    this.#unread = 0;
    this.#sentSize = null;
    this.#sendSize();
    if (again && terminal.hasScreen)
      // Clears the screen, because the orchestrator sends the whole screen again.
      void terminal.write(Buffer.from(`${this.#screen.restore()}\u001b[H\u001b[2J`)).catch(() => {});
    if (this.#inputPaused) this.#resumeInput();
    wire.resume();
  }

  #resetFilter(once: boolean): void {
    this.#filter = { filter: new ReplayFilter({ types: once }), decoder: new TextDecoder(), once };
  }

  #sendSize(): void {
    const { terminal, mode } = this.#options;
    const size = terminal.size();
    if (mode === 'view' || size === null || this.#wire === null) return;
    if (size.cols === this.#sentSize?.cols && size.rows === this.#sentSize.rows) return;
    this.#sentSize = size;
    this.#wire.send(JSON.stringify({ type: 'resize', ...size }));
  }

  #handleNotice(notice: TerminalNotice | null, again: boolean): void {
    if (notice?.type === 'exit') {
      const { code, signal } = notice;
      this.#exited = true;
      this.#finishShown({ kind: 'exit', code, signal });
    } else if (notice?.type === 'error') {
      this.#finishShown({ kind: 'error', code: notice.code, message: notice.message });
    } else if (notice?.type === 'resize' && this.#options.mode === 'view' && this.#sentSize === null) {
      this.#sentSize = notice;
      const size = this.#options.terminal.size();
      if (!again && size !== null && (size.cols < notice.cols || size.rows < notice.rows))
        void this.#options.terminal.say(
          `The session is ${notice.cols}×${notice.rows}, and this terminal is ${size.cols}×${size.rows}: enlarge the terminal to see the whole screen.`,
        );
    }
  }

  /** Finishes once all output has been written. */
  #finishShown(ending: Ending): void {
    this.#generation++;
    void this.#options.terminal
      .write(new Uint8Array(0))
      .catch(() => {})
      .then(() => this.#finish(ending));
  }

  #show(received: Uint8Array): void {
    const { terminal } = this.#options;
    this.#shownAt = this.#options.clock();
    const bytes = this.#admit(received);
    if (bytes.length === 0) return;
    this.#screen.feed(bytes);
    this.#lastShown = bytes.at(-1) ?? this.#lastShown;
    this.#unwritten += bytes.length;
    if (!this.#wirePaused && this.#unwritten > maxUnwritten) {
      this.#wirePaused = true;
      this.#wire?.pause();
    }
    terminal.write(bytes).then(
      () => {
        this.#unwritten -= bytes.length;
        if (!this.#wirePaused || this.#unwritten > fewUnwritten) return;
        this.#wirePaused = false;
        this.#lastReceivedAt = this.#options.clock();
        this.#wire?.resume();
      },
      (error: unknown) => this.#leave({ kind: 'unread', error }),
    );
  }

  #admit(received: Uint8Array): Uint8Array {
    const current = this.#filter;
    if (current === null) return received;
    const admitted = current.filter.feed(current.decoder.decode(received, { stream: true }));
    // The recent screen is one message. The terminal already responded to the queries in it when they were first shown.
    // Removes the filter after this message, when no sequence or character is incomplete.
    if (current.once && current.filter.isAtRest && (received.at(-1) ?? 0) < 0x80) this.#filter = null;
    return Buffer.from(admitted);
  }

  #typed(bytes: Uint8Array): void {
    const { terminal, mode } = this.#options;
    if (!terminal.hasKeys) {
      if (mode === 'control') this.#send(bytes);
      return;
    }
    // While viewing, no input is sent, so Ctrl-C is meant for this program.
    if (mode === 'view' && bytes.length === 1 && bytes[0] === 0x03) {
      this.#leave({ kind: 'left', how: 'leave' });
      return;
    }
    // Without a connection, any key may start a line, because ~. must always work.
    if (this.#wire === null) this.#keys.beginLine();
    for (const typed of this.#keys.feed(bytes, this.#options.clock())) {
      if (typed.kind === 'bytes') this.#send(typed.bytes);
      else if (typed.kind === 'help') void terminal.say(helpText);
      else {
        this.#leave({ kind: 'left', how: typed.kind });
        return;
      }
    }
  }

  #send(bytes: Uint8Array): void {
    const wire = this.#wire;
    // Drops keys while there is no connection, because the operator could not see their effect.
    if (wire === null || this.#options.mode === 'view' || this.#isOver) return;
    this.#lastByte = bytes[bytes.length - 1] ?? this.#lastByte;
    this.#unread += bytes.length;
    for (let at = 0; at < bytes.length; at += longestTyped)
      wire.send(bytes.subarray(at, at + longestTyped), () => {
        if (this.#inputPaused && wire === this.#wire && wire.unsent <= fewUnsent) this.#resumeInput();
      });
    if (wire.unsent > maxUnsent) this.#pauseInput();
  }

  #pauseInput(): void {
    this.#inputPaused = true;
    this.#options.terminal.pause();
  }

  #resumeInput(): void {
    this.#inputPaused = false;
    if (this.#options.mode === 'control' || this.#options.terminal.hasKeys) this.#options.terminal.resume();
  }

  #ended(): void {
    if (this.#options.terminal.hasKeys) {
      this.#leave({ kind: 'signal', signal: 'SIGHUP' });
      return;
    }
    if (this.#inputEnded || this.#options.mode === 'view') return;
    this.#inputEnded = true;
    // Completes the last line if it has no newline.
    if (this.#lastByte !== 0x0a && this.#lastByte !== 0x0d) this.#send(Uint8Array.of(0x0a));
    void this.#sendEnd();
  }

  /**
   * Repeats Ctrl-D until the session is closed. The session's input is a terminal, in which Ctrl-D means end of input,
   * and a running program may consume the first few.
   */
  async #sendEnd(): Promise<void> {
    const { sleep, clock } = this.#options;
    for (let wait = 100; !this.#isOver; wait = Math.min(2_000, wait * 2)) {
      this.#send(endOfInput);
      await sleep(wait);
      // Waits until output has paused for 100 ms.
      while (!this.#isOver && clock() - this.#shownAt < 100) await sleep(50);
    }
  }

  /** Detects a dead connection, because a silent network does not report one. */
  #watch(): void {
    const wire = this.#wire;
    // A paused connection is always silent.
    if (wire === null || this.#wirePaused) return;
    const silent = this.#options.clock() - this.#lastReceivedAt;
    if (silent > (this.#unread > maxUnread ? lostAfterUnread : lostAfter)) wire.cut();
    else if (silent > askAfter) wire.ping();
  }

  async #lost(): Promise<void> {
    const { terminal, attach, sleep, clock } = this.#options;
    this.#generation++;
    this.#wire = null;
    if (terminal.hasKeys) this.#resumeInput();
    else this.#pauseInput();
    void terminal.say(`connection lost, reconnecting …${terminal.hasKeys ? ' (~. leaves)' : ''}`);
    if (this.#trouble === null || clock() - this.#connectedAt > stableConnectionMs)
      this.#trouble = { since: clock(), failures: 0 };
    const trouble = this.#trouble;
    let error: unknown = new CliError(exits.unreachable, 'unreachable', 'each new connection was closed immediately');
    while (!this.#isOver && clock() - trouble.since < reattachFor) {
      await sleep(reattachDelayMs(trouble.failures++, maxReattachDelayMs));
      if (this.#isOver) return;
      try {
        await this.#connect(await attach(), true);
        return;
      } catch (failed) {
        error = failed;
        if (isFinal(failed)) break;
      }
    }
    this.#finish({ kind: 'lost', error });
  }
}

const isFinal = (error: unknown): boolean =>
  error instanceof ApiError ? isFinalRefusal(error) : !(error instanceof CliError && error.code === 'unreachable');
