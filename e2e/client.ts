import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { Agent, request } from 'node:https';
import { type Client, createClient, type Transport } from '@muster/protocol/client';
import { challenge, verify } from '@muster/protocol/http';

export interface Operator {
  privateKey: KeyObject;
  /** Public key as 64 hexadecimal characters. */
  publicKey: string;
}

export function newOperator(): Operator {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { privateKey, publicKey: Buffer.from(x as string, 'base64url').toString('hex') };
}

/**
 * Creates a transport that trusts exactly one certificate.
 * @param certificate PEM, read on each new connection, because the file may not exist yet
 */
export function transportTo(certificate: () => string): Transport {
  const agent = new Agent({ keepAlive: true, maxCachedSessions: 0 });
  return ({ method, url, headers, body, signal, stream }) =>
    new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers, agent, ca: certificate(), ...(signal ? { signal } : {}) });
      outgoing.on('error', reject);
      outgoing.on('response', (answer) => {
        const status = answer.statusCode ?? 0;
        const header = (name: string) => {
          const value = answer.headers[name.toLowerCase()];
          return (Array.isArray(value) ? value[0] : value) ?? null;
        };
        if (stream && status >= 200 && status < 300) {
          resolve({ status, header, body: answer, text: async () => Buffer.concat(await answer.toArray()).toString() });
          return;
        }
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('error', reject);
        answer.on('end', () => {
          resolve({ status, header, text: async () => Buffer.concat(pieces).toString('utf8') });
        });
      });
      outgoing.end(body);
    });
}

/**
 * Signs in by responding to a challenge.
 * @returns the token of the sign-in session
 */
export async function signIn(anyone: Client, operator: Operator): Promise<string> {
  const { nonce } = await anyone(challenge, { body: { public_key: operator.publicKey } });
  const signature = sign(null, Buffer.from(nonce, 'hex'), operator.privateKey).toString('hex');
  return (await anyone(verify, { body: { public_key: operator.publicKey, signature } })).token;
}

/**
 * Creates a client that signs in as an operator on the first request that needs it.
 * @param url       called for each request, because a restarted orchestrator may have another port
 * @param transport sends the requests, such as one of `transportTo`
 */
export function operatorClient(url: () => string, transport: Transport, operator: Operator): Client {
  let session: Promise<string> | null = null;
  const token = () => {
    session ??= signIn(createClient({ url: url(), transport }), operator).catch((error: unknown) => {
      session = null;
      throw error;
    });
    return session;
  };
  return (route, call) => createClient({ url: url(), token, transport })(route, call);
}
