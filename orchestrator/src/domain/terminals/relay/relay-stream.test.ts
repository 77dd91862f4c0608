import { expect, test } from 'vitest';
import { decodeFrame, encodeFrame, type Frame, maxContent } from './relay-frames.ts';
import { costOf, RelayStream, window } from './relay-stream.ts';

const connection = 'ab'.repeat(16);

/** Opens one end of a relayed connection. The test receives its frames. */
function openEnd() {
  const sent: Frame[] = [];
  const received: string[] = [];
  const state = { now: 0, lost: null as string | null, isOpen: true };
  const stream = new RelayStream({
    connection,
    monotonic: () => state.now,
    send: (frame) => {
      sent.push(frame);
      return state.isOpen;
    },
    received: (kind, content) => void received.push(`${kind} ${content.length}`),
    drained: () => {},
    lost: (reason) => {
      state.lost = reason;
    },
  });
  const frame = (number: number, kind: Frame['kind'] = 'data', content = Buffer.alloc(10)): Frame => ({
    ...{ connection, number, kind, content },
  });
  return { sent, received, state, stream, frame };
}

test('encodes frames, and refuses unknown frames and frames that are too large', () => {
  const frame: Frame = { connection, number: 2 ** 40, kind: 'text', content: Buffer.from('{}') };
  const bytes = encodeFrame(frame);
  expect(decodeFrame(bytes)).toEqual(frame);
  expect(decodeFrame(bytes.subarray(0, 22))).toBeNull();
  expect(decodeFrame(encodeFrame({ ...frame, content: Buffer.alloc(maxContent) }))).not.toBeNull();
  expect(decodeFrame(encodeFrame({ ...frame, content: Buffer.alloc(maxContent + 1) }))).toBeNull();
  bytes.writeUInt8(99, 22);
  expect(decodeFrame(bytes)).toBeNull();
});

test('sends at most the window before the other end returns credit', async () => {
  const { sent, stream, frame } = openEnd();
  let accepted = false;
  stream.push('data', Buffer.alloc(2 * window), () => {
    accepted = true;
  });
  const size = () => sent.reduce((sum, { content }) => sum + costOf(content), 0);
  expect(size()).toBeLessThanOrEqual(window);
  expect(size()).toBeGreaterThan(window - costOf(Buffer.alloc(maxContent)));
  expect(stream.isWaiting).toBe(true);
  const credit = Buffer.alloc(4);
  for (let number = 1; number <= 3; number++) {
    credit.writeUInt32BE(window);
    stream.accept(frame(number, 'credit', credit));
  }
  await Promise.resolve();
  expect([stream.isWaiting, accepted]).toEqual([false, true]);
  expect(sent.map(({ number }) => number)).toEqual(sent.map((_, index) => index + 1));
});

test('returns credit once 64 KiB were consumed', () => {
  const { sent, stream } = openEnd();
  stream.consumed(64 * 1024 - 1);
  expect(sent).toEqual([]);
  stream.consumed(1);
  expect(sent).toMatchObject([{ kind: 'credit', content: Buffer.from([0, 1, 0, 0]) }]);
});

test('ignores repeated frames, and ends the connection if a frame is missing', () => {
  const { received, state, stream, frame } = openEnd();
  stream.accept(frame(1));
  stream.accept(frame(1));
  stream.accept(frame(2, 'text'));
  expect(received).toEqual(['data 10', 'text 10']);
  stream.accept(frame(4));
  expect(state.lost).toBe('gap');
  stream.accept(frame(3));
  expect(received).toHaveLength(2);
});

test('ends the connection if the other end exceeds the window', () => {
  const { state, stream, frame } = openEnd();
  for (let number = 1; state.lost === null && number < 100; number++)
    stream.accept(frame(number, 'data', Buffer.alloc(maxContent)));
  expect(state.lost).toBe('excess');
});

