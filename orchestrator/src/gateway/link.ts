import type { TLSSocket } from 'node:tls';
import {
  type AgentMessage,
  agentMessageSchema,
  closeReason,
  encodeTerminalFrame,
  type Hello,
  type HelloProof,
  messageType,
  type OrchestratorMessage,
  type Report,
  readHelloProof,
} from '@muster/protocol/wire';
import { WebSocket } from 'ws';
import { remoteIp } from '../client-network.ts';
import type { Clock } from '../clock.ts';
import type { Standing } from '../domain/agent-link/agent-link.ts';
import type { Refusal } from '../domain/agent-link/refusal.ts';
import type { GatewayLimits } from './limits.ts';
import type { LinkTerminals } from './link-terminals.ts';
import type { Assembly } from './reassembly.ts';
import { TokenBucket } from './token-bucket.ts';

/** `greeting`: only a hello is taken. `admitting`: nothing is. `open`: after the welcome. `closing`: what comes is ignored. */
export type LinkState = 'greeting' | 'admitting' | 'open' | 'closing';

/** What a link hands on. One for all links: a link is held by the thousand and owns no closure. */
export interface LinkOwner {
  readonly clock: Clock;
  readonly limits: GatewayLimits;
  /** @param hello the whole message, of which nothing but the proof has been looked at */
  onHello(link: Link, proof: HelloProof, hello: unknown): void;
  /** A message after the welcome; `bytes` is the length of its frame. */
  onMessage(link: Link, message: Exclude<AgentMessage, Hello>, bytes: number): void;
  /** A binary frame, of a link with terminals. */
  onFrame(link: Link, frame: Buffer): void;
  /** This end refuses the other, and says so. */
  onRefused(link: Link, refusal: Refusal): void;
  /** Nothing is taken from it, or sent to it, any more, though its socket may last for a while yet. */
  onClosing(link: Link): void;
  /** Something that should not be able to throw did: our bug, and the end of this link only. */
  onFault(link: Link, error: unknown): void;
  /** The socket is gone; called once. */
  onEnded(link: Link): void;
}

export interface ReceivedReport {
  seq: number;
  reports: readonly Report[];
  /** What it still holds of the agent's window. */
  bytes: number;
  /** Gives back what its pieces reserved. */
  assembly: Assembly | null;
}

/** Wishes for a link that the dispatcher sees to. */
export const wish = { work: 1, cancellations: 2, standing: 4 } as const;

/** The server makes its sockets of this class, so that the shared listeners find the link. */
export class LinkSocket extends WebSocket {
  link: Link | null = null;
}

/** One agent's connection: frames in and out, its state, and the counters that hold the agent to the protocol. */
export class Link {
  readonly remoteIp: string;
  readonly socket: TLSSocket;
  private readonly ws: LinkSocket;
  private readonly owner: LinkOwner;
  private readonly bucket: TokenBucket;
  state: LinkState = 'greeting';
  /** Why it ended, for the log; the first reason given stays. */
  endReason: string | null = null;
  /** Until the hello is checked. */
  nonce: Buffer | null = null;
  nodeId: string | null = null;
  /** Until when the key that it proved is good, Unix seconds; null: it is the agent's current one. */
  keyUntil: number | null = null;
  /** Of the protocol, as it was agreed on. */
  version = 1;
  instanceId = '';
  /** Its agent said that it comes back at once, under a new key. */
  returns = false;
  standing: Standing | null = null;
  /** By how many seconds its agent's clock was ahead when it last told; null: it does not tell. */
  clockSkewSecs: number | null = null;
  /** What the log was told of that. */
  clockSkewTold: number | null = null;
  /** Monotonic milliseconds of the last frame of any kind. */
  heardAt: number;
  unansweredPings = 0;
  /** Payload of the probe that waits for its pong, and whom to tell. */
  probe: { payload: string; answered: () => void; ended: () => void } | null = null;
  /** Where the ping wheel holds it. */
  slot = -1;

