/** Pure functions that decide which server certificates to trust. */

/** SHA-256 of a certificate in DER, as 64 lowercase hexadecimal characters. */
export type Fingerprint = string;

/**
 * Parses a fingerprint in the formats of common tools: with or without `sha256:`, colons, and capitals.
 * @returns null for any other text
 */
export function parseFingerprint(text: string): Fingerprint | null {
  const digits = text
    .trim()
    .replace(/^sha-?256[:= ]/i, '')
    .replaceAll(':', '')
    .toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? digits : null;
}

/** Formats a fingerprint as the orchestrator prints its own: pairs of capital digits, separated by colons. */
export const showFingerprint = (fingerprint: Fingerprint): string =>
  (fingerprint.toUpperCase().match(/../g) ?? []).join(':');

/** Where the operator can find the fingerprint, for messages. */
export const fingerprintSource =
  'the fingerprint that `muster orchestrator init` printed, or the orchestrator when it started (npm start, or its log)';

/** Where the operator specified a fingerprint. */
export type FingerprintSource = '--fingerprint' | 'MUSTER_FINGERPRINT';

/**
 * How to check a certificate. `pinned`: accept exactly this certificate, regardless of its signer, name, and dates.
 * `authorities`: accept it if a trusted CA signed it; otherwise, ask the operator once. `anything`: no check.
 */
export type TrustPolicy =
  | { readonly kind: 'pinned'; readonly fingerprint: Fingerprint; readonly source: FingerprintSource | 'stored' }
  | { readonly kind: 'authorities' }
  | { readonly kind: 'anything' };

/**
 * Chooses the policy.
 * @param given the specified fingerprint
 * @param givenBy where it was specified
 * @param stored fingerprint that was trusted for this address
 */
export function choosePolicy(options: {
  insecure: boolean;
  given: Fingerprint | null;
  givenBy: FingerprintSource;
  stored: Fingerprint | null;
}): TrustPolicy {
  // A specified fingerprint overrides --insecure-skip-verify, which a script may still contain.
  if (options.given !== null) return { kind: 'pinned', fingerprint: options.given, source: options.givenBy };
  if (options.insecure) return { kind: 'anything' };
  if (options.stored !== null) return { kind: 'pinned', fingerprint: options.stored, source: 'stored' };
  return { kind: 'authorities' };
}

/**
 * Describes how the server was verified, to bind stored tokens to the server.
 * @param servers names that identify the server by its key; used if the certificate was not checked
 */
export function trustName(policy: TrustPolicy, servers: readonly string[]): string {
  if (policy.kind === 'pinned') return `certificate:${policy.fingerprint}`;
  return policy.kind === 'authorities' ? 'authorities' : servers.join();
}

// OpenSSL and Node.js error codes that concern the certificate rather than the connection.
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
/** Reports whether additional CAs could make the certificate valid. */
export const isUnknownIssuer = (code: string): boolean => unknownIssuers.has(code);
