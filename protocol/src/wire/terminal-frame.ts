import { limits } from './limits.ts';

/**
 * Binary frames of the channel, in both directions: one byte that says what it is, the channel of the terminal as 32 bits
 * with the highest first, then the bytes that it showed or that were typed.
 */
const kindTerminal = 1;
const headerBytes = 5;

/** @param bytes at least one, at most `limits.terminalFrameBytes` */
export function encodeTerminalFrame(channel: number, bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(headerBytes + bytes.length);
  frame[0] = kindTerminal;
  new DataView(frame.buffer).setUint32(1, channel);
  frame.set(bytes, headerBytes);
  return frame;
}

/** @returns what it holds, on the memory of the frame; null when it is no such frame, or holds too much or nothing */
export function decodeTerminalFrame(frame: Uint8Array): { channel: number; bytes: Uint8Array } | null {
  const length = frame.length - headerBytes;
  if (length < 1 || length > limits.terminalFrameBytes || frame[0] !== kindTerminal) return null;
  const channel = new DataView(frame.buffer, frame.byteOffset).getUint32(1);
  return channel === 0 ? null : { channel, bytes: frame.subarray(headerBytes) };
}
