import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction, TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { exporterLabel, exporterLength, limits } from '@muster/protocol/wire';
import { WebSocket } from 'ws';
import type { Clock } from '../host/clock.ts';
import { rawEd25519Key } from './agent-key.ts';

/**
 * The kernel asks for a connection at 0, 1, 3 and 7 s, and then 15: a host that drops what it is sent while it starts is
 * sooner reached by the next attempt.
 */
const connectTimeoutMs = 8_000;
/** Where a name has several addresses, each but the last has so long: the first may be one that nobody answers at. */
const addressTimeoutMs = 1_000;
/** The orchestrator may let a dialled agent wait for its turn before it answers. */
const tlsTimeoutMs = 45_000;
const upgradeTimeoutMs = 15_000;
/** TLS 1.3 makes no difference between an empty context and none. */
const noContext = Buffer.alloc(0);

/** The other end is not the orchestrator that this agent belongs to. */
export class WrongOrchestratorError extends Error {
  readonly shownKey: string;
  constructor(shownKey: string, pinnedKey: string) {
    super(`the other end shows key ${shownKey}, but ${pinnedKey} is pinned`);
    this.name = 'WrongOrchestratorError';
    this.shownKey = shownKey;
  }
}

export interface Dialled {
  /** Open and paused. */
  ws: WebSocket;
  /** What only the two ends of this TLS connection know. */
  exporter: Buffer;
  /** 32 bytes, as proven in the TLS handshake. */
  orchestratorKey: Buffer;
}

/**
 * Opens a WebSocket to the orchestrator over TLS 1.3 and checks its key, before a byte is sent inside.
 * @param target `pin`: hex of the key it must show, null to take the one it shows; `turn`: with which of the addresses of
 *   its name to begin, counted from 0 and round again
 * @param signal ends the attempt
 * @throws WrongOrchestratorError for another key than the pinned one; Error for all that keeps a link from coming up
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
        done(error, Array.isArray(found) ? inTurn(found, turn) : found, family),
      ),
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    minVersion: 'TLSv1.3',
    // Names, dates and issuers mean nothing here: the key is checked below, and that its owner has it is part of TLS.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    sigalgs: 'ed25519',
    servername: '',
  };
  const socket = connect(options);
  const abort = () => socket.destroy(new Error('called off'));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, limits.pingIntervalMs);
  let callOffConnect = () => {};
  socket.on('connectionAttempt', (address) => {
    callOffConnect();
    callOffConnect = clock.after(connectTimeoutMs, () =>
      socket.destroy(new Error(`no answer from ${address} port ${port} within ${connectTimeoutMs / 1000} s`)),
    );
  });
  socket.once('connect', () => callOffConnect());
  try {
    await within(tlsTimeoutMs, clock, 'TLS', socket, (done, failed) => {
      socket.once('secureConnect', done);
      socket.once('error', (error) => failed(tlsFault(error)));
      socket.once('close', () => failed(new Error('the other end closed the connection')));
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
        // The first message may be there before whoever waits for this: resumed by who listens.
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
    callOffConnect();
    signal.removeEventListener('abort', abort);
  }
}

/** @returns the same items, beginning with another */
export function inTurn<T>(items: readonly T[], turn: number): T[] {
  const first = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

const wrongPort = 'is that the port of the API? Agents use another, 4747 unless the orchestrator was told otherwise';

/** The API's certificate is of a kind that agents do not offer to take, and a web server may speak no TLS at all. */
function tlsFault(error: Error): Error {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isTls = code.startsWith('ERR_SSL_') || /\bssl\b/i.test(message);
  return isTls ? new Error(`TLS with the other end failed (${code || message}); ${wrongPort}`) : error;
}

/**
 * The orchestrator's key, whose possession this handshake has proved.
 * @returns 32 bytes
 * @throws Error when it proved none, or one of another kind
 */
export function provenKey(socket: TLSSocket): Buffer {
  // A resumed session shows no certificate; none is ever passed in, so this cannot be.
  if (socket.isSessionReused()) throw new Error('TLS resumed a session, which proves no key');
  const key = socket.getPeerX509Certificate()?.publicKey;
  const raw = key ? rawEd25519Key(key) : null;
  if (raw === null) throw new Error(`the other end has no Ed25519 key; ${wrongPort}`);
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
    const callOff = clock.after(ms, () => {
      const error = new Error(`${what} did not come up within ${ms / 1000} s`);
      reject(error);
      socket.destroy(error);
    });
    begin(
      () => {
        callOff();
        resolve();
      },
      (error) => {
        callOff();
        reject(error);
      },
    );
  });
}
