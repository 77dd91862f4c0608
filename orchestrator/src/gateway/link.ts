import type { TLSSocket } from 'node:tls';
import {
  type AgentMessage,
  agentMessageSchema,
  closeReason,
  encodeContentFrame,
  encodeTerminalFrame,
  type Hello,
  type HelloProof,
  isPlainReport,
  messageType,
  type OrchestratorMessage,
  type Report,
  readHelloProof,
} from '@muster/protocol/wire';
import { WebSocket } from 'ws';
import type { Clock } from '../../../lib/src/clock.ts';
import { remoteIp } from '../client-network.ts';
import type { Standing } from '../domain/agent-link/agent-link.ts';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import type { GatewayLimits } from './limits.ts';
import type { LinkContents } from './link-contents.ts';
import type { LinkTerminals } from './link-terminals.ts';
import type { Assembly } from './reassembly.ts';
import { TokenBucket } from './token-bucket.ts';

/** Outcome of a probe: `silent` after its time limit, `ended` if the link closed first. */
export type ProbeOutcome = 'answered' | 'silent' | 'ended';

/** `greeting` accepts only a hello, `admitting` accepts nothing, `open` follows the welcome, `closing` ignores all input. */
export type LinkState = 'greeting' | 'admitting' | 'open' | 'closing';

/**
 * Receives events from all links. A single object for all links uses less memory than closures for thousands of links.
 */
export interface LinkOwner {
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  /** @param hello the complete message, of which only `proof` is validated */
  onHello(link: Link, proof: HelloProof, hello: unknown): void;
  /** Called for each message after the welcome. @param bytes length of the frame */
  onMessage(link: Link, message: Exclude<AgentMessage, Hello>, bytes: number): void;
  /** Called for each binary frame on a link with terminals. */
  onFrame(link: Link, frame: Buffer): void;
  onRefused(link: Link, refusal: Refusal): void;
  /** Called when the link stops sending and receiving messages. The socket may close later. */
  onClosing(link: Link): void;
  /** Called for an unexpected exception, which is a bug. The exception closes only this link. */
  onFault(link: Link, error: unknown): void;
  /** Called once, when the socket has closed. */
  onEnded(link: Link): void;
}

export interface ReceivedReport {
  seq: number;
  reports: readonly Report[];
  /** Bytes that count toward the agent's flow-control window. */
  bytes: number;
  /** The assembly whose budget must be released; null for a report in one message. */
  assembly: Assembly | null;
}

/** Flags for the work that the dispatcher must read for a link. */
export const workFlags = { work: 1, cancellations: 2, standing: 4 } as const;

/** The server's socket class. Shared listeners get the link from the `link` property. */
export class LinkSocket extends WebSocket {
  link: Link | null = null;
}

/** An agent's connection. Decodes frames, and enforces the protocol limits. */
export class Link {
  readonly remoteIp: string;
  readonly socket: TLSSocket;
  private readonly ws: LinkSocket;
  private readonly owner: LinkOwner;
  private readonly bucket: TokenBucket;
  state: LinkState = 'greeting';
  /** Why the link was closed, for the log. Only the first reason is kept. */
  endReason: string | null = null;
  /** The challenge nonce; null after the hello was checked. */
  nonce: Buffer | null = null;
  nodeId: string | null = null;
  /** Unix seconds at which a previous key expires; null for the agent's current key. */
  keyUntil: number | null = null;
  /** Negotiated protocol version. */
  version = 1;
  instanceId = '';
  /** Whether the agent announced an immediate reconnect with a new key. */
  returns = false;
  standing: Standing | null = null;
  /** How many seconds the agent's clock is ahead, from its last message with a time; null if it sends no time. */
  clockSkewSecs: number | null = null;
  /** The last logged skew. */
  loggedClockSkewSecs: number | null = null;
  /** Time of the last frame of any kind, in monotonic milliseconds. */
  lastFrameAt: number;
  unansweredPings = 0;
  /** The ping that probes the agent, its outcome, and callbacks for it; null if no probe is pending. */
  probe: { payload: string; outcome: Promise<ProbeOutcome>; answered: () => void; ended: () => void } | null = null;
  /** Slot in the ping wheel; -1 for none. */
  slot = -1;

