import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { HostFailure } from '../../host/failure.ts';

/** Reads and checks chains of certificates: first the certificate of the server, then those of its issuers. */

/** Maximum number of certificates in a chain. */
const maxCertificates = 20;

const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Parses certificates in PEM. Ignores the text between them.
 * @throws HostFailure that names the certificate that cannot be read
 */
export function readChain(text: string): X509Certificate[] {
  const blocks = text.match(block) ?? [];
  if (blocks.length === 0) throw new HostFailure('there is no certificate in PEM');
  if (blocks.length > maxCertificates)
    throw new HostFailure(`there are ${blocks.length} certificates; a chain may have ${maxCertificates}`);
  return blocks.map((pem, i) => {
    try {
      return new X509Certificate(pem);
    } catch {
      throw new HostFailure(`certificate ${i + 1} of ${blocks.length} cannot be read: copy its PEM text again`);
    }
  });
}

/** Returns the first certificate of a text, or null if there is none that can be read. */
export function firstCertificate(text: string | null): X509Certificate | null {
  const [pem] = text?.match(block) ?? [];
  if (pem === undefined) return null;
  try {
    return new X509Certificate(pem);
  } catch {
    return null;
  }
}

/** Returns certificates in PEM, without the text between them. */
export const chainText = (certificates: readonly X509Certificate[]): string =>
  certificates.map((certificate) => `${certificate.toString().trim()}\n`).join('');

const keyBlock = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[^-]+-----END \1-----/;

/**
 * Returns the first private key in a text, in the form in which the agent writes it: PEM with LF line endings, without
 * the parameters that `openssl ecparam` writes before the key. In text without a key, only normalizes line endings and
 * surrounding whitespace.
 */
export function keyText(text: string): string {
  const unix = text.replaceAll('\r\n', '\n').trim();
  return `${keyBlock.exec(unix)?.[0] ?? unix}\n`;
}

/** @throws HostFailure without any part of the key */
export function readPrivateKey(text: string): KeyObject {
  if (/-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(text))
    throw new HostFailure('the private key has a passphrase: remove it with openssl pkey');
  try {
    return createPrivateKey(keyText(text));
  } catch {
    throw new HostFailure('the private key cannot be read: it must be in PEM, as PKCS#8, PKCS#1, or SEC 1');
  }
}

const shownName = (certificate: X509Certificate, of: 'subject' | 'issuer' = 'subject'): string => {
  const lines = (certificate[of] ?? '').split('\n');
  const name = lines.find((line) => line.startsWith('CN=')) ?? lines.join(', ');
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, 80) || 'without a name';
};

const titled = (certificates: readonly X509Certificate[], index: number): string =>
  `certificate ${index + 1} of ${certificates.length} (${shownName(certificates[index] as X509Certificate)})`;

const isSignedBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);

/**
 * Checks a certificate chain, but not the validity periods.
 * @throws HostFailure that names the certificate and what to do
 */
export function checkChain(certificates: readonly X509Certificate[], key: KeyObject, domains: readonly string[]): void {
  const [leaf] = certificates;
  if (leaf === undefined) throw new HostFailure('there is no certificate');
  if (!leaf.checkPrivateKey(key)) {
    const owner = certificates.findIndex((certificate) => certificate.checkPrivateKey(key));
    throw new HostFailure(
      owner === -1
        ? `the key does not belong to ${titled(certificates, 0)}: declare the key that the certificate was requested with`
        : `the key belongs to ${titled(certificates, owner)}, which must come first`,
    );
  }
  for (const [i, certificate] of certificates.entries()) {
    const next = certificates[i + 1];
    if (next === undefined || isSignedBy(certificate, next)) continue;
    const issuer = certificates.findIndex((other, at) => at !== i && isSignedBy(certificate, other));
    throw new HostFailure(
      issuer === -1
        ? `${titled(certificates, i)} is not signed by ${titled(certificates, i + 1)}: put the certificate of its issuer (${shownName(certificate, 'issuer')}) between them, or remove those that follow`
        : `${titled(certificates, i)} is signed by ${titled(certificates, issuer)}, which must follow it`,
    );
  }
  const names = namesOf(leaf);
  const missing = domains.filter((domain) => !covers(names, domain));
  if (missing.length > 0)
    throw new HostFailure(
      `${titled(certificates, 0)} is not valid for ${missing.join(', ')}, only for ${names.join(', ').slice(0, 1000) || 'no name'}: declare a certificate for all \`domains\``,
    );
}

/** Maximum number of names that are read, more than an authority accepts. */
const maxNames = 5000;

/** Returns the names and addresses that a certificate is valid for, in lower case. */
export function namesOf(certificate: X509Certificate): string[] {
  // Node quotes names with characters that could be read as the start of another name.
  const text = (certificate.subjectAltName ?? '').replace(/"(?:[^"\\]|\\.)*"/g, '');
  return text
    .split(', ')
    .flatMap((name) => {
      const [, host, address] = /^(?:DNS:([A-Za-z0-9._*-]+)|IP Address:([0-9A-Fa-f.:]+))$/.exec(name) ?? [];
      return (host ?? address)?.toLowerCase() ?? [];
    })
    .slice(0, maxNames);
}

/** Reports whether a certificate with these names is valid for a domain. A declared `*.` needs the same name. */
export function covers(names: readonly string[], domain: string): boolean {
  const wanted = domain.toLowerCase();
  if (isIP(wanted) !== 0)
    return names.some((name) => isIP(name) !== 0 && canonicalAddress(name) === canonicalAddress(wanted));
  return names.includes(wanted) || names.includes(`*.${wanted.split('.').slice(1).join('.')}`);
}

const canonicalAddress = (address: string): string =>
  address.includes(':') ? (URL.parse(`http://[${address}]`)?.hostname ?? address) : address;

export interface Lifetime {
  /** Milliseconds since the Unix epoch. */
  from: number;
  until: number;
  /** The certificate that expires first. */
  title: string;
}

/** Returns the period in which all certificates of a chain are valid. */
export function lifetimeOf(certificates: readonly X509Certificate[]): Lifetime {
  const ends = certificates.map(({ validToDate }) => validToDate.getTime());
  const until = Math.min(...ends);
  return {
    from: Math.max(...certificates.map(({ validFromDate }) => validFromDate.getTime())),
    until,
    title: titled(certificates, ends.indexOf(until)),
  };
}

const dayMs = 24 * 60 * 60_000;

/**
 * Reports whether a certificate is about to expire: in less than the given days, and after half of its lifetime. The
 * second condition is for certificates that are valid for only a few days.
 */
export const expiresSoon = ({ from, until }: Pick<Lifetime, 'from' | 'until'>, days: number, now: number): boolean =>
  until - now < Math.min(days * dayMs, (until - from) / 2);

export const shownTime = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');

/** Returns the reason why a chain is not valid now, or null if it is. */
export function invalidNow({ from, until, title }: Lifetime, now: number): string | null {
  if (now >= until) return `${title} expired at ${shownTime(until)}: declare a newer one`;
  if (now < from) return `the certificates are valid only from ${shownTime(from)}: check the clock of this machine`;
  return null;
}
