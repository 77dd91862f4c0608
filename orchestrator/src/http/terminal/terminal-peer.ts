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

/** Times in milliseconds. */
export const terminalSocketLimits = {
  /** Largest frame of a client. */
  frameBytes: 64 * 1024,
  pingMs: 30_000,
  /** Gone after so many pings without an answer. */
  missedPings: 2,
  /** A socket that is being closed and takes nothing for so long is cut off. */
  closeTimeoutMs: 5_000,
  /** One that may see no more is cut off after this. */
  cutMs: 500,
  /** Frames that a client may send, a second and at once; it is not read for a while then. */
  framesPerSecond: 1_000,
  frameBurst: 4_000,
  /** Frames that may wait for a client, which is cut off then: nothing else bounds the sizes that it is told. */
  waitingFrames: 8_192,
};

/** What a size counts as, in frames: each is told to all who look on. */
const resizeCost = 10;

const terminalLength = z.number().int().min(1).max(1000);
const resizeSchema = z.strictObject({ type: z.literal('resize'), cols: terminalLength, rows: terminalLength });

/** Why a socket is closed, as RFC 6455 has it. */
const closeCodes = { done: 1000, goingAway: 1001, violation: 1008, bug: 1011 } as const;

/** One WebSocket of an operator on a terminal. What it is told before it is open waits for that. */
export class TerminalPeer implements TerminalClient {
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly onGone: (peer: TerminalPeer) => void;
  private ws: WebSocket | null = null;
  private events: TerminalConnectionEvents | null = null;
  /** What was told before it was open. */
  private waiting: ((ws: WebSocket) => void)[] = [];
  /** Frames that the network has not taken. */
  private unsent = 0;
  private readonly allowance = new FrameAllowance(
    terminalSocketLimits.framesPerSecond,
    terminalSocketLimits.frameBurst,
  );
  private paused = false;
  private throttled = false;
  /** The code it is to be closed with, once all has been sent. */
  private closing: number | null = null;
  private gone = false;
  private heard = true;
  private missed = 0;
  private pingedAt: number;
  private movedAt: number;

  constructor(options: { clock: Clock; log: Log; onGone: (peer: TerminalPeer) => void }) {
    this.clock = options.clock;
    this.log = options.log;
    this.onGone = options.onGone;
    this.pingedAt = this.clock.monotonic();
    this.movedAt = this.pingedAt;
  }

  // What the domain does

  show(bytes: Uint8Array, sent: () => void): void {
    if (this.gone || this.closing !== null) queueMicrotask(() => this.safely(sent));
    else this.send(bytes, sent);
  }

  tell(notice: TerminalNotice): void {
    if (!this.gone && this.closing === null) this.send(JSON.stringify(notice), null);
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
    if (this.gone) return;
    this.closeWith(code);
    this.clock.after(terminalSocketLimits.cutMs, () => this.terminate());
  }

  // What the server does

  /** It is open: `events` is told what it does from now on. */
  attach(ws: WebSocket, events: TerminalConnectionEvents): void {
    this.ws = ws;
    this.events = events;
    ws.on('message', (data: Buffer, isBinary) => this.safely(() => this.receive(data, isBinary)));
    ws.on('ping', () => this.count(1));
    ws.on('pong', () => {
      this.heard = true;
      this.count(1);
    });
    ws.on('error', (error) => this.log.debug({ error: error.message }, 'terminal socket error'));
    ws.on('close', () => this.leave());
    for (const action of this.waiting.splice(0)) action(ws);
    this.readOrNot();
    this.closeWhenSent();
  }

  /** It has never opened, or is gone. */
  leave(events = this.events): void {
    if (this.gone) return;
    this.gone = true;
    // Whoever waits for what was shown to be sent waits in vain.
    for (const action of this.waiting.splice(0)) action(closedSocket);
    this.onGone(this);
    this.safely(() => events?.left());
  }

  /** The orchestrator stops. */
  interrupt(): void {
    this.tell({
      type: 'error',
      code: 'terminal_interrupted',
      message: 'The orchestrator is stopping.',
    });
    this.cut(closeCodes.goingAway);
  }

  /** Looks whether it is still there. Called every second or so. */
  look(now: number): void {
    if (this.ws === null || this.gone) return;
    if (this.closing !== null) {
      if (now - this.movedAt >= terminalSocketLimits.closeTimeoutMs) this.terminate();
      return;
    }
    if (now - this.pingedAt < terminalSocketLimits.pingMs) return;
    this.pingedAt = now;
    // While nothing is read of it, no answer can come.
    this.missed = this.heard || this.isPaused ? 0 : this.missed + 1;
    if (this.missed >= terminalSocketLimits.missedPings) {
      this.terminate();
      return;
    }
    this.heard = false;
    this.ws.ping();
  }

  // Out

  private send(data: string | Uint8Array, sent: (() => void) | null): void {
    this.unsent++;
    const action = (ws: WebSocket): void =>
      ws.send(data, () => {
        this.unsent--;
        // As good as an answer: behind what a slow line has to carry first, that takes its time.
        this.heard = true;
        this.movedAt = this.clock.monotonic();
        if (sent !== null) this.safely(sent);
        this.closeWhenSent();
      });
    if (this.ws === null) this.waiting.push(action);
    else action(this.ws);
    if (this.unsent > terminalSocketLimits.waitingFrames) this.terminate();
  }

  private closeWith(code: number): void {
    if (this.closing !== null || this.gone) return;
    this.closing = code;
    this.movedAt = this.clock.monotonic();
    // To see the answer to the close.
    this.readOrNot();
    this.closeWhenSent();
  }

  /** `ws` itself gives the other end a fixed time from then on, however much has yet to be sent. */
  private closeWhenSent(): void {
    if (this.closing !== null && this.unsent === 0) this.ws?.close(this.closing);
  }

  private terminate(): void {
    this.ws?.terminate();
  }

  // In

  private receive(data: Buffer, isBinary: boolean): void {
    if (this.closing !== null || this.events === null) return;
    this.heard = true;
    this.count(isBinary ? 1 : resizeCost);
    if (this.events.mode === 'view')
      this.violation('forbidden', 'This connection only looks on: attach with the mode `control` to type.');
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
        'A text frame is {"type":"resize","cols":…,"rows":…} with integers from 1 to 1000; what is typed goes in binary frames.',
      );
  }

  private violation(code: 'forbidden' | 'invalid_input', message: string): void {
    this.tell({ type: 'error', code, message });
    this.closeWith(closeCodes.violation);
  }

  /** Who sends more than it may is not read until it would have been slow enough. */
  private count(cost: number): void {
    const now = this.clock.monotonic();
    this.allowance.spend(now, cost);
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

  /** A bug on this side ends this connection, and nothing else. */
  private safely(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.log.error({ err: error }, 'bug: failed to handle a terminal message; closed its connection');
      this.closeWith(closeCodes.bug);
    }
  }
}

/** In the place of one that never opened: what is sent to it is over at once. */
const closedSocket = {
  send: (_data: unknown, done: () => void) => queueMicrotask(done),
} as unknown as WebSocket;