  /** Bytes of received reports that are neither acknowledged nor credited. */
  unacknowledgedBytes = 0;
  reportBucket: TokenBucket | null = null;
  /** Time before which no report is acknowledged and no chunk is credited, in monotonic milliseconds. */
  reportsAnsweredFrom = 0;
  cancelCredit: (() => void) | null = null;
  receivedSeq = 0;
  acknowledgedSeq = 0;
  /** Whether reports were ignored because the agent was not approved. The agent resends them only on a new link. */
  ignoredReports = false;
  reportQueue: ReceivedReport[] | null = null;
  /** The pending report commit, which must finish before another link for the agent is admitted. */
  committing: Promise<void> | null = null;
  assembly: Assembly | null = null;
  /** Received attributes that have not been committed yet. */
  attributes: Record<string, string> | null = null;
  attributesAt = Number.NEGATIVE_INFINITY;
  attributesCommitting = false;
  /** Cancels the timer that commits the attributes. */
  cancelAttributes: (() => void) | null = null;
  /** Keys of the newest drift hint that has not been handled yet. */
  driftHint: readonly string[] | null = null;
  driftHinting = false;
  driftHints: TokenBucket | null = null;
  /** Whether samples are being stored. The agent must wait for the reply before it sends more. */
  sampling = false;
  /** Whether live output is being forwarded. The agent must wait for the reply before it sends more. */
  showing = false;
  outputBucket: TokenBucket | null = null;

  /** Id of the operation that was sent on this link and has not ended. */
  sentOperation: string | null = null;
  sentOperationAt = 0;
  sentOperationAccepted = false;
  /** Whether more operations may be queued. Checked when the current operation ends. */
  moreWork = false;
  /** Bytes of operations not yet written to the network. */
  operationBytes = 0;
  cancelled: string | null = null;
  terminals: LinkTerminals | null = null;
  /** Null until the agent requests contents. */
  contents: LinkContents | null = null;
  pendingWork = 0;
  dispatching = false;
  /** Number of buffered bytes at the last call to `isStuck`. */
  private bufferedBefore = 0;
  private takenBefore = 0;
  private isOver = false;

  constructor(ws: LinkSocket, socket: TLSSocket, owner: LinkOwner) {
    this.ws = ws;
    this.socket = socket;
    this.owner = owner;
    this.remoteIp = remoteIp(socket);
    this.lastFrameAt = owner.clock.monotonic();
    this.bucket = new TokenBucket(owner.limits.agentMessageBurst, this.lastFrameAt);
    ws.link = this;
    ws.on('message', onMessage);
    ws.on('ping', onPing);
    ws.on('pong', onPong);
    ws.on('error', onError);
    ws.on('close', onClose);
  }

  get bufferedBytes(): number {
    return this.ws.bufferedAmount;
  }

  /**
   * Reports whether no buffered bytes were written to the network since the last call. Compares two calls, because a
   * busy link always has buffered bytes.
   */
  isStuck(): boolean {
    const buffered = this.ws.bufferedAmount;
    const taken = this.socket.bytesWritten - buffered;
    const isStuck = buffered > 0 && this.bufferedBefore > 0 && taken === this.takenBefore;
    this.bufferedBefore = buffered;
    this.takenBefore = taken;
    return isStuck;
  }

  /**
   * Sends a small message. Closes the link if too many bytes are buffered.
   * @param done called once, when the message is written to the network or the link has closed
   */
  send(message: OrchestratorMessage, done?: () => void): void {
    if (this.state === 'closing') return;
    this.ws.send(JSON.stringify(message), done);
    // Operations, contents, and terminal input have separate limits.
    const windowed = this.operationBytes + (this.terminals?.unsentBytes ?? 0) + (this.contents?.unsentBytes ?? 0);
    if (this.ws.bufferedAmount - windowed > this.owner.limits.slowReaderBytes) this.cut('slow_reader');
  }

