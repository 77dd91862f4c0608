import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventFrameReader } from './event-frames.ts';

const stream = [
  'retry: 2000\nid: 6\n\n',
  ': still here\nid: 7\n\n',
  'id: 8\ndata: {"name":"é\u{1F600}\u202E"}\n\n',
  'event: run\ndata: {"run_id":"x"}\n\n',
  'data: zwei\ndata:  Zeilen – ja\n\n',
  'id: 9\r\nevent: gap\r\ndata: {}\r\n\r\n',
  'id: 12\n\n',
].join('');
const events = [
  { event: 'message', data: '{"name":"é\u{1F600}\u202E"}' },
  { event: 'run', data: '{"run_id":"x"}' },
  { event: 'message', data: 'zwei\n Zeilen – ja' },
  { event: 'gap', data: '{}' },
];
const bytesOf = (text: string) => new TextEncoder().encode(text);

describe('event frames', () => {
  test('parses events regardless of chunk boundaries', () => {
    const bytes = bytesOf(stream);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length })), (cuts) => {
        const reader = new EventFrameReader();
        const offsets = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const got = offsets.slice(1).flatMap((to, at) => reader.feed(bytes.subarray(offsets[at], to)));
        expect(got).toEqual(events);
        expect(reader.lastId).toBe('12');
      }),
    );
  });

  test('returns the ID of the last complete event', () => {
    const reader = new EventFrameReader('0');
    expect(reader.lastId).toBe('0');
    reader.feed(bytesOf('id: 1\ndata: a\n\nid: 2\ndata: b\n'));
    expect(reader.lastId).toBe('1');
    expect(reader.feed(bytesOf('\n'))).toEqual([{ event: 'message', data: 'b' }]);
    expect(reader.lastId).toBe('2');
  });

  test('refuses an event that exceeds the maximum length', () => {
    const lines = new EventFrameReader();
    const line = bytesOf(`data: ${'x'.repeat(100_000)}\n`);
    expect(() => Array.from({ length: 100 }, () => lines.feed(line))).toThrow('more than 4194304 characters');
    const empty = new EventFrameReader();
    const nothing = bytesOf('data:\n'.repeat(100_000));
    expect(() => Array.from({ length: 50 }, () => empty.feed(nothing))).toThrow('more than 4194304 characters');
    const oneLine = new EventFrameReader();
    const piece = bytesOf('x'.repeat(1_000_000));
    oneLine.feed(bytesOf('data: '));
    expect(() => Array.from({ length: 5 }, () => oneLine.feed(piece))).toThrow('more than 4194304 characters');
  });
});
