import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { selfSigned } from '../orchestrator/src/identity/certificate.ts';

/** A server with its own certificate that forwards all requests to an orchestrator, to obtain a sign-in session there. */
export interface Relay {
  readonly url: string;
  /** SHA-256 fingerprint of its certificate, as `--fingerprint` accepts it. */
  readonly fingerprint: string;
  /** Sign-in session tokens that the orchestrator issued through the relay. */
  readonly tokens: string[];
  /** `Authorization` headers that clients sent. */
  readonly authorizations: string[];
  close(): void;
}

/**
 * Starts a relay on 127.0.0.1.
 * @param target    URL of the orchestrator
 * @param downgrade whether to request a challenge that is not bound to a server
 * @param port      port to listen on; 0 for any free port
 */
export async function startRelay(target: string, { downgrade = false, port = 0 } = {}): Promise<Relay> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = await selfSigned(privateKey, { commonName: 'relay', hosts: ['127.0.0.1'], days: 1 });
  const tokens: string[] = [];
  const authorizations: string[] = [];
  const server = createServer({ key: privateKey.export({ format: 'pem', type: 'pkcs8' }), cert }, async (from, to) => {
    const path = from.url ?? '/';
    if (from.headers.authorization !== undefined) authorizations.push(from.headers.authorization);
    let body = await text(from);
    if (downgrade && path.endsWith('/auth/challenge')) {
      const { public_key } = JSON.parse(body) as { public_key: string };
      body = JSON.stringify({ public_key });
    }
    // Replaces headers with those that the orchestrator expects, as a real relay would.
    const headers = { ...from.headers, host: new URL(target).host, 'content-length': String(Buffer.byteLength(body)) };
    delete headers['accept-encoding'];
    if (headers.origin !== undefined) headers.origin = target;
    const onward = request(`${target}${path}`, { method: from.method, headers, rejectUnauthorized: false });
    onward.on('error', () => to.destroy());
    onward.on('response', async (answer) => {
      const said = await buffer(answer);
      const token = /"token":"([^"]+)"/.exec(said.toString('latin1'))?.[1];
      if (token !== undefined) tokens.push(token);
      const { 'transfer-encoding': _, ...rest } = answer.headers;
      to.writeHead(answer.statusCode ?? 502, { ...rest, 'content-length': said.length }).end(said);
    });
    onward.end(body);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fingerprint: new X509Certificate(cert).fingerprint256,
    tokens,
    authorizations,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
