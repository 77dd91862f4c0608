// The baseline for the benches with agents: a `ws` server over TLS 1.3 that only verifies one signature per connection
// and acknowledges reports, without schemas or storage.
import { randomBytes, constants as tlsConstants, verify } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { exporterLabel, exporterLength, handshakeBytes, limits } from '@muster/protocol/wire';
import { type WebSocket, WebSocketServer } from 'ws';
import { publicKeyFromRaw } from '../../../orchestrator/src/identity/ed25519-key.ts';
import { loadIdentity } from '../../../orchestrator/src/identity/identity.ts';
import { scratchDirectory } from '../run/scratch.ts';
import { answerParent } from './server-process.ts';

const identity = await loadIdentity(scratchDirectory('bare'));
const server = createServer({
  key: identity.privateKeyPem,
  cert: identity.certificatePem,
  minVersion: 'TLSv1.3',
  secureOptions: tlsConstants.SSL_OP_NO_TICKET,
});
const sockets = new WebSocketServer({
  server,
  perMessageDeflate: false,
  maxPayload: limits.agentFrameBytes,
});
const orchestratorKey = identity.publicKey;

function onMessage(this: WebSocket, data: Buffer): void {
  const message = JSON.parse(data.toString());
  if (message.type === 'report' && data.includes('"finished"')) answered();
  if (message.type === 'report') return void this.send(JSON.stringify({ type: 'ack', seq: message.seq }));
  if (message.type !== 'hello') return;
  const nonce = nonces.get(this)!;
  const socket = (this as unknown as { _socket: TLSSocket })._socket;
  nonces.delete(this);
  const agentKey = Buffer.from(message.public_key, 'hex');
  const exporter = socket.exportKeyingMaterial(exporterLength, exporterLabel, Buffer.alloc(0));
  const bytes = handshakeBytes({ exporter, nonce, orchestratorKey, agentKey, versions: message.versions });
  if (!verify(null, bytes, publicKeyFromRaw(agentKey), Buffer.from(message.signature, 'hex'))) {
    this.terminate();
    return;
  }
  this.send(welcome);
}

let missing = 0;
let allAnswered = () => {};
function answered(): void {
  if (--missing === 0) allAnswered();
}

function fanOut(text: string): Promise<void> {
  return new Promise((resolve) => {
    missing = sockets.clients.size;
    allAnswered = resolve;
    for (const socket of sockets.clients) socket.send(text);
  });
}

const nonces = new Map<WebSocket, Buffer>();
const welcome = JSON.stringify({
  type: 'welcome',
  version: 1,
  status: 'approved',
  name: null,
  tags: {},
  acknowledged: 0,
  settled_operations: [],
});

sockets.on('connection', (ws) => {
  const nonce = randomBytes(32);
  nonces.set(ws, nonce);
  ws.on('message', onMessage);
  ws.send(
    JSON.stringify({
      type: 'challenge',
      nonce: nonce.toString('hex'),
      public_key: orchestratorKey.toString('hex'),
      versions: [1],
    }),
  );
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 1024 }, () =>
  answerParent(
    { port: (server.address() as AddressInfo).port, orchestratorKey: orchestratorKey.toString('hex') },
    fanOut,
  ),
);
