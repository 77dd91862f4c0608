/** Which server certificate is believed. Deciding only: who asks, connects and stores is elsewhere. */

/** SHA-256 of a certificate's DER, 64 lower-case hexadecimal characters. */
export type Fingerprint = string;

/**
 * Reads a fingerprint in any of the ways that tools print it: with or without `sha256:`, colons, capitals.
 * @returns null when it is none
 */
export function parseFingerprint(text: string): Fingerprint | null {
  const digits = text
    .trim()
    .replace(/^sha-?256[:= ]/i, '')
    .replaceAll(':', '')
    .toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? digits : null;
}

/** As the orchestrator prints its own, so that a person compares like with like: pairs of capitals between colons. */
export const showFingerprint = (fingerprint: Fingerprint): string =>
  (fingerprint.toUpperCase().match(/../g) ?? []).join(':');

/** Where the orchestrator's own word is to be found, as messages say it. */
export const whereToldFingerprint =
  'the one that `muster orchestrator init` told there, or the orchestrator at its start (npm start, or its log)';

/**
 * What a connection goes by. `pinned`: exactly this certificate, whoever signed it and whatever name and dates it bears.
 * `authorities`: one that a trusted authority vouches for, else a person is asked once. `anything`: no check at all.
 */
export type TrustPolicy =
  | { readonly kind: 'pinned'; readonly fingerprint: Fingerprint; readonly source: 'given' | 'stored' }
  | { readonly kind: 'authorities' }
  | { readonly kind: 'anything' };

/**
 * @param given  what the person named for this call
 * @param stored what was trusted for this address before
 */
export function choosePolicy(options: {
  insecure: boolean;
  given: Fingerprint | null;
  stored: Fingerprint | null;
}): TrustPolicy {
  // A named certificate is stricter than any flag that was left in a script.
  if (options.given !== null) return { kind: 'pinned', fingerprint: options.given, source: 'given' };
  if (options.insecure) return { kind: 'anything' };
  if (options.stored !== null) return { kind: 'pinned', fingerprint: options.stored, source: 'stored' };
  return { kind: 'authorities' };
}

/**
 * Names what vouches for the server, so that a kept token is bound to it.
 * @param servers names of the server by its key, for where nothing else is checked
 */
export function trustName(policy: TrustPolicy, servers: readonly string[]): string {
  if (policy.kind === 'pinned') return `certificate:${policy.fingerprint}`;
  return policy.kind === 'authorities' ? 'authorities' : servers.join();
}

// What OpenSSL and Node say when the certificate, rather than the connection, is at fault.
const certificateFaults = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
export const isCertificateFault = (code: string): boolean => certificateFaults.has(code);

const unknownIssuers = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
/** True when more authorities could change the verdict. */
export const isUnknownIssuer = (code: string): boolean => unknownIssuers.has(code);
