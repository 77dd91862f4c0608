import { hash, type X509Certificate } from 'node:crypto';
import { Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent, request as secureRequest } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ConnectionOptions, connect, getCACertificates, type TLSSocket } from 'node:tls';
import { addressText } from '@muster/protocol/agent-address';
import type { Transport } from '@muster/protocol/client';
import { serverOfKey, serverOfOrigin } from '@muster/protocol/sign-in';
import { CliError, exits } from '../exit.ts';
import {
  type Fingerprint,
  fingerprintSource,
  isCertificateFault,
  isUnknownIssuer,
  showFingerprint,
  type TrustPolicy,
} from './trust.ts';

/** An unknown certificate, as shown to the operator. */
export interface UnknownCertificate {
  origin: string;
  fingerprint: Fingerprint;
  subject: string;
  /** OpenSSL error code that indicates why the certificate was not accepted. */
  reason: string;
}

export interface TransportOptions {
  policy: TrustPolicy;
  /**
   * Asks the operator about a certificate. Used only with the policy `authorities`. Returns once the certificate is
   * stored as trusted; throws to refuse it. The request then fails with `TrustDecided`, because it may contain a token
   * for another server.
   */
  firstUse: (certificate: UnknownCertificate) => Promise<void>;
  /** Time limit for TCP and TLS together, in milliseconds. */
  connectTimeout?: number;
}

/** Idle limit for a response, in milliseconds. Longer than the 300 s that the orchestrator may take for a request. */
const answerTimeout = 330_000;

/**
 * The operator trusted a certificate, and nothing was sent. The caller must repeat the request with a new transport
 * that pins the certificate.
 */
export class TrustDecided extends CliError {
  readonly fingerprint: Fingerprint;

  constructor(origin: string, fingerprint: Fingerprint) {
    super(
      exits.unreachable,
      'certificate_trusted',
      `the certificate of ${origin} is now trusted; nothing was sent yet`,
      'Run the command again.',
    );
    this.fingerprint = fingerprint;
  }
}

const largestAnswer = 256 * 1024 * 1024;

/** Returns an HTTP agent for one WebSocket to this address, on a new connection. */
export type AgentFor = (url: URL) => PlainAgent;

/**
 * Opens a transport that keeps connections alive. Checks the certificate before sending any data, because a token must
 * not reach another server.
 * @returns the transport; HTTP agents for WebSockets with the same trust; a function that closes the connections; and
 * the names of a server for sign-ins, preferred names first, known after the first response
 */
