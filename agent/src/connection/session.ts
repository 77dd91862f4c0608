import {
  type AgentMessage,
  closeReason,
  decodeTerminalFrame,
  limits,
  type OperationMessage,
  type OrchestratorMessage,
  orchestratorMessageSchema,
  type RefusalCode,
  type Welcome,
} from '@muster/protocol/wire';
import type { WebSocket } from 'ws';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { Engine } from '../converge/engine.ts';
import type { SampleBuffer } from '../metrics/sample-buffer.ts';
import type { Outlet } from '../terminal/terminal.ts';
import type { TerminalLink, Terminals } from '../terminal/terminals.ts';
import type { LinkEnd } from './backoff.ts';
import { ContentReceiver } from './content-receiver.ts';
import type { Dialled } from './dial.ts';
import { MetricsSender } from './metrics-sender.ts';
import { OutputSender } from './output-sender.ts';
import { ReportSender } from './report-sender.ts';

export interface SessionEnd extends LinkEnd {
  reason: string;
}

/** The methods and properties of an engine that a connection uses. */
export type ConnectedEngine = Pick<
  Engine,
  'accept' | 'cancel' | 'contents' | 'openOperations' | 'output' | 'settle' | 'spool'
>;

export interface SessionOptions {
  dialled: Dialled;
  engine: ConnectedEngine;
  terminals: Terminals | null;
  /** Collected samples; null if none are collected. */
  samples: SampleBuffer | null;
  clock: Clock;
  log: Log;
  random: () => number;
  hello(nonce: Buffer, versions: readonly number[]): AgentMessage;
  /** Called when the link is up: the orchestrator has committed this agent's record. */
  welcomed(welcome: Welcome): void;
  statusChanged(standing: Pick<Welcome, 'status' | 'name' | 'tags'>): void;
}

/** Timeout in milliseconds for the challenge, and then for the welcome. */
const handshakeTimeoutMs = 60_000;
/** Milliseconds of silence after which the link counts as broken. The orchestrator sends pings. */
const silenceMs = limits.pingIntervalMs * (limits.missedPings + 1);
/** Remedies for the machine's operator. */
const advice: Partial<Record<RefusalCode, string>> = {
  token_invalid:
    '; create a new token with `muster agents enroll` on the orchestrator, and start this agent with the command that `enroll` prints',
  key_replaced:
    '; this data directory is a copy or was restored: if this machine is the right one, reject and remove the agent, then enroll it again with `muster agents enroll`',
};
const byeTimeoutMs = 1_000;
/** Maximum number of bytes in the send buffer before reading pauses. Normal traffic needs far fewer. */
const unsentBytes = 1024 * 1024;
const unsentPollMs = 50;
/** Maximum number of bytes in the send buffer before terminals pause, so that results can still be sent. */
const terminalBacklogBytes = 64 * 1024;

/** A link, from the challenge until it closes. */
export class Session {
  private readonly options: SessionOptions;
  private readonly ws: WebSocket;
  private sender: ReportSender | null = null;
  /** Null until the link is up, or if the orchestrator does not support live output. */
  private outputSender: OutputSender | null = null;
  /** Null until the link is up, or if the orchestrator does not support terminals. */
  private terminals: TerminalLink | null = null;
  /** Null until the link is up, or if the orchestrator does not send file content. */
  private contents: ContentReceiver | null = null;
  /** Null until the link is up, or if the orchestrator does not request samples. */
  private metricsSender: MetricsSender | null = null;
  private phase: 'challenge' | 'welcome' | 'open' | 'over' = 'challenge';
  private receivedAt: number;
  /** Protocol version, known after the welcome. */
  version = 1;
  private welcomedAt: number | null = null;
  private retryAfterSecs: number | null = null;
  private refused: RefusalCode | null = null;
  private reason: string | null = null;
  private cancelWatch: () => void = () => {};
  /** Runs operations and cancellations in order, because a cancellation must not overtake its operation. */
  private orders: Promise<void> = Promise.resolve();
  private readonly over: Promise<SessionEnd>;

