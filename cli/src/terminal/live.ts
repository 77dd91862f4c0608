import { TextDecoder } from 'node:util';
import { ApiError } from '@muster/protocol/client';
import { readTerminalNotice, type TerminalNotice } from '../../../client/src/terminal-notice.ts';
import { isFinalRefusal, reattachDelayMs, stableConnectionMs } from '../../../client/src/terminal-reattach.ts';
import { CliError, exits } from '../exit.ts';
import { EscapeKeys } from './escape-keys.ts';
import type { EndSignal, LocalTerminal, Size } from './local-terminal.ts';
import { ReplayFilter } from './replay-filter.ts';
import { ScreenState } from './screen-state.ts';

/** The address of one connection to a session. */
interface Ticket {
  readonly ws_url: string;
}

/** A connection to a terminal of an orchestrator. */
export interface Wire {
  send(data: Uint8Array | string, sent?: () => void): void;
  /** Bytes that the network has not accepted yet. */
  readonly unsent: number;
  pause(): void;
  resume(): void;
  ping(): void;
  /** Closes the connection immediately. */
  cut(): void;
}

export interface WireEvents {
  bytes(bytes: Uint8Array): void;
  text(text: string): void;
  /** Called whenever data arrives. */
  alive(): void;
  /** Called when a ping is answered, so the server has read all earlier data. */
  answered(): void;
  closed(): void;
}

export interface LiveOptions {
  readonly terminal: LocalTerminal;
  readonly mode: 'control' | 'view';
  readonly first: Ticket;
  /** Gets a ticket for another connection. */
  attach(): Promise<Ticket>;
  /** @returns a paused connection, so that nothing arrives early; throws without an answer */
  dial(address: string, events: WireEvents): Promise<Wire>;
  /** Ends the session. */
  end(): Promise<void>;
  /** Monotonic, in milliseconds. */
  readonly clock: () => number;
  /** Does not keep the program running. */
  readonly sleep: (milliseconds: number) => Promise<void>;
}

/** The reason for which this program left the terminal session. */
export type Ending =
  | { readonly kind: 'exit'; readonly code: number | null; readonly signal: string | null }
  /** The orchestrator ended the connection or the session, with a reason. */
  | { readonly kind: 'told'; readonly code: string; readonly message: string }
  /** The operator left. `goesOn`: the session was to be ended, but the orchestrator has not confirmed that. */
  | { readonly kind: 'left'; readonly how: 'leave' | 'detach'; readonly goesOn?: true }
  | { readonly kind: 'signal'; readonly signal: EndSignal; readonly goesOn?: true }
  /** The connection was lost and could not be restored. */
  | { readonly kind: 'lost'; readonly error: unknown }
  /** Output could not be written: the reader closed the pipe, or the disk is full. */
  | { readonly kind: 'unread'; readonly error: unknown };

/** Bytes of unwritten output: above the first limit the connection pauses, below the second it resumes. */
const mostUnwritten = 256 * 1024;
const fewUnwritten = 64 * 1024;
/** Bytes of unsent input: above the first limit the keyboard is paused, below the second it resumes. */
const mostUnsent = 256 * 1024;
const fewUnsent = 64 * 1024;

const reattachFor = 60_000;
const maxReattachDelayMs = 2_000;
/** Milliseconds of silence before a ping, and before the connection counts as lost. */
const askAfter = 10_000;
const lostAfter = 30_000;
/**
 * With more unread input than this, the orchestrator may have stopped reading for a program that reads nothing, and
 * answers no pings. The pings that the orchestrator sends every 30 s show that it is alive.
 */
