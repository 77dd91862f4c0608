import { limits } from './limits.ts';

/**
 * Binary frames of the link in both directions: one byte for the kind, the terminal's channel as 32 bits in big-endian
 * order, and the output or input bytes.
 */
const kindTerminal = 1;
const headerBytes = 5;

/** Encodes a terminal frame. @param bytes 1 to `limits.terminalFrameBytes` bytes */
export function encodeTerminalFrame(channel: number, bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(headerBytes + bytes.length);
  frame[0] = kindTerminal;
  new DataView(frame.buffer).setUint32(1, channel);
  frame.set(bytes, headerBytes);
  return frame;
}

/**
 * Decodes a terminal frame.
 * @returns the content, in the memory of the frame; null if the frame is malformed, empty, or too large
 */
export function decodeTerminalFrame(frame: Uint8Array): { channel: number; bytes: Uint8Array } | null {
  const length = frame.length - headerBytes;
  if (length < 1 || length > limits.terminalFrameBytes || frame[0] !== kindTerminal) return null;
  const channel = new DataView(frame.buffer, frame.byteOffset).getUint32(1);
  return channel === 0 ? null : { channel, bytes: frame.subarray(headerBytes) };
}