  /** Bytes of reports received that are neither acknowledged nor credited. */
  unacknowledgedBytes = 0;
  /** From the first report on. */
  reportBucket: TokenBucket | null = null;
  /** Monotonic milliseconds before which no report is acknowledged and no piece credited. */
  reportsAnsweredFrom = 0;
  callOffCredit: (() => void) | null = null;
  receivedSeq = 0;
  acknowledgedSeq = 0;
  /** Reports came before its agent was approved, and were not taken: it must begin anew to send them. */
  ignoredReports = false;
  reportQueue: ReceivedReport[] | null = null;
  /** The commit under way, for whoever must wait until this link writes no more. */
  committing: Promise<void> | null = null;
  assembly: Assembly | null = null;
  /** Changed attributes that wait for their turn. */
  attributes: Record<string, string> | null = null;
  attributesAt = Number.NEGATIVE_INFINITY;
  attributesCommitting = false;
  /** They are committed when it is their turn. */
  callOffAttributes: (() => void) | null = null;
  /** Keys of a hint that waits for its turn. */
  driftHint: readonly string[] | null = null;
  driftHinting = false;
  /** From the first hint on. */
  driftHints: TokenBucket | null = null;
  /** Samples are being committed; the agent waits for the answer. */
  sampling = false;
  /** A piece of what a program prints is being taken; the agent waits for the answer. */
  showing = false;
  /** Made for the few that have something to show. */
  outputBucket: TokenBucket | null = null;

  /** The operation sent on this link that has not finished. */
  sentOperation: string | null = null;
  sentOperationAt = 0;
  sentOperationAccepted = false;
  /** Another operation waits, or may, behind the one that was sent: worth a look when that one has ended. */
  moreWork = false;
  /** Bytes of it that the network has not taken. */
  operationBytes = 0;
  cancelled: string | null = null;
  /** Made for the few that have one. */
  terminals: LinkTerminals | null = null;
  wishes = 0;
  dispatching = false;
  /** What `isStuck` saw when it was last called. */
  private bufferedBefore = 0;
  private takenBefore = 0;
  private isOver = false;

