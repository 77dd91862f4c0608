import type { ErrorCode } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import {
  type CastHeader,
  headerLine,
  inputLine,
  maxEventBytes,
  outputLines,
  resizeLine,
  unfinishedBytes,
} from '../../store/cast.ts';
import type { Recording, TranscriptDigest } from '../../store/transcripts/transcripts.ts';
import { systemActor } from '../shared/context.ts';
import { type RecentScreen, StartingPoints } from './screen-source.ts';
import type { Shell, ShellEvents, ShellExit } from './shells.ts';
import type { TerminalClient, TerminalConnectionEvents } from './terminal-client.ts';
import { type Attached, TerminalConnection } from './terminal-connection.ts';
import { ended, interrupted, type TerminalEnd } from './terminal-end.ts';
import { TerminalModes } from './terminal-modes.ts';

/** Limits and recording rules from the configuration. */
export interface TerminalRules {
  /** Seconds for which a shell runs without a controlling connection. */
  readonly reattachSecs: number;
  /** Seconds for which a shell runs without typed input; 0 for no limit. */
  readonly idleLimitSecs: number;
  /** Maximum size of a transcript in bytes. */
  readonly transcriptLimit: number;
  /** Whether typed input is recorded. Open terminal sessions keep the value that they were opened with. */
  readonly recordInput: boolean;
}

export interface LiveTerminalParts {
  readonly session_id: string;
  readonly operator_id: string;
  readonly cols: number;
  readonly rows: number;
  readonly clock: Clock;
  readonly rules: TerminalRules;
  readonly recording: Recording;
  readonly recentScreen: RecentScreen;
  /**
   * Called once, after all output was recorded and sent to the clients.
   * @param digest null if the file could not be closed
   */
  readonly onEnded: (end: TerminalEnd, digest: TranscriptDigest | null) => void;
}

/** Milliseconds to wait for the remaining bytes of an incomplete character. */
const holdMs = 20;
/** Debounce interval for size changes, in milliseconds. Only the last size within it is applied. */
const resizeMs = 40;
/** Milliseconds for which a redraw sets a temporary size, so that the program notices the change. */
const redrawMs = 100;
/** Maximum number of typed bytes waiting to be recorded. Above it, no more input is read. */
const maxUnrecorded = 64 * 1024;
/**
 * Milliseconds for which a shell is kept if it exited before any client connected, so that a client can read its
 * output.
 */
const unseenMs = 10_000;

/**
 * An open terminal. The shell's output is recorded, then shown to the connected clients, then released from the shell's
 * flow-control window, which bounds the memory used. Has no timer of its own; {@link sweep} must be called about once a
 * second.
 */
export class LiveTerminal implements ShellEvents {
  readonly session_id: string;
  readonly operator_id: string;
  readonly #parts: LiveTerminalParts;
  readonly #openedAt: number;
  /** Fixed when the session opens, so that input recording never begins in the middle of a session. */
  readonly #recordsInput: boolean;
  readonly #connections = new Set<TerminalConnection>();
  #shell: Shell | null = null;
  /** Shell events that arrived before {@link begin}. */
  #early: (() => void)[] = [];
  #controller: TerminalConnection | null = null;
  /** When the last controlling connection was closed, in milliseconds of the monotonic clock. */
  #leftAt: number;
  #typedAt: number;
  /** Whether the shell accepts input. */
  #acceptsInput = true;
  /** Number of typed bytes that are not yet recorded. */
  #unrecorded = 0;
  /** Output from before the first controlling connection, whose terminal responds to queries in this output. */
  #unseen: Uint8Array[] | null = [];
  #unseenExit: { end: TerminalEnd; at: number } | null = null;
  #held: Uint8Array = new Uint8Array(0);
  #holding: (() => void) | null = null;
  /** The recorded size. `#shownSize` is the size that clients received. */
  #size: { cols: number; rows: number };
  #shownSize: { cols: number; rows: number };
  #requestedSize: { cols: number; rows: number } | null = null;
  #sizing: (() => void) | null = null;
  readonly #modes = new TerminalModes();
  readonly #startingPoints = new StartingPoints();
  /** Bytes to return to the shell's flow-control window when no connection is waiting for its first screen. */
  #owed = 0;
  /** Position in the transcript up to which clients received output. */
  #shownTo = 0;
  #end: TerminalEnd | null = null;
  #notified = false;
  #failed = false;

