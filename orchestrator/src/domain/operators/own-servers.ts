import { hash, X509Certificate } from 'node:crypto';
import { serverOfKey, serverOfOrigin } from '@muster/protocol/sign-in';

/** Determines the server names that a sign-in may use for this orchestrator. See docs/security.md, "Sign-in". */

/** The API's addresses according to the configuration. Request headers such as `Host` are not trusted. */
export interface Served {
  /** PEM of the API's certificate; null for plain HTTP. */
  readonly certificate: string | null;
  readonly apiHost: string;
  readonly apiPort: number;
  readonly advertisedHost: string | null;
  readonly publicUrl: string | null;
  /** `sign_in.origins`: origins, and key digests with the prefix `tls:`. */
  readonly origins: readonly string[];
}

export interface OwnServers {
  readonly anywhere: ReadonlySet<string>;
  /**
   * Loopback origins. They are valid only for clients on this machine, because these origins exist on every machine.
   */
  readonly onLoopback: ReadonlySet<string>;
}

export function ownServers(served: Served): OwnServers {
  const { certificate, apiHost, apiPort, advertisedHost, publicUrl } = served;
  const read = certificate === null ? null : new X509Certificate(certificate);
  const names = new Set(['localhost', '127.0.0.1', '::1', ...(read ? namesOf(read) : [])]);
  if (advertisedHost !== null) names.add(advertisedHost);
  if (!/^[0:.]+$/.test(apiHost)) names.add(apiHost);
  const scheme = read ? 'https' : 'http';
  const addresses = [...names].map((name) => `${scheme}://${name.includes(':') ? `[${name}]` : name}:${apiPort}`);
  if (publicUrl !== null) addresses.push(publicUrl);
  const anywhere = new Set<string>(read ? [serverOfKey(keyDigestOf(read))] : []);
  const onLoopback = new Set<string>();
  for (const address of [...addresses, ...served.origins]) {
    if (address.startsWith('tls:')) {
      anywhere.add(address);
      continue;
    }
    if (!URL.canParse(address)) continue;
    const { hostname, origin } = new URL(address);
    (isLoopback(hostname) ? onLoopback : anywhere).add(serverOfOrigin(origin));
  }
  return { anywhere, onLoopback };
}

/**
 * Reports whether a name or address belongs to this server.
 * @param loopback whether the client is on this machine
 */
export const isOwnServer = ({ anywhere, onLoopback }: OwnServers, server: string, loopback: boolean): boolean =>
  anywhere.has(server) || (loopback && onLoopback.has(server));

/** Returns the exact names and addresses in a certificate. Omits wildcards, which do not identify this server. */
const namesOf = ({ subjectAltName }: X509Certificate): string[] =>
  [...(subjectAltName ?? '').matchAll(/(?:^|, )(?:DNS|IP Address):([A-Za-z0-9.:_-]+)(?=,|$)/g)].map(
    ([, name]) => name as string,
  );

const keyDigestOf = (certificate: X509Certificate): string =>
  hash('sha256', certificate.publicKey.export({ format: 'der', type: 'spki' }));

/**
 * Reports whether a name or address leads to the machine itself.
 * @param hostname in the form of `URL.hostname`
 */
const isLoopback = (hostname: string): boolean =>
  /^(?:(?:.+\.)?localhost|localhost\.localdomain|ip6-(?:localhost|loopback))\.?$/.test(hostname) ||
  /^(?:127\.[\d.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:(?:7f[\da-f]{2}:[\da-f]+|0:0)\])$/.test(hostname);