  /**
   * Sends terminal input, which the terminal's window limits.
   * @param done called once, when the bytes are written to the network or the link has closed
   */
  sendTyped(channel: number, bytes: Uint8Array, done: () => void): void {
    const { terminals } = this;
    if (this.state === 'closing' || terminals === null) return;
    const frame = encodeTerminalFrame(channel, bytes);
    terminals.unsentBytes += frame.length;
    this.ws.send(frame, () => {
      terminals.unsentBytes -= frame.length;
      done();
    });
  }

  /** Sends a part of a file's contents. Resolves when the network has accepted it, or the link has closed. */
  async sendContent(request: number, bytes: Uint8Array): Promise<void> {
    const { contents } = this;
    if (this.state === 'closing' || contents === null) return;
    const frame = encodeContentFrame(request, bytes);
    contents.unsentBytes += frame.length;
    await new Promise<void>((resolve) => this.ws.send(frame, () => resolve()));
    contents.unsentBytes -= frame.length;
  }

  /**
   * Sends an operation that is encoded as JSON.
   * @param done called once, when all bytes are written to the network or the link has closed
   */
  sendOperation(json: Buffer, done: () => void): void {
    this.ws.send(json, { binary: false }, done);
  }

  ping(payload?: string): void {
    this.ws.ping(payload);
  }

  pong(payload: Buffer): void {
    this.ws.pong(payload);
  }

  refuse(refusal: Refusal): void {
    if (this.state === 'closing') return;
    this.send({ type: 'refused', ...refusal });
    this.owner.onRefused(this, refusal);
    this.close(1008, refusal.code);
  }

  violation(message: string): void {
    this.refuse({ code: 'protocol_violation', message, retry_after_secs: null });
  }

  close(code: number, reason: string): void {
    this.leave(reason);
    this.ws.close(code, closeReason(reason));
  }

  private leave(reason: string): void {
    this.endReason ??= reason;
    if (this.state === 'closing') return;
    this.state = 'closing';
    this.owner.onClosing(this);
  }

  /** Closes this link after an unexpected error, without affecting other links. */
  fault(error: unknown): void {
    this.owner.onFault(this, error);
    this.cut('internal error');
  }

  /**
   * Closes the link immediately, and sends the reason. The socket stays open until the close frame is sent, because
   * destroying a socket with unread data would reset the connection and lose the reason.
   */
  cut(reason: string): void {
    this.close(1011, reason);
    setImmediate(() => onClose.call(this.ws, 1006, noBytes));
  }

  /** Closes the link and its socket, without waiting for the agent. */
  destroy(reason: string): void {
    this.close(1001, reason);
    this.ws.terminate();
  }

  /**
   * Counts a frame that is not a terminal frame. Closes the link if there are too many.
   * @returns false if the frame must be ignored
   */
  frameReceived(): boolean {
    if (this.state === 'closing') return false;
    const now = this.listen();
    const { agentMessagesPerSecond, agentMessageBurst } = this.owner.limits;
    if (this.bucket.take(now, agentMessagesPerSecond, agentMessageBurst)) return true;
    this.refuse({
      code: 'rate_exceeded',
      message: `more than ${agentMessagesPerSecond} messages per second`,
      retry_after_secs: null,
    });
    return false;
  }

  /** Records that the agent is alive. @returns the current time in monotonic milliseconds */
  private listen(): number {
    const now = this.owner.clock.monotonic();
    this.lastFrameAt = now;
    this.unansweredPings = 0;
    return now;
  }

  /** Removes the last received frame from the count, because another limit applies to it. */
  uncount(): void {
    this.bucket.giveBack();
  }

