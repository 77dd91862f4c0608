import { type AgentMessage, encodeTerminalFrame } from '@muster/protocol/wire';
import type { LoginShell } from '../host/accounts/login-shell.ts';
import { InputQueue } from './input-queue.ts';
import { OutputQueue } from './output-queue.ts';

/** The link of a terminal, as far as that needs it. After its end nothing reaches anybody. */
export interface Outlet {
  send(message: AgentMessage): void;
  sendFrame(frame: Uint8Array): void;
  /** Whether the network has taken most of what was sent; when it has, each terminal is woken. */
  hasRoom(): boolean;
}

export interface TerminalOptions {
  readonly channel: number;
  readonly outlet: Outlet;
  now(): number;
  /** To be woken at that time, or null: not at all. */
  wakeAt(terminal: Terminal, time: number | null): void;
}

/** The most that a shell shows at a time. */
const pieceBytes = 16 * 1024;
/** Others fill the network as well, and nobody says when what they sent is through. Milliseconds. */
const roomMs = 50;
/** How long a terminal that takes nothing of what is typed is left alone: longer and longer. Milliseconds. */
const retry = { first: 1, last: 50 };

/** One terminal: what it shows goes out as far as the windows and the network let it, what is typed as far as the shell does. */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #output = new OutputQueue(pieceBytes);
  readonly #input = new InputQueue();
  /** Null until it runs. */
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

  /** The shell runs; what came meanwhile reaches it. */
  begin(shell: LoginShell): void {
    this.#shell = shell;
    if (this.#size !== null) shell.resize(this.#size.cols, this.#size.rows);
    this.#feed();
    shell.resume();
  }

  /** @returns whether to read on */
  show(bytes: Uint8Array): boolean {
    this.#output.add(bytes);
    // It took what was typed, perhaps.
    if (!this.#input.isEmpty) this.#feed();
    this.#isReading = true;
    this.#pump();
    this.#isReading = this.#output.hasRoom;
    return this.#isReading;
  }

  /** Everything was shown. @param done called when everything was sent as well */
  finish(done: () => void): void {
    this.#ended = done;
    this.wake();
  }

  /** @returns false when that is more than the window holds */
  type(bytes: Uint8Array): boolean {
    if (this.#isOver) return true;
    if (!this.#input.add(bytes, (some) => this.#shell?.write(some) ?? 0)) return false;
    this.#fed();
    return true;
  }

  /** @returns false when more is given back than was sent */
  credit(bytes: number): boolean {
    if (!this.#output.credited(bytes)) return this.#isOver;
    this.wake();
    return true;
  }

  resize(cols: number, rows: number): void {
    this.#size = { cols, rows };
    if (!this.#isOver) this.#shell?.resize(cols, rows);
  }

  /** Nothing is sent and nothing typed any more. */
  end(): void {
    this.#isOver = true;
    this.#options.wakeAt(this, null);
  }

  /** Time has passed, or there is room again. */
  wake(): void {
    if (this.#isOver) return;
    if (this.#retryAt !== null && this.#options.now() >= this.#retryAt) this.#feed();
    this.#pump();
    if (!this.#isReading && this.#output.hasRoom && this.#shell !== null) {
      this.#isReading = true;
      this.#shell.resume();
    }
  }

  #pump(): void {
    const { channel, outlet, now } = this.#options;
    if (this.#isOver) return;
    while (outlet.hasRoom()) {
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
    this.#sleep();
  }

  #feed(): void {
    if (this.#shell === null) return;
    const shell = this.#shell;
    while (this.#input.flush((bytes) => shell.write(bytes))) this.#retryMs = retry.first;
    this.#fed();
  }

  /** Something was typed, or tried to be. */
  #fed(): void {
    const { channel, outlet, now } = this.#options;
    const bytes = this.#input.giveBack();
    if (bytes > 0) outlet.send({ type: 'terminal_credit', channel, bytes });
    if (this.#input.isEmpty || this.#shell === null) {
      this.#retryAt = null;
      this.#retryMs = retry.first;
    } else {
      this.#retryAt = now() + this.#retryMs;
      this.#retryMs = Math.min(this.#retryMs * 2, retry.last);
    }
    this.#sleep();
  }

  #sleep(): void {
    const { outlet, now } = this.#options;
    const dueAt = outlet.hasRoom() || this.#output.isEmpty ? this.#output.dueAt() : now() + roomMs;
    const times = [dueAt, this.#retryAt].filter((time) => time !== null);
    this.#options.wakeAt(this, times.length === 0 ? null : Math.min(...times));
  }
}