export function openTransport(options: TransportOptions): {
  transport: Transport;
  agentFor: AgentFor;
  close(): void;
  serversOf(url: URL): string[];
} {
  const secure = new PinnedAgent(options);
  const plain = new PlainAgent({ keepAlive: true });
  const agentFor: AgentFor = ({ protocol }) =>
    protocol === 'https:'
      ? new OnceAgent((connectOptions, callback) => secure.createConnection(connectOptions, callback))
      : new PlainAgent();
  const transport: Transport = ({ method, url, headers, body, archive, signal, stream }) =>
    new Promise((resolve, reject) => {
      const target = new URL(url);
      const fail = (error: Error) => reject(error instanceof CliError ? error : unreachable(target, error));
      const https = target.protocol === 'https:';
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
      const request = (https ? secureRequest : plainRequest)(
        target,
        {
          method,
          // Identifies the program in the list of sign-in sessions.
          headers: { ...headers, ...length, 'user-agent': 'muster' },
          agent: https ? secure : plain,
          timeout: answerTimeout,
          ...(signal ? { signal } : {}),
        },
        (answer) => {
          const status = answer.statusCode ?? 0;
          const header = (name: string) => {
            const value = answer.headers[name.toLowerCase()];
            return (Array.isArray(value) ? value[0] : value) ?? null;
          };
          if (stream && status >= 200 && status < 300) {
            resolve({
              status,
              header,
              body: answer,
              text: async () => Buffer.concat(await answer.toArray()).toString(),
            });
            return;
          }
          const pieces: Buffer[] = [];
          let size = 0;
          answer.on('data', (piece: Buffer) => {
            size += piece.length;
            if (size > largestAnswer) request.destroy(new Error('the answer is too long'));
            else pieces.push(piece);
          });
          answer.on('error', fail);
          answer.on('end', () => {
            const text = Buffer.concat(pieces).toString('utf8');
            resolve({ status, header, text: async () => text });
            // The orchestrator may refuse an archive before it has received all of it.
            if (archive !== undefined && !request.writableFinished) request.destroy();
          });
        },
      );
      request.on('timeout', () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
      request.on('error', fail);
      if (archive === undefined) request.end(body);
      else pipeline(Readable.from(archive()), request).catch(fail);
    });
  return {
    transport,
    agentFor,
    serversOf: (url) => (url.protocol === 'https:' ? secure.servers(url.origin) : [serverOfOrigin(url.origin)]),
    close: () => {
      secure.destroy();
      plain.destroy();
    },
  };
}

type Connect = PinnedAgent['createConnection'];

/** An HTTP agent for one connection, without keep-alive. */
class OnceAgent extends Agent {
  readonly #connect: Connect;

  constructor(connect: Connect) {
    super({ keepAlive: false, maxCachedSessions: 0 });
    this.#connect = connect;
  }

  override createConnection(...[options, callback]: Parameters<Connect>): ReturnType<Connect> {
    return this.#connect(options, callback);
  }
}

/** An HTTPS agent that checks the certificate before it passes a socket to HTTP. */
class PinnedAgent extends Agent {
  readonly #options: TransportOptions;
  readonly #policy: TrustPolicy;
  /** Certificate from the last handshake; null before the first handshake. */
  #certificate: X509Certificate | null = null;

  constructor(options: TransportOptions) {
    // Does not resume TLS sessions, because a resumed session does not show the certificate.
    super({ keepAlive: true, maxCachedSessions: 0 });
    this.#options = options;
    this.#policy = options.policy;
  }

  /**
   * Returns the verified names of the server. A signature over them is useless for any other server. Includes the
   * origin only if a CA signed the certificate, because an attacker on the path has the same origin, and the operator
   * may have trusted the attacker's certificate.
   */
  servers(origin: string): string[] {
    const byKey = this.#certificate === null ? [] : [serverOfKey(keyOf(this.#certificate))];
    return this.#policy.kind === 'authorities' ? [serverOfOrigin(origin), ...byKey] : byKey;
  }

  override createConnection(
    options: { host?: string | null; port?: number | string | null },
    callback?: (error: Error | null, socket: Duplex) => void,
  ): Duplex | null | undefined {
    const host = options.host ?? 'localhost';
    const port = Number(options.port ?? 443);
    this.#judged(host, port).then(
      (socket) => callback?.(null, socket),
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
    return undefined;
  }

  async #judged(host: string, port: number): Promise<TLSSocket> {
    const origin = new URL(`https://${addressText({ host, port })}`).origin;
    if (this.#policy.kind === 'authorities') {
      try {
        const vouched = await this.#vouched(host, port);
        return this.#sameKey(origin, vouched, certificateOf(vouched));
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? '';
        if (!isCertificateFault(code)) throw error;
        const seen = await this.#handshake(host, port, { rejectUnauthorized: false });
        const certificate = certificateOf(seen);
        seen.destroy();
        const { fingerprint, subject } = describe(certificate);
        await this.#options.firstUse({ origin, fingerprint, subject, reason: code });
        throw new TrustDecided(origin, fingerprint);
      }
    }
    const socket = await this.#handshake(host, port, { rejectUnauthorized: false });
    const certificate = certificateOf(socket);
    if (this.#policy.kind === 'pinned') {
      const { fingerprint } = describe(certificate);
      if (fingerprint !== this.#policy.fingerprint) {
        socket.destroy();
        throw changed(origin, this.#policy, fingerprint);
      }
    }
    return this.#sameKey(origin, socket, certificate);
  }

  /**
   * Refuses an unverified connection whose server key differs from that of earlier ones, because a signature bound to
   * this key must not reach another server.
   * @throws CliError
   */
  #sameKey(origin: string, socket: TLSSocket, certificate: X509Certificate): TLSSocket {
    const known = this.#certificate;
    if (this.#policy.kind === 'anything' && known !== null && keyOf(certificate) !== keyOf(known)) {
      socket.destroy();
      throw new CliError(
        exits.unreachable,
        'certificate_changed',
        `${origin} presented a different key than before`,
        'Someone may be intercepting the connection. Use --fingerprint instead of --insecure-skip-verify.',
      );
    }
    this.#certificate = certificate;
    return socket;
  }

  /** Connects to a server whose certificate is signed by one of Node.js's built-in CAs or one of the machine's CAs. */
  async #vouched(host: string, port: number): Promise<TLSSocket> {
    try {
      return await this.#handshake(host, port, { rejectUnauthorized: true });
    } catch (error) {
      if (!isUnknownIssuer((error as NodeJS.ErrnoException).code ?? '')) throw error;
      // Tried second, because reading the machine's store takes tens of milliseconds.
      const ca = [...getCACertificates('default'), ...getCACertificates('system')];
      return await this.#handshake(host, port, { rejectUnauthorized: true, ca });
    }
  }

  #handshake(host: string, port: number, trust: ConnectionOptions): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
      const socket = connect({ host, port, ...name, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'], ...trust });
      const timer = setTimeout(
        () => socket.destroy(Object.assign(new Error('no connection within the time limit'), { code: 'ETIMEDOUT' })),
        this.#options.connectTimeout ?? 10_000,
      );
      socket.once('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      socket.once('close', () => {
        clearTimeout(timer);
        reject(Object.assign(new Error('closed during the handshake'), { code: 'ECONNRESET' }));
      });
      socket.once('secureConnect', () => {
        clearTimeout(timer);
        socket.removeAllListeners('error');
        socket.removeAllListeners('close');
        // Keeps the connection alive during long responses.
        socket.setKeepAlive(true, 15_000);
        resolve(socket);
      });
    });
  }
}