const mostUnread = 32 * 1024;
const lostAfterUnread = 75_000;
/** A quarter of the largest message that an orchestrator accepts. */
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
 * Connects the local terminal to a session until either side ends it. Reconnects a lost connection for a while.
 * Restores the local terminal before it resolves.
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
  /** Identifies the current connection; events of earlier ones are ignored. */
  #generation = 0;
  #unwritten = 0;
  #wirePaused = false;
  #inputPaused = false;
  #inputEnded = false;
  #lastByte = 0x0a;
  #lastHeard = 0;
  #connectedAt = 0;
  /** Input bytes since the last proof that the other end reads. */
  #unread = 0;
  /** Failed attempts to attach since the last stable connection ended. */
  #trouble: { since: number; failures: number } | null = null;
  #shownAt = 0;
  /** The last byte of output: tells whether the cursor is at the start of a line. */
  #lastShown = 0x0a;
  #sizeTold: Size | null = null;
  /** Filters output that must not reach the terminal unchanged: all of it when viewing, otherwise the recent screen. */
  #filter: { filter: ReplayFilter; decoder: TextDecoder; once: boolean } | null = null;
  #timers: NodeJS.Timeout[] = [];

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  async run(): Promise<Ending> {
    const { terminal, mode, first } = this.#options;
    terminal.beforeExit(() => this.#lastWords());
    terminal.onSignal((signal) => this.#leave({ kind: 'signal', signal }));
    terminal.onResize(() => this.#tellSize());
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

  /** Restores the screen. Adds a newline for a following message, unless the shell ended by itself. */
  #lastWords(): string {
    const restored = this.#screen.restore();
    return this.#exited || (restored === '' && this.#lastShown === 0x0a) ? restored : `${restored}\r\n`;
  }

  #finish(ending: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve(ending);
  }

  /** Leaves at the operator's request. Ends the session, unless it was only viewed or detached. */
  #leave(ending: Extract<Ending, { kind: 'left' | 'signal' | 'unread' }>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const goesOn = this.#options.mode === 'view' || (ending.kind === 'left' && ending.how === 'detach');
    if (goesOn) this.#over.resolve(ending);
    // The orchestrator may be the one that does not answer; the session then ends by itself later.
    else
      void Promise.race([
        this.#options.end().then(
          () => true,
          () => false,
        ),
        this.#options.sleep(3_000).then(() => false),
      ]).then((ended) => this.#over.resolve(ended || ending.kind === 'unread' ? ending : { ...ending, goesOn: true }));
  }

  async #connect(ticket: Ticket, again: boolean): Promise<void> {
    const { terminal, mode, dial } = this.#options;
    const generation = ++this.#generation;
    const mine = () => generation === this.#generation && !this.#isOver;
    this.#wirePaused = false;
    if (mode === 'view' || again) this.#filterAnew(mode === 'control');
    const wire = await dial(ticket.ws_url, {
      bytes: (bytes) => {
        if (mine()) this.#show(bytes);
      },
      text: (text) => {
        if (mine()) this.#told(readTerminalNotice(text), again);
      },
      alive: () => {
        this.#lastHeard = this.#options.clock();
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
    this.#connectedAt = this.#lastHeard = this.#shownAt = this.#options.clock();
    this.#unread = 0;
    this.#sizeTold = null;
    this.#tellSize();
    if (again && terminal.hasScreen)
      // The orchestrator sends the whole screen again.
      void terminal.write(Buffer.from(`${this.#screen.restore()}\u001b[H\u001b[2J`)).catch(() => {});
    if (this.#inputPaused) this.#resumeInput();
    wire.resume();
  }

  #filterAnew(once: boolean): void {
    this.#filter = { filter: new ReplayFilter({ types: once }), decoder: new TextDecoder(), once };
  }

  #tellSize(): void {
    const { terminal, mode } = this.#options;
    const size = terminal.size();
    if (mode === 'view' || size === null || this.#wire === null) return;
    if (size.cols === this.#sizeTold?.cols && size.rows === this.#sizeTold.rows) return;
    this.#sizeTold = size;
    this.#wire.send(JSON.stringify({ type: 'resize', ...size }));
  }

  #told(notice: TerminalNotice | null, again: boolean): void {
    if (notice?.type === 'exit') {
      const { code, signal } = notice;
      this.#exited = true;
      this.#finishShown({ kind: 'exit', code, signal });
    } else if (notice?.type === 'error') {
      this.#finishShown({ kind: 'told', code: notice.code, message: notice.message });
    } else if (notice?.type === 'resize' && this.#options.mode === 'view' && this.#sizeTold === null) {
      this.#sizeTold = notice;
      const size = this.#options.terminal.size();
      if (!again && size !== null && (size.cols < notice.cols || size.rows < notice.rows))
        void this.#options.terminal.say(
          `The session is ${notice.cols}×${notice.rows}, and this terminal is ${size.cols}×${size.rows}: enlarge it to see all.`,
        );
    }
  }

  /** Ends after all output has been written. */
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
    if (!this.#wirePaused && this.#unwritten > mostUnwritten) {
      this.#wirePaused = true;
      this.#wire?.pause();
    }
    terminal.write(bytes).then(
      () => {
        this.#unwritten -= bytes.length;
        if (!this.#wirePaused || this.#unwritten > fewUnwritten) return;
        this.#wirePaused = false;
        this.#lastHeard = this.#options.clock();
        this.#wire?.resume();
      },
      (error: unknown) => this.#leave({ kind: 'unread', error }),
    );
  }

  #admit(received: Uint8Array): Uint8Array {
    const held = this.#filter;
    if (held === null) return received;
    const admitted = held.filter.feed(held.decoder.decode(received, { stream: true }));
    // The recent screen is one message, whose terminal queries were answered long ago. The filter is dropped when no
    // sequence or character is incomplete.
    if (held.once && held.filter.isAtRest && (received.at(-1) ?? 0) < 0x80) this.#filter = null;
    return Buffer.from(admitted);
  }

  #typed(bytes: Uint8Array): void {
    const { terminal, mode } = this.#options;
    if (!terminal.hasKeys) {
      if (mode === 'control') this.#send(bytes);
      return;
    }
    // When viewing, Ctrl-C can only be meant for this program.
    if (mode === 'view' && bytes.length === 1 && bytes[0] === 0x03) {
      this.#leave({ kind: 'left', how: 'leave' });
      return;
    }
    // Without a connection the start of a line is unknown, and ~. must work.
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
    // Keys without a connection are dropped, since their effect could not be seen.
    if (wire === null || this.#options.mode === 'view' || this.#isOver) return;
    this.#lastByte = bytes[bytes.length - 1] ?? this.#lastByte;
    this.#unread += bytes.length;
    for (let at = 0; at < bytes.length; at += longestTyped)
      wire.send(bytes.subarray(at, at + longestTyped), () => {
        if (this.#inputPaused && wire === this.#wire && wire.unsent <= fewUnsent) this.#resumeInput();
      });
    if (wire.unsent > mostUnsent) this.#pauseInput();
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
    // Completes a last line without a newline.
    if (this.#lastByte !== 0x0a && this.#lastByte !== 0x0d) this.#send(Uint8Array.of(0x0a));
    void this.#sendEnd();
  }

  /**
   * The session's input is a terminal, which ends with Ctrl-D. A running program may consume it, so it is repeated
   * until the session ends.
   */
  async #sendEnd(): Promise<void> {
    const { sleep, clock } = this.#options;
    for (let wait = 100; !this.#isOver; wait = Math.min(2_000, wait * 2)) {
      this.#send(endOfInput);
      await sleep(wait);
      // Waits while there is output.
      while (!this.#isOver && clock() - this.#shownAt < 100) await sleep(50);
    }
  }

  /** Detects a dead connection: a silent network reports no error. */
  #watch(): void {
    const wire = this.#wire;
    // While reading is paused, silence means nothing.
    if (wire === null || this.#wirePaused) return;
    const silent = this.#options.clock() - this.#lastHeard;
    if (silent > (this.#unread > mostUnread ? lostAfterUnread : lostAfter)) wire.cut();
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
    let error: unknown = new CliError(exits.unreachable, 'unreachable', 'each new connection ended at once');
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