  receive(data: Buffer, isBinary: boolean): void {
    // The terminals' windows limit these frames, so the message rate does not apply.
    if (isBinary && this.state === 'open' && this.terminals !== null) {
      this.listen();
      this.owner.onFrame(this, data);
      return;
    }
    if (!this.frameReceived()) return;
    if (isBinary) {
      this.violation('unexpected binary frame');
      return;
    }
    if (this.state === 'greeting') {
      this.receiveHello(data);
      return;
    }
    if (this.state === 'admitting') {
      this.violation(`${messageType(parse(data))} received before the welcome`);
      return;
    }
    const message = decode(data);
    if (typeof message === 'string') {
      this.violation(message);
      return;
    }
    if (message.type === 'hello') {
      this.violation('the hello was sent twice');
      return;
    }
    this.owner.onMessage(this, message, data.length);
    return;
  }

  private receiveHello(data: Buffer): void {
    const json = parse(data);
    if (json === undefined) {
      this.violation(notJson);
      return;
    }
    const proof = readHelloProof(json);
    if (typeof proof === 'string') {
      this.violation(proof);
      return;
    }
    this.state = 'admitting';
    this.owner.onHello(this, proof, json);
  }

  failed(error: Error & { code?: string }): void {
    // `ws` has rejected a frame, for example because of its size, and closes the socket itself.
    if (error.code?.startsWith('WS_ERR_') && this.state !== 'closing') {
      const message =
        error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
          ? `a frame exceeds ${this.owner.limits.agentFrameBytes} bytes`
          : error.message;
      this.owner.onRefused(this, { code: 'protocol_violation', message, retry_after_secs: null });
      this.leave('protocol_violation');
    } else this.endReason ??= error.code ?? error.message;
  }

  /** @param code code of the agent's close frame, or `noCloseFrame` */
  ended(code: number, reason: Buffer): void {
    if (this.isOver) return;
    this.isOver = true;
    const said = reason.length > 0 ? `: ${reason.toString()}` : '';
    this.leave(code === noCloseFrame ? 'connection lost' : `the agent closed with code ${code}${said}`);
    this.probe?.ended();
    this.owner.onEnded(this);
  }
}

/** The code that `ws` reports for a connection that was closed without a close frame (RFC 6455, 7.4.1). */
const noCloseFrame = 1006;
const noBytes = Buffer.alloc(0);

const notJson = 'a frame is not JSON';

/** @returns undefined if the data is not JSON */
function parse(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString());
  } catch {
    return undefined;
  }
}

/** @returns the message, or a description of its first error */
function decode(data: Buffer): AgentMessage | string {
  const json = parse(data);
  if (json === undefined) return notJson;
  if (isPlainReport(json)) return json;
  const parsed = agentMessageSchema.safeParse(json);
  return parsed.success ? parsed.data : faultOf(parsed.error);
}

/** Describes the first error in a message, for the sender of the message. */
export function faultOf({ issues: [issue] }: { issues: { path: PropertyKey[]; message: string }[] }): string {
  const text = `a message does not match its schema: ${issue?.path.join('.') || 'message'}: ${issue?.message ?? 'invalid'}`;
  return text.slice(0, 300);
}

// All links share these listeners; `this` is the socket. An exception that escapes them would crash the process.
function onMessage(this: WebSocket, data: Buffer, isBinary: boolean): void {
  const link = linkOf(this);
  try {
    link.receive(data, isBinary);
  } catch (error) {
    link.fault(error);
  }
}
function onPing(this: WebSocket, data: Buffer): void {
  const link = linkOf(this);
  try {
    if (link.frameReceived()) link.pong(data);
  } catch (error) {
    link.fault(error);
  }
}
function onPong(this: WebSocket, data: Buffer): void {
  const link = linkOf(this);
  try {
    if (link.frameReceived() && link.probe?.payload === data.toString()) link.probe.answered();
  } catch (error) {
    link.fault(error);
  }
}
function onError(this: WebSocket, error: Error): void {
  const link = linkOf(this);
  try {
    link.failed(error);
  } catch (fault) {
    link.fault(fault);
  }
}
function onClose(this: WebSocket, code: number, reason: Buffer): void {
  const link = linkOf(this);
  try {
    link.ended(code, reason);
  } catch (error) {
    link.fault(error);
  }
}

function linkOf(ws: WebSocket): Link {
  return (ws as LinkSocket).link!;
}
