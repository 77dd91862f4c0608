import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeContentFrame, decodeTerminalFrame, encodeContentFrame, encodeTerminalFrame } from './binary-frame.ts';
import { limits } from './limits.ts';

const channels = fc.integer({ min: 1, max: limits.mostChannel });

test('decodes an encoded terminal frame at any offset in memory', () => {
  fc.assert(
    fc.property(channels, fc.uint8Array({ minLength: 1 }), fc.nat(9), (channel, bytes, before) => {
      const frame = encodeTerminalFrame(channel, bytes);
      const within = new Uint8Array(before + frame.length);
      within.set(frame, before);
      expect(decodeTerminalFrame(within.subarray(before))).toEqual({ channel, bytes });
    }),
  );
});

test('refuses a frame that is not a terminal frame', () => {
  const frame = encodeTerminalFrame(7, new Uint8Array(limits.terminalFrameBytes));
  expect(decodeTerminalFrame(frame)?.bytes).toHaveLength(limits.terminalFrameBytes);
  expect(decodeTerminalFrame(encodeTerminalFrame(7, new Uint8Array(limits.terminalFrameBytes + 1)))).toBeNull();
  expect(decodeTerminalFrame(encodeTerminalFrame(7, new Uint8Array(0)))).toBeNull();
  expect(decodeTerminalFrame(encodeTerminalFrame(0, new Uint8Array(1)))).toBeNull();
  expect(decodeTerminalFrame(frame.subarray(0, 4))).toBeNull();
  expect(decodeTerminalFrame(new Uint8Array([2, 0, 0, 0, 7, 1]))).toBeNull();
});

test('distinguishes content frames from terminal frames', () => {
  const bytes = new Uint8Array([1, 2, 3]);
  expect(decodeContentFrame(encodeContentFrame(7, bytes))).toEqual({ request: 7, bytes });
  expect(decodeContentFrame(encodeTerminalFrame(7, bytes))).toBeNull();
  expect(decodeTerminalFrame(encodeContentFrame(7, bytes))).toBeNull();
  expect(decodeContentFrame(encodeContentFrame(7, new Uint8Array(limits.contentFrameBytes + 1)))).toBeNull();
});
