/**
 * Reads headers of the PROXY protocol, version 2, which a TCP load balancer sends to state the address of its client.
 * Source: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2.
 */

/** Size in bytes of the fixed part of a header, which contains the length of the rest. */
export const fixedBytes = 16;
/** Maximum size in bytes of the rest. Addresses take 36 bytes; extensions that a balancer may add are skipped. */
const maxRestBytes = 4096;

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const version1 = Buffer.from('PROXY ', 'latin1');

const addressKinds = {
  17: { name: 'TCP over IPv4', addressBytes: 4 },
  33: { name: 'TCP over IPv6', addressBytes: 16 },
};

/** The address of a client, as the balancer states it. */
export interface ProxiedClient {
  readonly address: string;
  readonly port: number;
}

/** The fixed part of a header. */
export interface FixedPart {
  /** Size of the rest of the header in bytes. */
  readonly restBytes: number;
  /**
   * Size of each address in the rest; null if the header states no address that can be used: a health check of the
   * balancer itself (`LOCAL`), or a client without an IP address.
   */
  readonly addressBytes: 4 | 16 | null;
}

export class ProxyHeaderError extends Error {}

/**
 * Reads the first part of a header.
 * @param bytes the first {@link fixedBytes} bytes of the connection
 * @throws ProxyHeaderError if a connection begins with anything else
 */
export function readFixedPart(bytes: Buffer): FixedPart {
  if (!bytes.subarray(0, signature.length).equals(signature))
    throw new ProxyHeaderError(
      bytes.subarray(0, version1.length).equals(version1)
        ? 'the header has version 1, but version 2 is required'
        : 'the connection does not begin with a header',
    );
  const versionAndCommand = bytes[12] as number;
  const restBytes = bytes.readUInt16BE(14);
  if (versionAndCommand !== 0x20 && versionAndCommand !== 0x21)
    throw new ProxyHeaderError(`the header has an unknown version or command (${hexOf(versionAndCommand)})`);
  if (restBytes > maxRestBytes)
    throw new ProxyHeaderError(`the header has more than ${fixedBytes + maxRestBytes} bytes`);
  const kind = addressKinds[bytes[13] as keyof typeof addressKinds];
  if (versionAndCommand === 0x20 || kind === undefined) return { restBytes, addressBytes: null };
  if (restBytes < 2 * kind.addressBytes + 4)
    throw new ProxyHeaderError(`the header is too short for the addresses of ${kind.name}`);
  return { restBytes, addressBytes: kind.addressBytes as 4 | 16 };
}

/**
 * Reads the client's address from the rest of a header.
 * @param rest all bytes of the rest
 * @returns null if the header states no address
 */
export function readClient({ addressBytes }: FixedPart, rest: Buffer): ProxiedClient | null {
  if (addressBytes === null) return null;
  const address = rest.subarray(0, addressBytes);
  return { address: textOf(address), port: rest.readUInt16BE(2 * addressBytes) };
}

function textOf(address: Buffer): string {
  if (address.length === 4) return address.join('.');
  const groups = Array.from({ length: 8 }, (_, at) => address.readUInt16BE(2 * at).toString(16));
  // The URL parser writes the address in its canonical form.
  const canonical = new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(canonical);
  return mapped === null ? canonical : address.subarray(12).join('.');
}

const hexOf = (byte: number): string => `0x${byte.toString(16).padStart(2, '0')}`;
