import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { connect, type TLSSocket } from 'node:tls';
import { idOfKey } from '@muster/protocol';
import {
  decodeContentFrame,
  decodeTerminalFrame,
  encodeTerminalFrame,
  exporterLabel,
  exporterLength,
  type Hello,
  handshakeBytes,
  type OrchestratorMessage,
} from '@muster/protocol/wire';
import { WebSocket } from 'ws';
import { rawPublicKey } from '../src/identity/ed25519-key.ts';

type Of<T extends OrchestratorMessage['type']> = Extract<OrchestratorMessage, { type: T }>;

export interface AgentKey {
  privateKey: KeyObject;
  publicKey: Buffer;
  nodeId: string;
}

export async function newAgentKey(): Promise<AgentKey> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const publicKey = rawPublicKey(privateKey)!;
  return { privateKey, publicKey, nodeId: await idOfKey(publicKey) };
}

/** An agent's link. The test controls every message. */
export class TestAgent {
  readonly ws: WebSocket;
  readonly socket: TLSSocket;
  readonly key: AgentKey;
  readonly closed: Promise<{ code: number; reason: string }>;
  private readonly inbox: OrchestratorMessage[] = [];
  /** Input received on each channel. */
  readonly typed = new Map<number, Buffer>();
  longestPiece = 0;
  /** Content received, by request. */
  readonly contents = new Map<number, Buffer>();
  private readonly waiting = new Set<() => void>();
  private over = false;

  constructor(ws: WebSocket, socket: TLSSocket, key: AgentKey) {
    this.ws = ws;
    this.socket = socket;
    this.key = key;
    ws.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.type(data);
      else this.inbox.push(JSON.parse(data.toString()));
      for (const wake of this.waiting) wake();
    });
    ws.on('error', () => {});
    this.closed = new Promise((resolve) => {
      ws.on('close', (code, reason) => {
        this.over = true;
        for (const wake of this.waiting) wake();
        resolve({ code, reason: reason.toString() });
      });
    });
  }

  /** Resolves with the next message of this type. Other messages stay in the inbox. */
  async next<T extends OrchestratorMessage['type']>(type: T): Promise<Of<T>> {
    for (;;) {
      const index = this.inbox.findIndex((message) => message.type === type);
      if (index >= 0) return this.inbox.splice(index, 1)[0] as Of<T>;
      if (this.over) throw new Error(`the link ended before ${type}; there were ${JSON.stringify(this.inbox)}`);
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.waiting.delete(wake);
          resolve();
        };
        this.waiting.add(wake);
      });
    }
  }

  /** Returns the number of messages of this type in the inbox. */
  count(type: OrchestratorMessage['type']): number {
    return this.inbox.filter((message) => message.type === type).length;
  }

  private type(frame: Buffer): void {
    const content = decodeContentFrame(frame);
    if (content !== null) {
      const { request, bytes } = content;
      this.contents.set(request, Buffer.concat([this.contents.get(request) ?? Buffer.alloc(0), bytes]));
      return;
    }
    const terminal = decodeTerminalFrame(frame);
    if (terminal === null)
      throw new Error(`a frame that does not belong to any terminal: ${frame.toString('hex').slice(0, 64)}`);
    const { channel, bytes } = terminal;
    this.typed.set(channel, Buffer.concat([this.typed.get(channel) ?? Buffer.alloc(0), bytes]));
    this.longestPiece = Math.max(this.longestPiece, bytes.length);
  }

  /** Sends terminal output. */
  show(channel: number, bytes: Uint8Array): void {
    this.ws.send(encodeTerminalFrame(channel, bytes));
  }

  /** Resolves when the orchestrator has received everything sent so far. */
  async settled(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.ws.once('pong', () => resolve());
      this.ws.ping('settled');
    });
  }

  send(message: object): void {
    this.ws.send(JSON.stringify(message));
  }

  /** Builds a valid hello. The test may change it before or after signing. */
  async hello(changes: Partial<Hello> = {}, signedVersions = changes.versions ?? [1]): Promise<Hello> {
    const challenge = await this.next('challenge');
    const bytes = handshakeBytes({
      exporter: this.socket.exportKeyingMaterial(exporterLength, exporterLabel, Buffer.alloc(0)),
      nonce: Buffer.from(challenge.nonce, 'hex'),
      orchestratorKey: Buffer.from(challenge.public_key, 'hex'),
      agentKey: this.key.publicKey,
      versions: signedVersions,
    });
    return {
      type: 'hello',
      versions: signedVersions,
      agent_version: 'test',
      public_key: this.key.publicKey.toString('hex'),
      signature: sign(null, bytes, this.key.privateKey).toString('hex'),
      instance_id: randomBytes(16).toString('hex'),
      pin_source: 'pinned',
      hostname: 'host',
      token: null,
      attributes: { platform: 'linux' },
      open_operations: [],
      ...changes,
    };
  }

  /** Sends a valid hello. @returns the welcome */
  async join(changes: Partial<Hello> = {}): Promise<Of<'welcome'>> {
    this.send(await this.hello(changes));
    return this.next('welcome');
  }

  end(): void {
    this.ws.terminate();
  }
}

/** Connects without verifying the orchestrator's key. */
export async function dialAsAgent(
  port: number,
  key?: AgentKey,
  host = '127.0.0.1',
  localAddress?: string,
): Promise<TestAgent> {
  const agentKey = key ?? (await newAgentKey());
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ host, port, ...from, rejectUnauthorized: false, minVersion: 'TLSv1.3' });
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  const ws = new WebSocket('ws://muster/', { createConnection: () => socket, perMessageDeflate: false });
  const agent = new TestAgent(ws, socket, agentKey);
  await new Promise<void>((resolve, reject) => {
    ws.once('open', resolve);
    ws.once('error', reject);
  });
  return agent;
}
