import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction, TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { exporterLabel, exporterLength, limits } from '@muster/protocol/wire';
import { WebSocket } from 'ws';
import type { Clock } from '../../../lib/src/clock.ts';
import { rawEd25519Key } from './agent-key.ts';

/**
 * TCP connection timeout, in milliseconds. The kernel sends SYNs after 0, 1, 3, 7, and 15 s. If the host drops packets
 * while it is starting, a new attempt reaches it sooner than the SYN after 15 s.
 */
const connectTimeoutMs = 8_000;
/**
 * Timeout in milliseconds for each address of a host name except the last. Short, because an address that does not
 * respond delays the others.
 */
const addressTimeoutMs = 1_000;
/** TLS handshake timeout, in milliseconds. A busy orchestrator may queue an agent before it responds. */
const tlsTimeoutMs = 45_000;
const upgradeTimeoutMs = 15_000;
/** TLS 1.3 does not distinguish an empty context from none. */
const noContext = Buffer.alloc(0);

/** The peer is not the orchestrator that this agent belongs to. */
export class WrongOrchestratorError extends Error {
  readonly shownKey: string;
  constructor(shownKey: string, pinnedKey: string) {
    super(`the peer presented key ${shownKey}, but ${pinnedKey} is pinned`);
    this.name = 'WrongOrchestratorError';
    this.shownKey = shownKey;
  }
}

export interface Dialled {
  /** A WebSocket that is open and paused. */
  ws: WebSocket;
  /** Secret that only the two peers of this TLS connection can derive. */
  exporter: Buffer;
  /** The raw 32-byte key. The TLS handshake proved that the peer has it. */
  orchestratorKey: Buffer;
}

/**
 * Opens a WebSocket to the orchestrator over TLS 1.3, and checks the orchestrator's key before sending any data.
 * @param target `pin`: hex of the expected key, or null to accept any; `turn`: index of the first address to try,
 * modulo their number
 * @param signal aborts the attempt
 * @throws WrongOrchestratorError for a key that differs from the pinned one; Error for any other failure
 */
export async function dial(
  target: { host: string; port: number; pin: string | null; turn?: number },
  clock: Clock,
  signal: AbortSignal,
  lookup: LookupFunction = systemLookup as LookupFunction,
): Promise<Dialled> {
  const { host, port, turn = 0 } = target;
  const options: ConnectionOptions & Partial<TcpNetConnectOpts> = {
    host,
    port,
    lookup: (name, options, done) =>
      lookup(name, options, (error, found, family) =>
        done(error, Array.isArray(found) ? rotated(found, turn) : found, family),
      ),
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    minVersion: 'TLSv1.3',
    // Does not check names, dates, and issuers, because the code below checks the key, and the handshake proves its
    // possession.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    sigalgs: 'ed25519',
    servername: '',
  };
  const socket = connect(options);
  const abort = () => socket.destroy(new Error('cancelled'));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, limits.pingIntervalMs);
  let cancelConnectTimeout = () => {};
  socket.on('connectionAttempt', (address) => {
    cancelConnectTimeout();
    cancelConnectTimeout = clock.after(connectTimeoutMs, () =>
      socket.destroy(new Error(`no answer from ${address} port ${port} within ${connectTimeoutMs / 1000} s`)),
    );
  });
  socket.once('connect', () => cancelConnectTimeout());
  try {
    await within(tlsTimeoutMs, clock, 'TLS', socket, (done, failed) => {
      socket.once('secureConnect', done);
      socket.once('error', (error) => failed(tlsFault(error)));
      socket.once('close', () => failed(new Error('the peer closed the connection')));
    });
    const orchestratorKey = provenKey(socket);
    const shown = orchestratorKey.toString('hex');
    if (target.pin !== null && shown !== target.pin) throw new WrongOrchestratorError(shown, target.pin);
    const exporter = socket.exportKeyingMaterial(exporterLength, exporterLabel, noContext);
    const ws = new WebSocket('ws://muster/agent', {
      createConnection: () => socket,
      perMessageDeflate: false,
      maxPayload: limits.orchestratorFrameBytes,
    });
    await within(upgradeTimeoutMs, clock, 'the WebSocket', socket, (done, failed) => {
      ws.once('open', () => {
        // Paused, because the first message may arrive before the caller listens. The caller resumes the socket.
        ws.pause();
        done();
      });
      ws.once('error', failed);
    });
    return { ws, exporter, orchestratorKey };
  } catch (error) {
    socket.on('error', () => {});
    socket.destroy();
    throw error;
  } finally {
    cancelConnectTimeout();
    signal.removeEventListener('abort', abort);
  }
}

/** Returns the items in order, starting with index `turn` modulo their number. */
export function rotated<T>(items: readonly T[], turn: number): T[] {
  const first = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

const wrongPort = 'is this the API port? Agents use another port, by default 4747';

/**
 * Explains a TLS failure. The port may be wrong: agents do not offer the signature algorithm of the API's certificate,
 * and a web server may not use TLS at all.
 */
function tlsFault(error: Error): Error {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isTls = code.startsWith('ERR_SSL_') || /\bssl\b/i.test(message);
  return isTls ? new Error(`TLS with the peer failed (${code || message}); ${wrongPort}`) : error;
}

/**
 * Returns the 32-byte orchestrator key whose possession this handshake proved.
 * @throws Error if the handshake proved no key, or a key of a different type
 */
export function provenKey(socket: TLSSocket): Buffer {
  // A resumed session has no certificate. This cannot happen, because session data is never passed in.
  if (socket.isSessionReused()) throw new Error('TLS resumed a session, which does not prove possession of a key');
  const key = socket.getPeerX509Certificate()?.publicKey;
  const raw = key ? rawEd25519Key(key) : null;
  if (raw === null) throw new Error(`the peer has no Ed25519 key; ${wrongPort}`);
  return raw;
}

function within(
  ms: number,
  clock: Clock,
  what: string,
  socket: TLSSocket,
  begin: (done: () => void, failed: (error: Error) => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelTimeout = clock.after(ms, () => {
      const error = new Error(`${what} was not established within ${ms / 1000} s`);
      reject(error);
      socket.destroy(error);
    });
    begin(
      () => {
        cancelTimeout();
        resolve();
      },
      (error) => {
        cancelTimeout();
        reject(error);
      },
    );
  });
}
