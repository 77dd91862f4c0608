import { MusterError } from '@muster/protocol';
import type { OrchestratorMessage, TerminalRefusal } from '@muster/protocol/wire';
import type { Standing } from '../domain/agent-link/agent-link.ts';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import { oneLine } from '../domain/shared/single-line.ts';
import type { Shell, ShellEvents, ShellExit } from '../domain/terminals/shells.ts';
import type { GatewayLimits } from './limits.ts';
import { InputQueue, OutputWindow, Pieces } from './terminal-window.ts';
import { TokenBucket } from './token-bucket.ts';

/**
 * `opening`: the agent has not replied. `closed`: the opener closed the shell, but the agent has not confirmed it.
 * `ended`: no more messages follow.
 */
type ChannelState = 'opening' | 'open' | 'closed' | 'ended';

const refusalCodes = {
  disabled: 'terminal_disabled',
  limit: 'terminal_limit',
  shell_refused: 'terminal_shell_refused',
  failed: 'terminal_failed',
} as const satisfies Record<TerminalRefusal, string>;

/** Maximum number of input frames not yet written to the network. Further input is coalesced into larger frames. */
const maxUnsent = 8;

/**
 * Maximum length of a name from an agent, in characters. A character may be two UTF-16 code units, which the wire limit
 * counts.
 */
const maxTextLength = 128;
const maxMessageLength = 500;

/** The methods of a link that terminals use. */
export interface ChannelLink {
  readonly nodeId: string | null;
  readonly standing: Standing | null;
  /** @param done called once, when the message is written to the network or the link has closed */
  send(message: OrchestratorMessage, done?: () => void): void;
  sendTyped(channel: number, bytes: Uint8Array, done: () => void): void;
  refuse(refusal: Refusal): void;
  fault(error: unknown): void;
}

export const nameOf = (link: Pick<ChannelLink, 'nodeId' | 'standing'>): string =>
  link.standing?.name ?? link.nodeId ?? 'the agent';

/**
 * A terminal on a link. The `on…` methods handle the agent's messages. Each returns a description of a protocol
 * violation, or null.
 */
export class Channel implements Shell {
  readonly number: number;
  program = '';
  user = '';
  private state: ChannelState = 'opening';
  private readonly link: ChannelLink;
  private readonly limits: GatewayLimits;
  private readonly events: ShellEvents;
  private readonly answer: { resolve: (shell: Shell) => void; reject: (error: Error) => void };
  private readonly shown: OutputWindow;
  private readonly pieces: Pieces;
  private readonly typed: InputQueue;
  private readonly smallFrames: TokenBucket;
  /** Events queued until the opener has received the shell; null afterward. */
  private queued: (() => void)[] | null = [];
  /** Whether the opener has closed the shell, so that it receives no more events. */
  private silent = false;
  /** Whether `write` has returned false. The opener then waits for `writable`. */
  private full = false;
  private flushing = false;
  private unsent = 0;
  /** The size to send after the current size; null if none is waiting. */
  private size: { cols: number; rows: number } | null = null;
  private resizing = false;

  constructor(
    link: ChannelLink,
    number: number,
    options: {
      limits: GatewayLimits;
      events: ShellEvents;
      answer: { resolve: (shell: Shell) => void; reject: (error: Error) => void };
      now: number;
    },
  ) {
    this.link = link;
    this.number = number;
    this.limits = options.limits;
    this.events = options.events;
    this.answer = options.answer;
    this.shown = new OutputWindow(this.limits.terminalOutputWindowBytes);
    this.pieces = new Pieces(this.limits.terminalPieces, this.limits.terminalOutputWindowBytes);
    this.typed = new InputQueue(this.limits.terminalInputWindowBytes, this.limits.terminalFrameBytes);
    this.smallFrames = new TokenBucket(this.limits.terminalSmallFrameBurst, options.now);
  }

  /** Whether the channel may be removed, because no more messages follow. */
  get over(): boolean {
    return this.state === 'ended';
  }

  // Messages from the agent

  onOpened(program: string, user: string): string | null {
    if (this.state === 'closed') return null;
    if (this.state !== 'opening') return 'terminal_opened was sent twice';
    this.state = 'open';
    this.program = oneLine(program, maxMessageLength);
    this.user = oneLine(user, maxTextLength);
    this.answer.resolve(this);
    // Delivers events only after the caller that awaits the shell has received it.
    setImmediate(() => this.release());
    return null;
  }

  onRefused(code: TerminalRefusal, message: string): string | null {
    if (this.state === 'open') return 'terminal_refused for an open terminal';
    if (this.state === 'opening') {
      const why = oneLine(message, maxMessageLength);
      const detail = why === '' ? undefined : `${nameOf(this.link)}: ${why}`;
      this.answer.reject(new MusterError(refusalCodes[code], detail));
    }
    this.state = 'ended';
    return null;
  }

