import { expect, test } from 'vitest';
import { createFrames } from './event-frames.ts';

const stream =
  'retry: 2000\nid: 7\n\nid: 8\ndata: {"name":"é\u{1F600}\u202E"}\n\nevent: agent\ndata: {"node_id":"a"}\n\nid: 12\n\n';
const whole = [
  [undefined, '{"name":"é\u{1F600}\u202E"}'],
  ['agent', '{"node_id":"a"}'],
];
const bytes = new TextEncoder().encode(stream);

test.each([1, 2, 3, 5, 7, 1000])('frames come whole out of pieces of %i bytes', (size) => {
  const seen: [string | undefined, string][] = [];
  const frames = createFrames((event, data) => seen.push([event, data]));
  for (let at = 0; at < bytes.length; at += size) frames.feed(bytes.subarray(at, at + size));
  expect(seen).toEqual(whole);
  expect(frames.place()).toBe('12');
});

test('the place of a frame that is cut off is not reached', () => {
  const frames = createFrames(() => {}, '3');
  expect(frames.place()).toBe('3');
  frames.feed(new TextEncoder().encode('id: 4\n\nid: 5\ndata: {"a"'));
  expect(frames.place()).toBe('4');
});