test('notifies the other end when the connection is lost, if a frame can still be sent', () => {
  const gap = openEnd();
  gap.stream.push('data', Buffer.alloc(2 * window));
  const { length } = gap.sent;
  gap.stream.accept(gap.frame(2));
  expect(gap.sent.slice(length)).toMatchObject([{ kind: 'cut', number: length + 1 }]);

  const silent = openEnd();
  silent.state.now = 10_000;
  silent.stream.sweep();
  expect(silent.sent).toMatchObject([{ kind: 'cut', number: 1 }]);

  const unsent = openEnd();
  unsent.state.isOpen = false;
  unsent.stream.push('data', Buffer.alloc(1));
  expect(unsent.sent).toMatchObject([{ kind: 'data' }]);
});

test('ends the connection ten seconds after the last received frame, and sends a frame every two seconds', () => {
  const { sent, state, stream, frame } = openEnd();
  state.now = 2_000;
  stream.sweep();
  expect(sent).toMatchObject([{ kind: 'alive' }]);
  stream.accept(frame(1, 'alive', Buffer.alloc(0)));
  state.now = 11_999;
  stream.sweep();
  expect(state.lost).toBeNull();
  state.now = 12_000;
  stream.sweep();
  expect(state.lost).toBe('silent');
});

test('sends the last frame and waiting texts without credit, and drops waiting data', async () => {
  const { sent, stream } = openEnd();
  let accepted = false;
  stream.push('data', Buffer.alloc(2 * window), () => {
    accepted = true;
  });
  stream.push('text', Buffer.from('{}'));
  const before = sent.length;
  stream.pushLast('cut');
  await Promise.resolve();
  expect(sent.slice(before).map(({ kind }) => kind)).toEqual(['text', 'cut']);
  expect(accepted).toBe(true);
});

test('joins waiting data, and keeps only the last of consecutive sizes', async () => {
  const { sent, stream, frame } = openEnd();
  stream.push('data', Buffer.alloc(window));
  const before = sent.length;
  let accepted = 0;
  for (let count = 0; count < 20_000; count++) stream.push('data', Buffer.alloc(1, count), () => void accepted++);
  for (let cols = 1; cols <= 20_000; cols++) stream.pushSize(Buffer.from(`${cols}`));
  const credit = Buffer.alloc(4);
  credit.writeUInt32BE(window);
  stream.accept(frame(1, 'credit', credit));
  await Promise.resolve();
  const [data, size, ...more] = sent.slice(before + 1);
  const expected = Buffer.from(Array.from({ length: 20_000 }, (_, count) => count % 256));
  expect(data!.content.subarray(-20_000).equals(expected)).toBe(true);
  expect([size, more, accepted]).toMatchObject([{ kind: 'text', content: Buffer.from('20000') }, [], 20_000]);
});

test('ends the connection if too many frames wait', () => {
  const { state, stream } = openEnd();
  stream.push('data', Buffer.alloc(2 * window));
  for (let count = 0; state.lost === null && count < 20_000; count++) {
    stream.push('data', Buffer.alloc(1));
    stream.pushSize(Buffer.from('{}'));
  }
  expect(state.lost).toBe('full');
});

test('sends only the last size before the last frame, which the other end accepts', () => {
  const { sent, stream } = openEnd();
  const other = openEnd();
  stream.push('data', Buffer.alloc(2 * window));
  for (let count = 0; count < 4_000; count++) {
    stream.pushSize(Buffer.alloc(40, count));
    stream.push('data', Buffer.alloc(1));
  }
  stream.push('text', Buffer.from('notice'));
  stream.pushLast('cut');
  for (const frame of sent) other.stream.accept(frame);
  expect(other.state.lost).toBeNull();
  expect(other.received.slice(-3)).toEqual(['text 40', 'text 6', 'cut 0']);
  expect(sent.at(-3)!.content).toEqual(Buffer.alloc(40, 3_999));
});

test('ends the connection if a frame cannot be sent', () => {
  const { state, stream } = openEnd();
  state.isOpen = false;
  stream.push('data', Buffer.alloc(1));
  expect(state.lost).toBe('unsent');
});
