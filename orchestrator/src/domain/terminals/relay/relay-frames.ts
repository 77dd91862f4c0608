/**
 * Frames of relayed connections. A frame consists of the ID of the connection (16 bytes), its number (6 bytes,
 * big-endian), its kind (1 byte), and its content.
 */

const kinds = ['data', 'text', 'credit', 'pause', 'resume', 'close', 'cut', 'alive'] as const;
export type FrameKind = (typeof kinds)[number];

export interface Frame {
  /** 32 hexadecimal digits. */
  readonly connection: string;
  /** Counts the frames of a connection in one direction, from 1. */
  readonly number: number;
  readonly kind: FrameKind;
  readonly content: Buffer;
}

const idBytes = 16;
const numberBytes = 6;
const headerBytes = idBytes + numberBytes + 1;
/** Maximum number of bytes of content in a frame. */
export const maxContent = 64 * 1024;

export function encodeFrame({ connection, number, kind, content }: Frame): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.write(connection, 'hex');
  header.writeUIntBE(number, idBytes, numberBytes);
  header.writeUInt8(kinds.indexOf(kind), idBytes + numberBytes);
  return Buffer.concat([header, content]);
}

/** @returns null if the bytes are not a frame that this release supports, or exceed the maximum size of a frame */
export function decodeFrame(bytes: Buffer): Frame | null {
  if (bytes.length < headerBytes || bytes.length > headerBytes + maxContent) return null;
  const kind = kinds[bytes.readUInt8(idBytes + numberBytes)];
  if (kind === undefined) return null;
  const number = bytes.readUIntBE(idBytes, numberBytes);
  return { connection: bytes.toString('hex', 0, idBytes), number, kind, content: bytes.subarray(headerBytes) };
}