  constructor(parts: LiveTerminalParts) {
    this.#parts = parts;
    this.session_id = parts.session_id;
    this.operator_id = parts.operator_id;
    this.#size = { cols: parts.cols, rows: parts.rows };
    this.#shownSize = this.#size;
    this.#openedAt = parts.clock.monotonic();
    this.#recordsInput = parts.rules.recordInput;
    this.#leftAt = this.#openedAt;
    this.#typedAt = this.#openedAt;
  }

  get over(): boolean {
    return this.#end !== null;
  }

  /** How the session ended; null while it is open. */
  get end(): TerminalEnd | null {
    return this.#end;
  }

  get attached(): Attached[] {
    return [...this.#connections].map((connection) => connection.who);
  }

  /** Starts recording all output from the running shell. */
  begin(shell: Shell, header: CastHeader): void {
    this.#shell = shell;
    this.#parts.recording.append(headerLine(header));
    this.#shownTo = this.#parts.recording.size;
    this.#startingPoints.begin(this.#shownTo, this.#size);
    // The session ended, or its recording failed, while the shell was starting.
    if (this.#end) shell.close(this.#end.reason);
    for (const event of this.#early) event();
    this.#early = [];
  }

  output(bytes: Uint8Array): void {
    if (!this.#shell) this.#early.push(() => this.output(bytes));
    else if (!this.#end) {
      const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
      const whole = all.length - unfinishedBytes(all);
      this.#holding?.();
      this.#holding = null;
      this.#held = all.slice(whole);
      this.#record(all.subarray(0, whole));
      if (this.#held.length > 0) this.#holding = this.#parts.clock.after(holdMs, () => this.#release());
    }
  }

  writable(): void {
    this.#acceptsInput = true;
    this.#readOn();
  }

  exited(exit: ShellExit): void {
    if (!this.#shell) this.#early.push(() => this.exited(exit));
    else {
      const how =
        exit.signal !== null ? `by ${exit.signal}` : exit.code !== null ? `with exit code ${exit.code}` : 'by itself';
      const notice = { type: 'exit', code: exit.code, signal: exit.signal } as const;
      const end = { status: 'closed', reason: `the shell ended ${how}`, actor: systemActor, notice } as const;
      if (this.#unseen === null || this.#end) this.#finish(end);
      else this.#unseenExit = { end, at: this.#parts.clock.monotonic() };
    }
  }

  lost(reason: string): void {
    if (!this.#shell) this.#early.push(() => this.lost(reason));
    else this.#finish(interrupted(reason));
  }

  /** Ends the session. Has no effect if it has already ended. */
  close(end: TerminalEnd): void {
    this.#finish(end);
  }

  /** Ends the session after a recording failure. Does not show the unrecorded output. */
  unrecorded(reason: Error): void {
    this.#failed = true;
    if (this.#notified) return;
    const message = `the terminal cannot be recorded: ${reason.message}`;
    this.#end = ended('terminal_unrecorded', message);
    this.#shell?.close(message);
    this.#notifyAll();
  }

  /**
   * Connects a client.
   * @param tokenHash token hash of the client's sign-in session, if any
   */
  connect(client: TerminalClient, who: Attached, tokenHash?: string): TerminalConnectionEvents {
    const connection: TerminalConnection = new TerminalConnection(
      client,
      who,
      tokenHash,
      (bytes) => this.#taken(bytes),
      () =>
        this.#cut(
          connection,
          'terminal_too_slow',
          'the connection is too slow for the output; attach to the terminal again',
        ),
    );
    const control = who.mode === 'control';
    if (control && this.#controller)
      this.#cut(this.#controller, 'terminal_taken_over', `${who.username} took over from another connection`);
    this.#connections.add(connection);
    connection.tell({ type: 'resize', ...this.#shownSize });
    if (control) {
      this.#controller = connection;
      this.#typedAt = this.#parts.clock.monotonic();
    }
    if (control && this.#unseen !== null) this.#showUnseen(connection, this.#unseen);
    else this.#showScreen(connection);
    return {
      mode: who.mode,
      typed: (bytes) => this.#typed(connection, bytes),
      resized: (cols, rows) => this.#resized(connection, { cols, rows }),
      left: () => this.#left(connection),
    };
  }

  /** Token hashes of the sign-in sessions that opened the connections. */
  get tokenHashes(): string[] {
    return Array.from(this.#connections, ({ tokenHash }) => tokenHash).filter((hash) => hash !== undefined);
  }

  /** The ids of the owner and all connected operators. */
  get operators(): string[] {
    return [this.operator_id, ...[...this.#connections].map(({ who }) => who.operator_id)];
  }

  cutOff(operatorId: string): void {
    for (const connection of [...this.#connections])
      if (connection.who.operator_id === operatorId)
        this.#cut(connection, 'unauthenticated', 'the operator was removed');
  }

  /** Closes a sign-in session's connections, unless it continues under another token. */
  signInEnded(tokenHash: string, renewedAs: string | null): void {
    for (const connection of [...this.#connections].filter((one) => one.tokenHash === tokenHash))
      if (renewedAs !== null) connection.tokenHash = renewedAs;
      else this.#cut(connection, 'unauthenticated', 'the operator has signed out');
  }

  /** Ends the session if its reattach or idle limit is exceeded. */
  sweep(): void {
    const now = this.#parts.clock.monotonic();
    const { reattachSecs, idleLimitSecs } = this.#parts.rules;
    if (this.#unseenExit && now - this.#unseenExit.at >= unseenMs) this.#finish(this.#unseenExit.end);
    else if (!this.#controller && now - this.#leftAt >= reattachSecs * 1000)
      this.#finish(ended('terminal_closed', `no operator was connected for ${reattachSecs} s`));
    else if (idleLimitSecs > 0 && now - this.#typedAt >= idleLimitSecs * 1000)
      this.#finish(ended('terminal_idle', `no input was typed for ${idleLimitSecs} s`));
  }

  get #now(): number {
    return this.#parts.clock.monotonic() - this.#openedAt;
  }

  /** Records the bytes that waited for the rest of a character. */
  #release(): void {
    this.#holding?.();
    this.#holding = null;
    const held = this.#held;
    this.#held = new Uint8Array(0);
    this.#record(held);
  }

  #record(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; from += maxEventBytes) {
      const piece = bytes.subarray(from, from + maxEventBytes);
      if (!this.#append(outputLines(this.#now, piece), () => this.#show(piece))) return;
      this.#modes.follow(piece);
    }
  }

  /**
   * Records lines, then calls `shown`.
   * @returns false if the transcript is full, in which case the session ends
   */
  #append(lines: string, shown?: () => void): boolean {
    const { recording, rules } = this.#parts;
    if (recording.size + Buffer.byteLength(lines) > rules.transcriptLimit) {
      this.#finish(ended('terminal_full', `the transcript has reached the maximum of ${rules.transcriptLimit} bytes`));
      return false;
    }
    this.#startingPoints.add(recording.size, this.#size, this.#modes, this.#shownTo);
    recording.append(lines, shown && this.#showing(shown, recording.size + Buffer.byteLength(lines)));
    return true;
  }

  #showing(shown: () => void, to: number): () => void {
    return () => {
      this.#shownTo = to;
      shown();
    };
  }

  #show(bytes: Uint8Array): void {
    for (const connection of this.#connections) connection.show(bytes);
    if (this.#controller) return;
    if (this.#unseen === null) this.#taken(bytes.length);
    else this.#unseen.push(bytes);
  }

  /**
   * Returns credit to the flow-control window when no connection is waiting for its first screen. Otherwise, a busy
   * shell would leave new connections too far behind to see any output.
   */
  #taken(bytes: number): void {
    this.#owed += bytes;
    if (this.#owed === 0 || this.#end || [...this.#connections].some(({ waits }) => waits)) return;
    this.#shell?.taken(this.#owed);
    this.#owed = 0;
  }

  #showUnseen(connection: TerminalConnection, unseen: readonly Uint8Array[]): void {
    this.#unseen = null;
    for (const bytes of unseen) connection.show(bytes);
    if (this.#unseenExit) this.#finish(this.#unseenExit.end);
  }

  #showScreen(connection: TerminalConnection): void {
    const { session_id, recentScreen } = this.#parts;
    const to = this.#shownTo;
    const startingPoint = this.#startingPoints.before(to);
    if (startingPoint === null) return;
    const { at: from, partial, ...state } = startingPoint;
    connection.begin(recentScreen({ session_id, from, to, ...state }), () => {
      this.#taken(0);
      if (partial) this.#redraw();
    });
  }

  /**
   * Makes the program redraw its screen, because a rebuilt screen may lack parts that were drawn earlier, such as
   * panes or a heading. Changes the terminal's size briefly, without notifying clients.
   */
  #redraw(): void {
    // A pending size change makes the program redraw anyway.
    if (this.#sizing || this.#end || !this.#shell || !this.#modes.alternate) return;
    const { cols, rows } = this.#size;
    this.#shell.resize(cols, rows > 1 ? rows - 1 : 2);
    this.#sizing = this.#parts.clock.after(redrawMs, () => {
      this.#sizing = null;
      this.#shell?.resize(this.#size.cols, this.#size.rows);
      this.#resize();
    });
  }

  #typed(connection: TerminalConnection, bytes: Uint8Array): void {
    if (connection.over || this.#end || !this.#shell) return;
    if (connection !== this.#controller) {
      this.#cut(connection, 'forbidden', 'this connection is view-only and does not accept input');
      return;
    }
    this.#typedAt = this.#parts.clock.monotonic();
    if (this.#recordsInput && !this.#recordTyped(bytes)) return;
    this.#acceptsInput = this.#shell.write(bytes);
    if (!this.#mayRead) connection.pause();
  }

  #recordTyped(bytes: Uint8Array): boolean {
    this.#unrecorded += bytes.length;
    return this.#append(inputLine(this.#now, bytes), () => {
      this.#unrecorded -= bytes.length;
      this.#readOn();
    });
  }

  get #mayRead(): boolean {
    return this.#acceptsInput && this.#unrecorded <= maxUnrecorded;
  }

  #readOn(): void {
    if (this.#mayRead) this.#controller?.resume();
  }

  #resized(connection: TerminalConnection, size: { cols: number; rows: number }): void {
    if (connection.over || this.#end) return;
    if (connection !== this.#controller) {
      this.#cut(connection, 'forbidden', 'this connection is view-only and cannot change the size');
      return;
    }
    this.#requestedSize = size;
    if (this.#sizing) return;
    this.#resize();
    this.#sizing = this.#parts.clock.after(resizeMs, () => {
      this.#sizing = null;
      this.#resize();
    });
  }

  #resize(): void {
    const size = this.#requestedSize;
    this.#requestedSize = null;
    if (!size || this.#end || !this.#shell) return;
    if (size.cols === this.#size.cols && size.rows === this.#size.rows) return;
    this.#release();
    const recorded = () => {
      this.#shownSize = size;
      for (const connection of this.#connections) connection.tell({ type: 'resize', ...size });
    };
    if (!this.#append(resizeLine(this.#now, size.cols, size.rows), recorded)) return;
    this.#size = size;
    this.#modes.resized();
    this.#shell.resize(size.cols, size.rows);
  }

  #left(connection: TerminalConnection): void {
    this.#connections.delete(connection);
    if (connection === this.#controller) {
      this.#controller = null;
      this.#leftAt = this.#parts.clock.monotonic();
    }
    connection.leave();
    this.#taken(0);
  }

  #cut(connection: TerminalConnection, code: ErrorCode, message: string): void {
    connection.cut({ type: 'error', code, message });
    this.#left(connection);
  }

  /** Shows the recorded output to the clients, notifies them, and closes their connections. */
  #finish(end: TerminalEnd): void {
    if (this.#end) return;
    this.#release();
    // Recording the last bytes may have ended the session because it failed or because the transcript was full.
    if (this.#end) return;
    this.#end = end;
    this.#sizing?.();
    this.#shell?.close(end.reason);
    if (this.#failed) this.#notifyAll();
    else this.#parts.recording.append('', () => this.#notifyAll());
  }

  #notifyAll(): void {
    if (this.#notified) return;
    this.#notified = true;
    const end = this.#end as TerminalEnd;
    for (const connection of [...this.#connections]) {
      connection.close(end.notice);
      this.#left(connection);
    }
    this.#parts.recording.finish().then(
      (digest) => this.#parts.onEnded(end, digest),
      () => this.#parts.onEnded(end, null),
    );
  }
}