  onOutput(bytes: Uint8Array, now: number): string | null {
    if (this.state === 'opening') return 'output of a terminal that was not opened';
    const { terminalSmallFrameBytes, terminalOutputWindowBytes } = this.limits;
    if (bytes.length < terminalSmallFrameBytes && !this.mayDrip(now)) return null;
    if (!this.shown.receive(bytes.length))
      return `terminal output exceeds the window of ${terminalOutputWindowBytes} bytes`;
    if (this.state === 'open') this.show(this.pieces.receive(bytes));
    return null;
  }

  private show(piece: Uint8Array | null): void {
    if (piece !== null) this.deliver(() => this.events.output(piece));
  }

  private mayDrip(now: number): boolean {
    const { terminalSmallFramesPerSecond, terminalSmallFrameBurst, terminalSmallFrameBytes } = this.limits;
    if (this.smallFrames.take(now, terminalSmallFramesPerSecond, terminalSmallFrameBurst)) return true;
    this.link.refuse({
      code: 'rate_exceeded',
      message: `one terminal sends more than ${terminalSmallFramesPerSecond} frames of less than ${terminalSmallFrameBytes} bytes per second`,
      retry_after_secs: null,
    });
    return false;
  }

  onCredit(bytes: number): string | null {
    if (!this.typed.credit(bytes)) return 'terminal_credit exceeds the input that was sent';
    if (this.state === 'open') this.flush();
    return null;
  }

  onExited(exit: ShellExit): string | null {
    if (this.state === 'opening') return 'terminal_exited for a terminal that was not opened';
    this.show(this.pieces.rest());
    this.state = 'ended';
    const { code, signal } = exit;
    this.deliver(() => this.events.exited({ code, signal: signal === null ? null : oneLine(signal, maxTextLength) }));
    return null;
  }

  onLost(reason: string): void {
    const { state } = this;
    this.show(this.pieces.rest());
    this.state = 'ended';
    if (state === 'opening') this.answer.reject(new MusterError('agent_offline', reason));
    if (state === 'open') this.deliver(() => this.events.lost(reason));
  }

  onTimeout(): void {
    if (this.state !== 'opening') return;
    const seconds = this.limits.terminalOpenTimeoutMs / 1000;
    this.answer.reject(
      new MusterError('agent_timeout', `${nameOf(this.link)} did not start a shell within ${seconds} s`),
    );
    this.close('the shell did not start in time');
  }

  // Calls from the opener

  write(bytes: Uint8Array): boolean {
    if (this.state !== 'open') return true;
    const roomy = this.typed.push(bytes);
    if (this.typed.waiting > this.limits.terminalInputQueueBytes) {
      this.close('too much queued input');
      this.events.lost('too much input was sent before the shell read it');
      return true;
    }
    if (!roomy) this.full = true;
    // Joins all input of one event-loop turn.
    if (!this.flushing) {
      this.flushing = true;
      queueMicrotask(() => this.safely(() => this.flush()));
    }
    return roomy;
  }

  resize(cols: number, rows: number): void {
    if (this.state !== 'open') return;
    this.size = { cols, rows };
    if (!this.resizing) this.sendSize();
  }

  taken(bytes: number): void {
    if (this.state !== 'open') return;
    this.safely(() => {
      const credit = this.shown.take(bytes);
      if (credit > 0) this.link.send({ type: 'terminal_credit', channel: this.number, bytes: credit });
      this.show(this.pieces.take(bytes));
    });
  }

  close(reason: string): void {
    this.silent = true;
    this.queued = null;
    if (this.state === 'closed' || this.state === 'ended') return;
    this.state = 'closed';
    this.size = null;
    this.link.send({ type: 'terminal_close', channel: this.number, reason: oneLine(reason, maxTextLength) });
  }

  // Internals

  /** Delivers an event to the opener, or queues it until the opener has the shell. */
  private deliver(event: () => void): void {
    if (this.silent) return;
    if (this.queued !== null) this.queued.push(event);
    else event();
  }

  private release(): void {
    this.safely(() => {
      const queue = this.queued ?? [];
      // An event handler may add another event.
      for (let event = queue.shift(); event !== undefined && !this.silent; event = queue.shift()) event();
      this.queued = null;
    });
  }

  private flush(): void {
    this.flushing = false;
    if (this.state !== 'open') return;
    while (this.unsent < maxUnsent) {
      const next = this.typed.next();
      if (next === null) break;
      this.unsent++;
      this.link.sendTyped(this.number, next, () => {
        this.unsent--;
        this.safely(() => this.flush());
      });
    }
    if (!this.full || this.typed.waiting > 0) return;
    this.full = false;
    this.deliver(() => this.events.writable());
  }

  /** Sends one size at a time, so that rapid size changes do not accumulate. */
  private sendSize(): void {
    const { size } = this;
    if (size === null || this.state !== 'open') return;
    // Sends the input that precedes the size change.
    this.flush();
    this.size = null;
    this.resizing = true;
    this.link.send({ type: 'terminal_resize', channel: this.number, ...size }, () => {
      this.resizing = false;
      this.safely(() => this.sendSize());
    });
  }

  /** Runs an action, and closes the link if it throws. */
  private safely(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.link.fault(error);
    }
  }
}