function certificateOf(socket: TLSSocket): X509Certificate {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) {
    socket.destroy();
    throw new CliError(exits.unreachable, 'certificate_missing', 'the server presented no certificate');
  }
  return certificate;
}

/** Returns the SHA-256 of the server's public key. */
const keyOf = ({ publicKey }: X509Certificate): string =>
  hash('sha256', publicKey.export({ format: 'der', type: 'spki' }));

const describe = (certificate: X509Certificate) => ({
  fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  subject: certificate.subject ?? '',
});

function changed(origin: string, policy: Extract<TrustPolicy, { kind: 'pinned' }>, presented: Fingerprint): CliError {
  const { source, fingerprint } = policy;
  const isStored = source === 'stored';
  const shown = showFingerprint(presented);
  return new CliError(
    exits.unreachable,
    'certificate_changed',
    `the certificate of ${origin} ${isStored ? 'has changed: it is not the trusted one' : `is not the one from ${source}`}; nothing was sent\n` +
      `${isStored ? 'trusted' : 'expected'}:\n${showFingerprint(fingerprint)}\n` +
      `presented:\n${shown}`,
    `Unless you expect a new certificate, someone may be intercepting the connection. An orchestrator creates one if its advertised_host or its data directory changes. Compare the presented fingerprint with ${fingerprintSource}. Only if they match, ${nextStep[source](origin, shown)}`,
  );
}

/** Instructions for accepting another certificate, by the source of the expected fingerprint. */
const nextStep: Readonly<
  Record<Extract<TrustPolicy, { kind: 'pinned' }>['source'], (origin: string, shown: string) => string>
> = {
  stored: (origin, shown) => `trust it: muster login --url ${origin} --fingerprint ${shown}`,
  '--fingerprint': (_, shown) => `specify it: --fingerprint ${shown}`,
  MUSTER_FINGERPRINT: (_, shown) => `set it: export MUSTER_FINGERPRINT=${shown}`,
};

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing is listening at that address',
  ENOTFOUND: 'the name does not resolve',
  EAI_AGAIN: 'the name does not resolve at the moment',
  ETIMEDOUT: 'no answer within the time limit',
  EHOSTUNREACH: 'no route to the machine',
  ENETUNREACH: 'no route to the network',
  ECONNRESET: 'the connection was closed',
  EPIPE: 'the connection was closed',
};

/** Returns the error for a failed connection. */
export function unreachable(url: URL, error: Error): CliError {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const wrongProtocol = /wrong version number|packet length too long|HTTP_REQUEST/i.test(`${code} ${error.message}`);
  const reason = wrongProtocol ? 'the server at that address does not use TLS' : (reasons[code] ?? error.message);
  // A TLS server closes plain HTTP connections.
  const wantsTls = url.protocol === 'http:' && (code === 'ECONNRESET' || code.startsWith('HPE_'));
  const remedy = wrongProtocol
    ? `If the orchestrator runs with --no-tls, use --url http://${url.host}`
    : wantsTls
      ? `If the orchestrator uses TLS, which is the default, use --url https://${url.host}`
      : 'Check that the orchestrator runs at this address. To use another address: --url or --profile';
  return new CliError(exits.unreachable, 'unreachable', `no orchestrator answers at ${url.origin}: ${reason}`, remedy, {
    cause: error,
  });
}
