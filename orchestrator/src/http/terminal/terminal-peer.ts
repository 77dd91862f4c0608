import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type {
  TerminalClient,
  TerminalConnectionEvents,
  TerminalNotice,
} from '../../domain/terminals/terminal-client.ts';
import { FrameAllowance } from './frame-allowance.ts';

/** Limits of terminal sockets. Times are in milliseconds. */
export const terminalSocketLimits = {
  /** Maximum size of a frame from a client. */
  frameBytes: 64 * 1024,
  pingMs: 30_000,
  /** Number of pings without a pong after which the socket is closed. */
  missedPings: 2,
  /** Time after which a closing socket that accepts no data is destroyed. */
  closeTimeoutMs: 5_000,
  /** Time after which a socket is destroyed after its client has lost access. */
  cutMs: 500,
  /** Frame rate limits of a client: maximum frames per second, and burst. Above these limits, reading pauses. */
  framesPerSecond: 1_000,
  frameBurst: 4_000,
  /**
   * Maximum number of frames queued for a client. A client that exceeds the maximum is disconnected. No other limit
   * applies to size notices.
   */
  waitingFrames: 8_192,
};

/** Cost of a resize, in frames. A resize costs more than other frames, because it is sent to all viewers. */
const resizeCost = 10;

const terminalLength = z.number().int().min(1).max(1000);
const resizeSchema = z.strictObject({ type: z.literal('resize'), cols: terminalLength, rows: terminalLength });

/** Close codes from RFC 6455. */
const closeCodes = { done: 1000, goingAway: 1001, violation: 1008, bug: 1011 } as const;

/** The WebSocket of an operator who is attached to a terminal session. Queues messages until the WebSocket is open. */
export class TerminalPeer implements TerminalClient {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly onClosed: (peer: TerminalPeer) => void;
  private ws: WebSocket | null = null;
  private events: TerminalConnectionEvents | null = null;
  /** Messages to send after the socket has opened. */
  private waiting: ((ws: WebSocket) => void)[] = [];
  /** Number of frames that have not been written to the network yet. */
  private unsent = 0;
  private readonly allowance = new FrameAllowance(
    terminalSocketLimits.framesPerSecond,
    terminalSocketLimits.frameBurst,
  );
  private paused = false;
  private throttled = false;
  /** The close code to send after the last frame. */
  private closing: number | null = null;
  private closed = false;
  private received = true;
  private missed = 0;
  private pingedAt: number;
  private movedAt: number;

  constructor(options: { clock: Clock; log: Log; onClosed: (peer: TerminalPeer) => void }) {
    this.clock = options.clock;
    this.log = options.log;
    this.onClosed = options.onClosed;
    this.pingedAt = this.clock.monotonic();
    this.movedAt = this.pingedAt;
  }

  // Methods that the domain calls

  show(bytes: Uint8Array, sent: () => void): void {
    if (this.closed || this.closing !== null) queueMicrotask(() => this.safely(sent));
    else this.send(bytes, sent);
  }

  notify(notice: TerminalNotice): void {
    if (!this.closed && this.closing === null) this.send(JSON.stringify(notice), null);
  }

  pause(): void {
    this.paused = true;
    this.readOrNot();
  }

  resume(): void {
    this.paused = false;
    this.readOrNot();
  }

  close(): void {
    this.closeWith(closeCodes.done);
  }

  cut(code: number = closeCodes.violation): void {
    if (this.closed) return;
    this.closeWith(code);
    this.clock.after(terminalSocketLimits.cutMs, () => this.terminate());
  }

  // Methods that the server calls

  /** Attaches the open socket, and passes its messages to `events`. */
  attach(ws: WebSocket, events: TerminalConnectionEvents): void {
    this.ws = ws;
    this.events = events;
    ws.on('message', (data: Buffer, isBinary) => this.safely(() => this.receive(data, isBinary)));
    ws.on('ping', () => this.count(1));
    ws.on('pong', () => {
      this.received = true;
      this.count(1);
    });
    ws.on('error', (error) => this.log.debug({ error: error.message }, 'terminal socket error'));
    ws.on('close', () => this.leave());
    for (const action of this.waiting.splice(0)) action(ws);
    this.readOrNot();
    this.closeWhenSent();
  }

  /** Cleans up the peer after its socket has closed or has failed to open. */
  leave(events = this.events): void {
    if (this.closed) return;
    this.closed = true;
    // Completes frames that cannot be sent, so that callers do not wait for them forever.
    for (const action of this.waiting.splice(0)) action(closedSocket);
    this.onClosed(this);
    this.safely(() => events?.left());
  }

