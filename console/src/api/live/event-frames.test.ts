import { expect, test } from 'vitest';
import { createFrames } from './event-frames.ts';

const stream =
  'retry: 2000\nid: 7\n\nid: 8\ndata: {"name":"é\u{1F600}\u202E"}\n\nevent: agent\ndata: {"node_id":"a"}\n\nid: 12\n\n';
const whole = [
  [undefined, '{"name":"é\u{1F600}\u202E"}'],
  ['agent', '{"node_id":"a"}'],
];
const bytes = new TextEncoder().encode(stream);

test.each([1, 2, 3, 5, 7, 1000])('parses frames from chunks of %i bytes', (size) => {
  const seen: [string | undefined, string][] = [];
  const frames = createFrames((event, data) => seen.push([event, data]));
  for (let at = 0; at < bytes.length; at += size) frames.feed(bytes.subarray(at, at + size));
  expect(seen).toEqual(whole);
  expect(frames.position()).toBe('12');
});

test('does not advance to the id of an incomplete frame', () => {
  const frames = createFrames(() => {}, '3');
  expect(frames.position()).toBe('3');
  frames.feed(new TextEncoder().encode('id: 4\n\nid: 5\ndata: {"a"'));
  expect(frames.position()).toBe('4');
});