  constructor(options: SessionOptions) {
    this.options = options;
    this.ws = options.dialled.ws;
    this.receivedAt = options.clock.monotonic();
    this.over = new Promise((resolve) => {
      this.ws.on('close', (code, reason) => resolve(this.ended(code, reason.toString())));
    });
    this.ws.on('message', (data: Buffer, isBinary: boolean) => {
      try {
        this.receive(data, isBinary);
        this.pauseIfFull();
      } catch (error) {
        // A thrown error would terminate the process and the running operation.
        options.log.error({ error }, 'bug: failed to handle a message from the orchestrator; closing the link');
        this.end('internal error', 1011);
      }
    });
    this.ws.on('ping', () => this.noteReceived());
    this.ws.on('error', (error) => {
      this.reason ??= error.message;
    });
    this.watch();
    this.ws.resume();
  }

  /** Waits until the link closes. Never rejects. */
  run(): Promise<SessionEnd> {
    return this.over;
  }

  reportsReady(): void {
    if (this.phase === 'open') this.sender!.pump();
  }

  outputReady(): void {
    if (this.phase === 'open') this.outputSender?.printed();
  }

  contentsWanted(): void {
    if (this.phase === 'open') this.contents?.pump();
  }

  /** Sends the attributes. @returns false if the link is down; the next hello then contains them */
  sendAttributes(attributes: Record<string, string>): boolean {
    if (this.phase !== 'open') return false;
    const clock_ms = Math.max(0, Math.round(this.options.clock.now()));
    this.send({ type: 'attributes', attributes, ...(this.version >= 2 ? { clock_ms } : {}) });
    return true;
  }

  /** Sends a hint that applied resources have changed. @returns false if the link is down */
  hintDrift(keys: string[]): boolean {
    if (this.phase !== 'open') return false;
    this.send({ type: 'drift_hint', keys });
    return true;
  }

  /**
   * Sends a bye and closes the link. Ignores later messages, because the caller may close the components that they
   * would change.
   * @param returns whether this process will reconnect immediately; an orchestrator with protocol version 4 then keeps
   *   the agent's slot
   */
  async leave(reason: string, returns = false): Promise<void> {
    if (this.phase === 'open') this.send({ type: 'bye', reason, ...(returns ? { returns } : {}) });
    this.phase = 'over';
    this.end(`bye: ${reason}`, 1000);
    const cancelTimeout = this.options.clock.after(byeTimeoutMs, () => this.ws.terminate());
    await this.over;
    cancelTimeout();
    // After this, each received operation is either on disk or refused.
    await this.orders;
  }

  private ended(code: number, reason: string): SessionEnd {
    this.phase = 'over';
    this.cancelWatch();
    this.outputSender?.end();
    this.terminals?.end('the link to the orchestrator ended');
    this.contents?.end();
    this.metricsSender?.end();
    return {
      livedMs: this.welcomedAt === null ? 0 : this.options.clock.monotonic() - this.welcomedAt,
      retryAfterSecs: this.retryAfterSecs,
      reason: this.reason ?? (reason || (code === 1006 ? 'the connection was lost' : `closed with code ${code}`)),
      refused: this.refused,
    };
  }

  private send(message: AgentMessage): void {
    this.ws.send(JSON.stringify(message));
  }

  private end(reason: string, code: number): void {
    this.reason ??= reason;
    this.ws.close(code, closeReason(reason));
  }

  private noteReceived(): void {
    this.receivedAt = this.options.clock.monotonic();
  }

  /**
   * Pauses reading while the peer does not read the replies, so that unsent replies do not fill this process's memory.
   */
  private pauseIfFull(): void {
    if (this.ws.isPaused || this.ws.bufferedAmount <= unsentBytes) return;
    this.ws.pause();
    const resumeIfDrained = () => {
      if (this.ws.bufferedAmount > unsentBytes) this.options.clock.after(unsentPollMs, resumeIfDrained);
      else this.ws.resume();
    };
    resumeIfDrained();
  }