  constructor(ws: LinkSocket, socket: TLSSocket, owner: LinkOwner) {
    this.ws = ws;
    this.socket = socket;
    this.owner = owner;
    this.remoteIp = remoteIp(socket);
    this.heardAt = owner.clock.monotonic();
    this.bucket = new TokenBucket(owner.limits.agentMessageBurst, this.heardAt);
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
   * Whether the network has taken nothing since the last call, and something waited for it all the time. What waits at one
   * moment says nothing: on a busy link there is always an answer on its way.
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
   * Sends a small message; an agent that lets them pile up is cut off.
   * @param done called once, when the network has taken it or the link has ended
   */
  send(message: OrchestratorMessage, done?: () => void): void {
    if (this.state === 'closing') return;
    this.ws.send(JSON.stringify(message), done);
    // What has a window of its own is held by that.
    const windowed = this.operationBytes + (this.terminals?.unsentBytes ?? 0);
    if (this.ws.bufferedAmount - windowed > this.owner.limits.slowReaderBytes) this.cut('slow_reader');
  }

  /**
   * Sends what was typed into a terminal of this link, within the window of that.
   * @param done called once, when the network has taken it or the link has ended
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

  /**
   * Sends an operation as it is.
   * @param done called once, when the network has taken all of it or the link has ended
   */
  sendOperation(text: string, done: () => void): void {
    this.ws.send(text, done);
  }

  ping(payload?: string): void {
    this.ws.ping(payload);
  }

  pong(payload: Buffer): void {
    this.ws.pong(payload);
  }

  /** Says why, closes, and takes nothing more. */
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

  /** Ends this link over an error that nobody expected, so that it ends nothing else. */
  fault(error: unknown): void {
    this.owner.onFault(this, error);
    this.cut('internal error');
  }

  /**
   * Ends it here at once. The other end is told why, for which its socket lasts a little longer: one that is destroyed
   * while something from the other end is unread resets the connection, and the reason is lost.
   */
  cut(reason: string): void {
    this.close(1011, reason);
    setImmediate(() => onClose.call(this.ws, 1006, noBytes));
  }

  /** Ends it with its socket, when the orchestrator ends. */
  destroy(reason: string): void {
    this.close(1001, reason);
    this.ws.terminate();
  }

  /** Counts one frame of any kind but terminals'. @returns false when there are too many, and the link is refused */
  heard(): boolean {
    if (this.state === 'closing') return false;
    const now = this.listen();
    const { agentMessagesPerSecond, agentMessageBurst } = this.owner.limits;
    if (this.bucket.take(now, agentMessagesPerSecond, agentMessageBurst)) return true;
    this.refuse({
      code: 'rate_exceeded',
      message: `more than ${agentMessagesPerSecond} messages a second`,
      retry_after_secs: null,
    });
    return false;
  }

  /** Its agent is there. @returns now */
  private listen(): number {
    const now = this.owner.clock.monotonic();
    this.heardAt = now;
    this.unansweredPings = 0;
    return now;
  }

  /** Does not count the frame that was received last: something else bounds how many there are of its kind. */
  uncount(): void {
    this.bucket.giveBack();
  }

  receive(data: Buffer, isBinary: boolean): void {
    // Those of terminals are bounded by their windows.
    if (isBinary && this.state === 'open' && this.terminals !== null) {
      this.listen();
      this.owner.onFrame(this, data);
      return;
    }
    if (!this.heard()) return;
    if (isBinary) {
      this.violation('a binary frame, where none is expected');
      return;
    }
    if (this.state === 'greeting') {
      this.receiveHello(data);
      return;
    }
    if (this.state === 'admitting') {
      this.violation(`${messageType(parse(data))} before the welcome`);
      return;
    }
    const message = decode(data);
    if (typeof message === 'string') {
      this.violation(message);
      return;
    }
    if (message.type === 'hello') {
      this.violation('a second hello');
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
    // What `ws` finds wrong with a frame, an oversized one above all; it closes the socket itself.
    if (error.code?.startsWith('WS_ERR_') && this.state !== 'closing') {
      const message =
        error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
          ? `a frame of more than ${this.owner.limits.agentFrameBytes} bytes`
          : error.message;
      this.owner.onRefused(this, { code: 'protocol_violation', message, retry_after_secs: null });
      this.leave('protocol_violation');
    } else this.endReason ??= error.code ?? error.message;
  }

  /** @param code and reason of the other end's close frame */
  ended(code: number, reason: Buffer): void {
    if (this.isOver) return;
    this.isOver = true;
    const said = reason.length > 0 ? `: ${reason.toString()}` : '';
    this.leave(code === noCloseFrame ? 'connection lost' : `the agent closed with code ${code}${said}`);
    this.probe?.ended();
    this.owner.onEnded(this);
  }
}

/** What `ws` says where a connection ended without a close frame. */
const noCloseFrame = 1006;
const noBytes = Buffer.alloc(0);

const notJson = 'a frame that is not JSON';

/** @returns undefined for what is not JSON */
function parse(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString());
  } catch {
    return undefined;
  }
}

/** @returns the message, or what is wrong with it */
function decode(data: Buffer): AgentMessage | string {
  const json = parse(data);
  if (json === undefined) return notJson;
  const parsed = agentMessageSchema.safeParse(json);
  return parsed.success ? parsed.data : faultOf(parsed.error);
}

/** What is wrong with a message, in words for its sender: the first of its faults. */
export function faultOf({ issues: [issue] }: { issues: { path: PropertyKey[]; message: string }[] }): string {
  const text = `a message that does not fit its schema: ${issue?.path.join('.') || 'message'}: ${issue?.message ?? 'invalid'}`;
  return text.slice(0, 300);
}

// The listeners are shared by all links; `this` is the socket. What they throw would end the process, and with it the
// links of all others: so nothing leaves them.
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
    if (link.heard()) link.pong(data);
  } catch (error) {
    link.fault(error);
  }
}
function onPong(this: WebSocket, data: Buffer): void {
  const link = linkOf(this);
  try {
    if (link.heard() && link.probe?.payload === data.toString()) link.probe.answered();
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
