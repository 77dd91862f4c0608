import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader } from './event-frames.ts';

const stream = [
  'retry: 2000\nid: 6\n\n',
  ': still here\nid: 7\n\n',
  'id: 8\ndata: {"a":1}\n\n',
  'event: run\ndata: {"run_id":"x"}\n\n',
  'data: zwei\ndata:  Zeilen – ja\n\n',
  'id: 9\r\nevent: gap\r\ndata: {}\r\n\r\n',
].join('');
const events = [
  { event: 'message', data: '{"a":1}' },
  { event: 'run', data: '{"run_id":"x"}' },
  { event: 'message', data: 'zwei\n Zeilen – ja' },
  { event: 'gap', data: '{}' },
];

describe('events of a stream', () => {
  test('are the same however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: stream.length })), (cuts) => {
        const reader = new FrameReader();
        const places = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
        const got = places.slice(1).flatMap((to, at) => reader.feed(stream.slice(places[at], to)));
        expect(got).toEqual(events);
        expect(reader.lastId).toBe('9');
      }),
    );
  });

  test('what has not come whole does not count: it would be missed after a cut', () => {
    const reader = new FrameReader();
    reader.feed('id: 1\ndata: a\n\nid: 2\ndata: b\n');
    expect(reader.lastId).toBe('1');
    expect(reader.feed('\n')).toEqual([{ event: 'message', data: 'b' }]);
    expect(reader.lastId).toBe('2');
  });

  test('one without an end is refused, not kept', () => {
    const reader = new FrameReader();
    const much = () => {
      for (let no = 0; no < 100; no++) reader.feed(`data: ${'x'.repeat(100_000)}\n`);
    };
    expect(much).toThrow('longer');
    const empty = new FrameReader();
    const nothing = 'data:\n'.repeat(100_000);
    expect(() => Array.from({ length: 50 }, () => empty.feed(nothing))).toThrow('longer');
    expect(() => new FrameReader().feed('x'.repeat(5_000_000))).toThrow('longer');
  });
});