  /**
   * Closes the socket when the orchestrator shuts down. Sends no notice if the terminal session continues on another
   * replica, so that the client attaches again.
   */
  interrupt(): void {
    if (!this.events?.isRelayed)
      this.notify({
        type: 'error',
        code: 'terminal_interrupted',
        message: 'The orchestrator is stopping.',
      });
    this.cut(closeCodes.goingAway);
  }

  /** Checks whether the client responds. Called about every second. */
  look(now: number): void {
    if (this.ws === null || this.closed) return;
    if (this.closing !== null) {
      if (now - this.movedAt >= terminalSocketLimits.closeTimeoutMs) this.terminate();
      return;
    }
    if (now - this.pingedAt < terminalSocketLimits.pingMs) return;
    this.pingedAt = now;
    // While reading is paused, pongs cannot arrive.
    this.missed = this.received || this.isPaused ? 0 : this.missed + 1;
    if (this.missed >= terminalSocketLimits.missedPings) {
      this.terminate();
      return;
    }
    this.received = false;
    this.ws.ping();
  }

  // Sending

  private send(data: string | Uint8Array, sent: (() => void) | null): void {
    this.unsent++;
    const action = (ws: WebSocket): void =>
      ws.send(data, () => {
        this.unsent--;
        // Counts data that the client accepts as a response to the ping, because on a slow connection, the ping is
        // queued behind this data.
        this.received = true;
        this.movedAt = this.clock.monotonic();
        if (sent !== null) this.safely(sent);
        this.closeWhenSent();
      });
    if (this.ws === null) this.waiting.push(action);
    else action(this.ws);
    if (this.unsent > terminalSocketLimits.waitingFrames) this.terminate();
  }

  private closeWith(code: number): void {
    if (this.closing !== null || this.closed) return;
    this.closing = code;
    this.movedAt = this.clock.monotonic();
    // Resumes reading, to receive the close frame that the client sends in reply.
    this.readOrNot();
    this.closeWhenSent();
  }

  /** Sends the close frame after all data, because `ws` starts a time limit when it sends this frame. */
  private closeWhenSent(): void {
    if (this.closing !== null && this.unsent === 0) this.ws?.close(this.closing);
  }

  private terminate(): void {
    this.ws?.terminate();
  }

  // Receiving

  private receive(data: Buffer, isBinary: boolean): void {
    if (this.closing !== null || this.events === null) return;
    this.received = true;
    this.count(isBinary ? 1 : resizeCost);
    if (this.events.mode === 'view')
      this.violation('forbidden', 'This connection is read-only: attach with the mode `control` to type.');
    else if (!isBinary) this.resized(data.toString());
    else if (data.length > 0) this.events.typed(data);
  }

  private resized(text: string): void {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined;
    }
    const parsed = resizeSchema.safeParse(json);
    if (parsed.success) this.events?.resized(parsed.data.cols, parsed.data.rows);
    else
      this.violation(
        'invalid_input',
        'A text frame must be {"type":"resize","cols":…,"rows":…} with integers from 1 to 1000; input goes in binary frames.',
      );
  }

  private violation(code: 'forbidden' | 'invalid_input', message: string): void {
    this.notify({ type: 'error', code, message });
    this.closeWith(closeCodes.violation);
  }

  /** Pauses reading from a client that sends too fast. */
  private count(cost: number): void {
    const now = this.clock.monotonic();
    this.allowance.consume(now, cost);
    if (!this.throttled) this.throttle(now);
  }

  private throttle(now: number): void {
    const wait = this.allowance.wait(now);
    this.throttled = wait > 0;
    this.readOrNot();
    if (this.throttled) this.clock.after(wait, () => this.throttle(this.clock.monotonic()));
  }

  private get isPaused(): boolean {
    return (this.paused || this.throttled) && this.closing === null;
  }

  private readOrNot(): void {
    if (this.ws === null || this.ws.isPaused === this.isPaused) return;
    if (this.isPaused) this.ws.pause();
    else this.ws.resume();
  }

  /** Runs an action, and closes the connection if it throws. */
  private safely(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.log.error({ err: error }, "bug: failed to handle a terminal message; closed the terminal's connection");
      this.closeWith(closeCodes.bug);
    }
  }
}

/** Replaces a socket that never opened. Each send completes immediately, without sending. */
const closedSocket = {
  send: (_data: unknown, done: () => void) => queueMicrotask(done),
} as unknown as WebSocket;