  private watch(): void {
    const { clock } = this.options;
    const allowed = this.phase === 'open' ? silenceMs : handshakeTimeoutMs;
    this.cancelWatch = clock.after(Math.max(1, allowed - (clock.monotonic() - this.receivedAt)), () => {
      const limit = this.phase === 'open' ? silenceMs : handshakeTimeoutMs;
      const silent = clock.monotonic() - this.receivedAt;
      if (silent < limit) return this.watch();
      this.reason ??= `the orchestrator has been silent for ${Math.round(silent / 1000)} s`;
      return this.ws.terminate();
    });
  }

  private receive(data: Buffer, isBinary: boolean): void {
    if (this.phase === 'over') return;
    this.noteReceived();
    if (isBinary && this.phase === 'open' && this.contents?.receive(data) === true) return;
    if (isBinary && this.terminals !== null && this.phase === 'open') {
      const frame = decodeTerminalFrame(data);
      if (frame === null || !this.terminals.type(frame.channel, frame.bytes)) this.end('not a terminal frame', 1008);
      return;
    }
    const message = isBinary ? null : decode(data);
    if (message === null) {
      this.options.log.error(
        { bytes: data.length },
        'received a message from the orchestrator that this agent does not understand',
      );
      this.end('not understood', 1008);
      return;
    }
    if (message.type === 'refused') {
      this.onRefused(message);
      return;
    }
    if (message.type === 'drain') {
      this.onDrain(message.retry_after_secs);
      return;
    }
    if (this.phase === 'challenge') {
      this.onChallenge(message);
      return;
    }
    if (this.phase === 'welcome') {
      this.onWelcome(message);
      return;
    }
    this.onMessage(message);
    return;
  }

  private onRefused(refusal: Extract<OrchestratorMessage, { type: 'refused' }>): void {
    this.retryAfterSecs = refusal.retry_after_secs;
    this.refused = refusal.code;
    this.reason = `refused: ${refusal.message}`;
    this.options.log.error(
      { code: refusal.code, reason: refusal.message },
      `the orchestrator refused this agent${advice[refusal.code] ?? ''}`,
    );
    this.ws.close(1000);
  }

  private onDrain(retryAfterSecs: number): void {
    // The orchestrator closes the link after it has committed the operations in progress.
    this.retryAfterSecs = retryAfterSecs;
    this.reason = 'the orchestrator is stopping';
  }

  private onChallenge(message: OrchestratorMessage): void {
    if (message.type !== 'challenge') {
      this.end(`${message.type} received before the challenge`, 1008);
      return;
    }
    const { orchestratorKey } = this.options.dialled;
    if (message.public_key !== orchestratorKey.toString('hex')) {
      this.end('the challenge names a different key than the one proved by TLS', 1008);
      return;
    }
    this.phase = 'welcome';
    this.send(this.options.hello(Buffer.from(message.nonce, 'hex'), message.versions));
    return;
  }

