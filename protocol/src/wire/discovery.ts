import { signedContexts } from '../signed-contexts.ts';

/**
 * The datagram that announces an orchestrator's address to agents that have none. All numbers are big-endian:
 *
 *     4  "MSTR"
 *     1  version of this format
 *    32  public key of the orchestrator
 *     8  time, Unix seconds
 *    16  nonce
 *     2  port of the agents
 *     1  length of the host
 *     n  host, ASCII: a name, or an address without brackets
 *    64  signature over the tag and all fields above
 *
 * The only version is 1. Every announcement has exactly one encoding.
 */

/** Default UDP port on which agents listen for announcements. */
export const discoveryPort = 4747;

export interface Announcement {
  host: string;
  port: number;
  /** 32 bytes. */
  orchestratorKey: Uint8Array;
  /** Unix seconds, by the orchestrator's clock. */
  sentAt: number;
  /** 16 bytes, different in every announcement. */
  nonce: Uint8Array;
}

/** An announcement in a valid format whose signature has not been verified. */
export interface UncheckedAnnouncement extends Announcement {
  /** The bytes that the signature covers. */
  signed: Uint8Array;
  signature: Uint8Array;
}

export const announcementLimits = {
  /** Maximum clock skew, including time in transit, in seconds. */
  clockSkewSecs: 600,
  longestBytes: 128 + 253,
} as const;

const magic = 0x4d535452;
const version = 1;
const fixedLength = 64;
const signatureLength = 64;
const domainTag = new TextEncoder().encode(signedContexts.discovery);

const hostName =
  /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?$/;
const ipv6Shape = /^(?=.*:)[0-9A-Fa-f:.]{2,45}$/;

/** Reports whether an announcement can contain a name or address. */
export const isAnnounceableHost = (host: string): boolean => hostName.test(host) || ipv6Shape.test(host);

/**
 * Encodes an announcement without its signature.
 * @throws RangeError if a field cannot be encoded
 */
export function encodeAnnouncement(announcement: Announcement): Uint8Array {
  const { host, port, orchestratorKey, sentAt, nonce } = announcement;
  if (!isAnnounceableHost(host)) throw new RangeError(`${JSON.stringify(host)} is not a host that can be announced`);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new RangeError(`${port} is not a port`);
  if (orchestratorKey.length !== 32 || nonce.length !== 16)
    throw new RangeError('the key must have 32 bytes and the nonce 16');
  if (!Number.isSafeInteger(sentAt) || sentAt < 0) throw new RangeError(`${sentAt} is not a time`);
  const bytes = new Uint8Array(fixedLength + host.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic);
  view.setUint8(4, version);
  bytes.set(orchestratorKey, 5);
  view.setBigUint64(37, BigInt(sentAt));
  bytes.set(nonce, 45);
  view.setUint16(61, port);
  view.setUint8(63, host.length);
  bytes.set(new TextEncoder().encode(host), fixedLength);
  return bytes;
}

/** Returns the bytes that the signature of an encoded announcement covers. */
export function announcementSigned(encoded: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(domainTag.length + encoded.length);
  bytes.set(domainTag);
  bytes.set(encoded, domainTag.length);
  return bytes;
}

/** Decodes a datagram. @returns null if it is not an announcement of a supported version */
export function readAnnouncement(datagram: Uint8Array): UncheckedAnnouncement | null {
  if (datagram.length <= fixedLength + signatureLength || datagram.length > announcementLimits.longestBytes)
    return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  if (view.getUint32(0) !== magic || view.getUint8(4) !== version) return null;
  const hostLength = view.getUint8(63);
  if (datagram.length !== fixedLength + hostLength + signatureLength) return null;
  const sentAt = view.getBigUint64(37);
  const port = view.getUint16(61);
  if (sentAt > BigInt(Number.MAX_SAFE_INTEGER) || port === 0) return null;
  const encoded = datagram.subarray(0, fixedLength + hostLength);
  // Decodes each byte to one character, so that a non-ASCII host is refused.
  const host = String.fromCharCode(...encoded.subarray(fixedLength));
  if (!isAnnounceableHost(host)) return null;
  // Copies the bytes, because the caller may reuse the memory of the datagram.
  return {
    host,
    port,
    orchestratorKey: new Uint8Array(encoded.subarray(5, 37)),
    sentAt: Number(sentAt),
    nonce: new Uint8Array(encoded.subarray(45, 61)),
    signed: announcementSigned(encoded),
    signature: new Uint8Array(datagram.subarray(encoded.length)),
  };
}
