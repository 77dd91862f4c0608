import { limits } from './limits.ts';

/**
 * Binary frames of the link, in both directions: one byte for the kind, the terminal's channel as 32 bits in big-endian
 * order, then the bytes of output or input.
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

/** @returns the content, sharing the frame's memory; null if the frame is malformed, empty, or too large */
export function decodeTerminalFrame(frame: Uint8Array): { channel: number; bytes: Uint8Array } | null {
  const length = frame.length - headerBytes;
  if (length < 1 || length > limits.terminalFrameBytes || frame[0] !== kindTerminal) return null;
  const channel = new DataView(frame.buffer, frame.byteOffset).getUint32(1);
  return channel === 0 ? null : { channel, bytes: frame.subarray(headerBytes) };
}
