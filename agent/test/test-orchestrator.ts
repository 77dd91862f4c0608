import 'reflect-metadata';
import { createPrivateKey, generateKeyPairSync, verify, webcrypto } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import {
  type AgentMessage,
  agentMessageSchema,
  exporterLabel,
  exporterLength,
  type Hello,
  handshakeBytes,
  type OrchestratorMessage,
} from '@muster/protocol/wire';
import * as x509 from '@peculiar/x509';
import { type WebSocket, WebSocketServer } from 'ws';

type Of<T extends AgentMessage['type']> = Extract<AgentMessage, { type: T }>;
type KeyKind = 'ed25519' | 'ec';

/** The orchestrator's side of one agent's link. The test sends and receives every message. */
export class ServedLink {
  readonly ws: WebSocket;
  readonly socket: TLSSocket;
  readonly nonce = Buffer.alloc(32, 7);
  readonly closed: Promise<number>;
  /** Received binary frames. */
  readonly frames: Buffer[] = [];
  private readonly inbox: { message: AgentMessage; bytes: number }[] = [];
  private readonly waiting = new Set<() => void>();
  private over = false;

  constructor(ws: WebSocket, socket: TLSSocket) {
    this.ws = ws;
    this.socket = socket;
    ws.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.frames.push(data);
      else this.inbox.push({ message: agentMessageSchema.parse(JSON.parse(data.toString())), bytes: data.length });
      for (const wake of this.waiting) wake();
    });
    ws.on('error', () => {});
    this.closed = new Promise((resolve) => {
      ws.on('close', (code) => {
        this.over = true;
        for (const wake of this.waiting) wake();
        resolve(code);
      });
    });
  }

  /**
   * Waits for the next message of any type.
   * @returns the message and the length of its frame
   */
  async any(): Promise<{ message: AgentMessage; bytes: number }> {
    await this.until(() => this.inbox.length > 0);
    return this.inbox.shift()!;
  }

  /**
   * Waits for the next message.
   * @throws Error if it has a different type
   */
  async next<T extends AgentMessage['type']>(type: T): Promise<Of<T>> {
    const { message } = await this.any();
    if (message.type !== type) throw new Error(`${message.type} instead of ${type}`);
    return message as Of<T>;
  }

  /** Waits until a condition on the received messages is true. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.over) throw new Error('the link ended');
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.waiting.delete(wake);
          resolve();
        };
        this.waiting.add(wake);
      });
    }
  }

  /** Number of received messages that the test has not read yet. */
  get unread(): number {
    return this.inbox.length;
  }

  /** Resolves when the agent has processed everything sent so far. */
  async untilSettled(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.ws.once('pong', () => resolve());
      this.ws.ping();
    });
  }

  send(message: OrchestratorMessage): void {
    this.ws.send(JSON.stringify(message));
  }

  challenge(publicKey: Buffer, versions = [2, 1]): void {
    this.send({
      type: 'challenge',
      nonce: this.nonce.toString('hex'),
      public_key: publicKey.toString('hex'),
      versions,
    });
  }

  welcome(
    acknowledged = 0,
    settled: string[] = [],
    version = 2,
    more: { node_id?: string; addresses?: string[] } = {},
  ): void {
    this.send({
      type: 'welcome',
      version,
      status: 'approved',
      name: 'web',
      tags: {},
      acknowledged,
      settled_operations: settled,
      ...more,
    });
  }

  /** Reports whether the hello proves possession of its key on this connection. */
  proves(hello: Hello, orchestratorKey: Buffer): boolean {
    const agentKey = Buffer.from(hello.public_key, 'hex');
    const exporter = this.socket.exportKeyingMaterial(exporterLength, exporterLabel, Buffer.alloc(0));
    const bytes = handshakeBytes({ exporter, nonce: this.nonce, orchestratorKey, agentKey, versions: hello.versions });
    const key = { key: { kty: 'OKP', crv: 'Ed25519', x: agentKey.toString('base64url') }, format: 'jwk' as const };
    return verify(null, bytes, key, Buffer.from(hello.signature, 'hex'));
  }
}

/** The orchestrator's side of links over real TLS, controlled by the test. */
export class TestOrchestrator {
  readonly publicKey: Buffer;
  /** The orchestrator's private key, in PEM. */
  readonly privateKey: string;
  port = 0;
  private readonly server: Server;
  private readonly links: ServedLink[] = [];
  private waiting: ((link: ServedLink) => void)[] = [];
  private readonly sockets = new Set<TLSSocket>();

  private constructor(server: Server, publicKey: Buffer, privateKey: string) {
    this.server = server;
    this.privateKey = privateKey;
    this.publicKey = publicKey;
    server.on('secureConnection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => {});
    });
    server.on('tlsClientError', () => {});
    const sockets = new WebSocketServer({ server, perMessageDeflate: false });
    sockets.on('connection', (ws, request) => {
      const link = new ServedLink(ws, request.socket as TLSSocket);
      const waiting = this.waiting.shift();
      if (waiting) waiting(link);
      else this.links.push(link);
    });
  }

  static async start(kind: KeyKind = 'ed25519', port = 0, host = '127.0.0.1'): Promise<TestOrchestrator> {
    const pem = (
      kind === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    ).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    const algorithm =
      kind === 'ed25519' ? { name: 'Ed25519' } : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const pkcs8 = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
    const privateKey = await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, true, ['sign']);
    const { d: _, key_ops: __, ...jwk } = await webcrypto.subtle.exportKey('jwk', privateKey);
    const publicKey = await webcrypto.subtle.importKey('jwk', jwk, algorithm, true, ['verify']);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: [{ CN: ['test'] }],
      // The certificate has expired, but agents ignore its dates.
      notBefore: new Date('2001-01-01'),
      notAfter: new Date('2002-01-01'),
      signingAlgorithm: algorithm,
      keys: { privateKey, publicKey },
    });
    const server = createServer({ key: pem, cert: certificate.toString('pem') });
    const orchestrator = new TestOrchestrator(server, Buffer.from(jwk.x!, 'base64url'), pem);
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
    orchestrator.port = (server.address() as AddressInfo).port;
    return orchestrator;
  }

  /** Waits for the next link that an agent opens. */
  nextLink(): Promise<ServedLink> {
    const link = this.links.shift();
    if (link) return Promise.resolve(link);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Accepts the next link, receives its hello, and replies with a welcome. */
  async welcomed(acknowledged = 0, version = 2): Promise<{ link: ServedLink; hello: Hello }> {
    const link = await this.nextLink();
    link.challenge(this.publicKey);
    const hello = await link.next('hello');
    link.welcome(acknowledged, [], version);
    return { link, hello };
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
