import { type AgentMessage, encodeTerminalFrame } from '@muster/protocol/wire';
import type { LoginShell } from '../host/accounts/login-shell.ts';
import { InputQueue } from './input-queue.ts';
import { OutputQueue } from './output-queue.ts';

/** The link operations that a terminal uses. After the link closes, messages are dropped. */
export interface Outlet {
  send(message: AgentMessage): void;
  sendFrame(frame: Uint8Array): void;
  /** Reports whether the send buffer has room. When it has room again, the link wakes all terminals. */
  hasSpace(): boolean;
}

export interface TerminalOptions {
  readonly channel: number;
  readonly outlet: Outlet;
  now(): number;
  /** Requests a wake-up at this time; null cancels the request. */
  wakeAt(terminal: Terminal, time: number | null): void;
}

/** Maximum size of one read from a shell, in bytes. */
const pieceBytes = 16 * 1024;
/** Milliseconds between checks for room in the send buffer, because frames from other senders raise no event here. */
const spacePollMs = 50;
/** Milliseconds between attempts to pass on input that the terminal does not accept. */
const retry = { first: 1, last: 50 };

/**
 * A terminal. Sends output as fast as the window and the network allow, and passes on input as fast as the shell
 * accepts it.
 */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #output = new OutputQueue(pieceBytes);
  readonly #input = new InputQueue();
  /** Null until the shell runs. */
  #shell: LoginShell | null = null;
  #size: { cols: number; rows: number } | null = null;
  #isReading = true;
  #retryMs = retry.first;
  #retryAt: number | null = null;
  #ended: (() => void) | null = null;
  #isOver = false;

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  /** Connects the running shell, and passes on the input and the size that arrived earlier. */
  begin(shell: LoginShell): void {
    this.#shell = shell;
    if (this.#size !== null) shell.resize(this.#size.cols, this.#size.rows);
    this.#writeInput();
    shell.resume();
  }

  /** Adds output from the shell. @returns whether to continue reading */
  show(bytes: Uint8Array): boolean {
    this.#output.add(bytes);
    // A program that prints may also have read input, so the terminal may accept more.
    if (!this.#input.isEmpty) this.#writeInput();
    this.#isReading = true;
    this.#sendOutput();
    this.#isReading = this.#output.hasSpace;
    return this.#isReading;
  }

  /** Sends the remaining output after the last call to `show`. @param done called when all output was sent */
  finish(done: () => void): void {
    this.#ended = done;
    this.wake();
  }

  /** Handles input. @returns false if it exceeds the window */
  type(bytes: Uint8Array): boolean {
    if (this.#isOver) return true;
    if (!this.#input.add(bytes, (some) => this.#shell?.write(some) ?? 0)) return false;
    this.#afterInput();
    return true;
  }

  /**
   * Handles a credit.
   * @returns false if it exceeds the number of bytes that were sent and not credited yet
   */
  credit(bytes: number): boolean {
    if (!this.#output.credited(bytes)) return this.#isOver;
    this.wake();
    return true;
  }

  resize(cols: number, rows: number): void {
    this.#size = { cols, rows };
    if (!this.#isOver) this.#shell?.resize(cols, rows);
  }

  /** Stops sending output and passing on input. */
  end(): void {
    this.#isOver = true;
    this.#options.wakeAt(this, null);
  }

  /** Called at the requested time, or when the send buffer has room. */
  wake(): void {
    if (this.#isOver) return;
    if (this.#retryAt !== null && this.#options.now() >= this.#retryAt) this.#writeInput();
    this.#sendOutput();
    if (!this.#isReading && this.#output.hasSpace && this.#shell !== null) {
      this.#isReading = true;
      this.#shell.resume();
    }
  }

  #sendOutput(): void {
    const { channel, outlet, now } = this.#options;
    if (this.#isOver) return;
    while (outlet.hasSpace()) {
      const frame = this.#output.take(now(), (bytes) => encodeTerminalFrame(channel, bytes));
      if (frame === null) break;
      outlet.sendFrame(frame);
    }
    if (this.#output.isEmpty && this.#ended !== null) {
      const done = this.#ended;
      this.end();
      done();
      return;
    }
    this.#scheduleWake();
  }

  #writeInput(): void {
    if (this.#shell === null) return;
    const shell = this.#shell;
    while (this.#input.flush((bytes) => shell.write(bytes))) this.#retryMs = retry.first;
    this.#afterInput();
  }

  /** Sends credit for accepted input, and schedules a retry for input that was not accepted. */
  #afterInput(): void {
    const { channel, outlet, now } = this.#options;
    const bytes = this.#input.takeCredit();
    if (bytes > 0) outlet.send({ type: 'terminal_credit', channel, bytes });
    if (this.#input.isEmpty || this.#shell === null) {
      this.#retryAt = null;
      this.#retryMs = retry.first;
    } else {
      this.#retryAt = now() + this.#retryMs;
      this.#retryMs = Math.min(this.#retryMs * 2, retry.last);
    }
    this.#scheduleWake();
  }

  #scheduleWake(): void {
    const { outlet, now } = this.#options;
    const dueAt = outlet.hasSpace() || this.#output.isEmpty ? this.#output.dueAt() : now() + spacePollMs;
    const times = [dueAt, this.#retryAt].filter((time) => time !== null);
    this.#options.wakeAt(this, times.length === 0 ? null : Math.min(...times));
  }
}