  private onWelcome(message: OrchestratorMessage): void {
    if (message.type !== 'welcome') {
      this.end(`${message.type} received before the welcome`, 1008);
      return;
    }
    const { engine, clock, log } = this.options;
    this.phase = 'open';
    this.welcomedAt = clock.monotonic();
    engine.spool.acknowledge(message.acknowledged);
    engine.settle(message.settled_operations);
    this.sender = new ReportSender(
      engine.spool,
      message.acknowledged,
      (text) => this.ws.send(text),
      (seq, length) => log.error({ seq, length }, 'skipped a report that is too large for the link'),
    );
    const { sender } = this;
    this.version = message.version;
    if (message.version >= 2)
      this.outputSender = new OutputSender({
        output: engine.output,
        clock,
        write: (progress) => this.send(progress),
        reserve: (bytes) => sender.reserve(bytes),
        release: (bytes) => sender.release(bytes),
      });
    if (message.version >= 3) this.terminals = this.options.terminals?.attach(this.outlet()) ?? null;
    if (message.version >= 7) this.contents = new ContentReceiver(engine.contents, (request) => this.send(request));
    const { samples, random } = this.options;
    if (samples !== null && message.metrics_interval !== undefined)
      this.metricsSender = new MetricsSender({
        buffer: samples,
        clock,
        random,
        intervalMs: message.metrics_interval * 1000,
        write: (text) => this.ws.send(text),
        reserve: (bytes) => sender.reserve(bytes),
        release: (bytes) => sender.release(bytes),
      });
    this.metricsSender?.setEnabled(message.status === 'approved');
    this.options.welcomed(message);
    this.sender.pump();
    // Sends output from before the link, and requests the rest of incomplete content.
    this.outputSender?.printed();
    this.contents?.pump();
    return;
  }

  private onMessage(message: OrchestratorMessage): void {
    const { engine } = this.options;
    switch (message.type) {
      case 'operation':
        this.order(() => this.accept(message));
        break;
      case 'cancel':
        this.order(async () => engine.cancel(message.operation_id));
        break;
      case 'ack':
        this.sender!.acknowledged(message.seq);
        break;
      case 'credit':
        this.sender!.credited(message.seq, message.part);
        break;
      case 'output_taken':
        this.outputSender?.taken();
        break;
      case 'metrics_stored':
        this.metricsSender?.stored(message.collected_at);
        break;
      case 'metrics_refused':
        this.metricsSender?.refused(message.retry_after_secs * 1000);
        break;
      case 'status':
        this.metricsSender?.setEnabled(message.status === 'approved');
        this.options.statusChanged(message);
        break;
      case 'content_refused':
        if (this.contents?.refused(message) !== true) this.end('unexpected content_refused', 1008);
        break;
      case 'terminal_open':
      case 'terminal_resize':
      case 'terminal_close':
      case 'terminal_credit':
        if (this.terminals?.receive(message) !== true) this.end(`unexpected ${message.type}`, 1008);
        break;
      default:
        this.end(`${message.type} received after the welcome`, 1008);
    }
  }

  private outlet(): Outlet {
    return {
      send: (message) => {
        if (this.phase === 'open') this.send(message);
      },
      sendFrame: (frame) => {
        if (this.phase === 'open') this.ws.send(frame, () => this.terminals?.resume());
      },
      hasSpace: () => this.ws.bufferedAmount < terminalBacklogBytes,
    };
  }

  private order(execute: () => Promise<void>): void {
    // The orchestrator resends a skipped operation or cancellation after the next start.
    this.orders = this.orders
      .then(() => (this.phase === 'over' ? undefined : execute()))
      .catch((error: unknown) =>
        this.options.log.error({ error }, 'bug: failed to handle an operation or a cancellation'),
      );
  }

  private async accept(operation: OperationMessage): Promise<void> {
    const { engine, log } = this.options;
    const fields = { operation_id: operation.operation_id, kind: operation.kind };
    try {
      const outcome = await engine.accept(operation);
      if (outcome === 'full')
        log.warn(fields, 'refused an operation because too many operations are open; the orchestrator will resend it');
      else log.info({ ...fields, outcome }, 'operation received');
    } catch (error) {
      log.error({ ...fields, error }, 'failed to accept an operation; the orchestrator will resend it');
    }
  }
}

function decode(data: Buffer): OrchestratorMessage | null {
  try {
    const parsed = orchestratorMessageSchema.safeParse(JSON.parse(data.toString()));
    // Resource bodies are checked later, by their providers.
    return parsed.success ? (parsed.data as OrchestratorMessage) : null;
  } catch {
    return null;
  }
}
