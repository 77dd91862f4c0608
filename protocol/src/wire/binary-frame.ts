import { limits } from './limits.ts';

/**
 * Binary frames on the link: one byte for the kind, a 32-bit big-endian number, and the bytes. Terminal frames are sent
 * in both directions, and contain the terminal's channel and its output or input. Content frames are sent to agents,
 * and contain the number of a `content_request` and the next bytes of its part.
 */
const kinds = { terminal: 1, content: 2 } as const;
const headerBytes = 5;

function encode(kind: number, number: number, bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(headerBytes + bytes.length);
  frame[0] = kind;
  new DataView(frame.buffer).setUint32(1, number);
  frame.set(bytes, headerBytes);
  return frame;
}

/**
 * @returns the number and the bytes, which share the memory of the frame; null if the frame is malformed, empty, or too
 *   large
 */
function decode(kind: number, frame: Uint8Array, maximum: number): [number: number, bytes: Uint8Array] | null {
  const length = frame.length - headerBytes;
  if (length < 1 || length > maximum || frame[0] !== kind) return null;
  const number = new DataView(frame.buffer, frame.byteOffset).getUint32(1);
  return number === 0 ? null : [number, frame.subarray(headerBytes)];
}

/** Encodes a terminal frame. @param bytes 1 to `limits.terminalFrameBytes` bytes */
export const encodeTerminalFrame = (channel: number, bytes: Uint8Array): Uint8Array =>
  encode(kinds.terminal, channel, bytes);

/**
 * Decodes a terminal frame.
 * @returns the content, which shares the memory of the frame; null if the frame is malformed, empty, or too large
 */
export function decodeTerminalFrame(frame: Uint8Array): { channel: number; bytes: Uint8Array } | null {
  const decoded = decode(kinds.terminal, frame, limits.terminalFrameBytes);
  return decoded === null ? null : { channel: decoded[0], bytes: decoded[1] };
}

/** Encodes a content frame. @param bytes 1 to `limits.contentFrameBytes` bytes */
export const encodeContentFrame = (request: number, bytes: Uint8Array): Uint8Array =>
  encode(kinds.content, request, bytes);

/** Decodes a content frame as {@link decodeTerminalFrame} does. */
export function decodeContentFrame(frame: Uint8Array): { request: number; bytes: Uint8Array } | null {
  const decoded = decode(kinds.content, frame, limits.contentFrameBytes);
  return decoded === null ? null : { request: decoded[0], bytes: decoded[1] };
}
