import { measureNames, type Sample } from '@muster/protocol';
import { agentMessageSchema, limits } from '@muster/protocol/wire';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { SampleBuffer } from '../metrics/sample-buffer.ts';
import { MetricsSender } from './metrics-sender.ts';

let clock: ManualClock;
let buffer: SampleBuffer;
let sent: { bytes: number; times: number[] }[];
let window: number;
let random: number;

beforeEach(() => {
  clock = new ManualClock();
  buffer = new SampleBuffer(3_000);
  sent = [];
  window = limits.unacknowledgedBytes;
  random = 0.5;
});

const sampleOf = (collected_at: number, value: number | null = 5): Sample =>
  ({ collected_at, ...Object.fromEntries(measureNames.map((name) => [name, value])) }) as Sample;
const add = (...at: number[]) => {
  for (const time of at) buffer.push(sampleOf(time));
};

function link(intervalMs = 60_000): MetricsSender {
  const sender = new MetricsSender({
    buffer,
    clock,
    random: () => random,
    intervalMs,
    write: (text) => {
      const message = agentMessageSchema.parse(JSON.parse(text));
      if (message.type !== 'metrics') throw new Error(message.type);
      sent.push({ bytes: text.length, times: message.samples.map(({ collected_at }) => collected_at) });
    },
    reserve: (bytes) => {
      if (bytes > window) return false;
      window -= bytes;
      return true;
    },
    release: (bytes) => {
      window += bytes;
    },
  });
  sender.setEnabled(true);
  return sender;
}
const sentTimes = () => sent.map(({ times }) => times);

describe('samples on a link', () => {
  test('sends samples at a random time within the first interval, and then once per interval with 10 % jitter', () => {
    random = 0.25;
    const sender = link();
    add(1, 2);
    clock.advance(14_999);
    expect(sent).toEqual([]);
    clock.advance(1);
    expect(sentTimes()).toEqual([[1, 2]]);
    add(3);
    clock.advance(60_000);
    // Only one message may be unacknowledged at a time.
    expect(sent).toHaveLength(1);
    sender.stored(2);
    random = 0.999999;
    clock.advance(60_000 * 0.95 - 1);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sentTimes()).toEqual([[1, 2], [3]]);
    sender.stored(3);
    add(4);
    clock.advance(60_000 * 1.0999);
    expect(sent).toHaveLength(2);
    clock.advance(60);
    expect(sentTimes().at(-1)).toEqual([4]);
    expect(buffer.first).toBe(3);
  });

  test('spreads the samples of a thousand agents that reconnect at the same time over the interval', () => {
    const agents = 1_000;
    const moments: number[] = [];
    let state = 7;
    const pseudorandom = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    for (let agent = 0; agent < agents; agent++) {
      const [own, time] = [new SampleBuffer(8), new ManualClock()];
      const began = time.now();
      own.push(sampleOf(1));
      const sender: MetricsSender = new MetricsSender({
        buffer: own,
        clock: time,
        random: pseudorandom,
        intervalMs: 60_000,
        write: (text) => {
          const { samples } = JSON.parse(text) as { samples: Sample[] };
          moments.push(time.now() - began);
          // Replies in the next event-loop turn, and adds a sample before the turn after that.
          time.after(0, () => {
            sender.stored(samples.at(-1)!.collected_at);
            own.push(sampleOf(samples.at(-1)!.collected_at + 60));
          });
        },
        reserve: () => true,
        release: () => {},
      });
      sender.setEnabled(true);
      time.advance(3 * 60_000);
    }
    const perSecond = new Array<number>(180).fill(0);
    for (const at of moments) perSecond[Math.min(179, Math.floor(at / 1_000))]!++;
    // The average is 16.7 messages a second. 50 is seven standard errors above it.
    expect(Math.max(...perSecond)).toBeLessThan(50);
    for (let minute = 0; minute < 3; minute++) {
      const inMinute = perSecond.slice(minute * 60, minute * 60 + 60).reduce((sum, n) => sum + n, 0);
      expect(inMinute).toBeGreaterThan(agents * 0.9);
      expect(inMinute).toBeLessThan(agents * 1.1);
    }
  });

  test('sends samples from before the link immediately, in messages of at most half the window', () => {
    const sender = link();
    const many = Array.from({ length: 500 }, (_, n) => 1_800_000_000 + n * 30);
    for (const time of many)
      buffer.push({ ...sampleOf(time, Number.MAX_SAFE_INTEGER), cpu_usage: 33.33, load1: 123_456_789.12 });
    clock.advance(30_000);
    for (let messages = 1; buffer.first < buffer.end; messages++) {
      expect(sent).toHaveLength(messages);
      sender.stored(sent.at(-1)!.times.at(-1)!);
    }
    expect(sentTimes().flat()).toEqual(many);
    expect(Math.max(...sent.map(({ bytes }) => bytes))).toBeLessThanOrEqual(4_096);
    expect(sent.length).toBeLessThan(70);
    expect(window).toBe(limits.unacknowledgedBytes);
    // Samples taken in between wait for the next message, so that a single sample does not cause a message.
    add(1_900_000_000);
    expect(buffer.end - buffer.first).toBe(1);
    const before = sent.length;
    clock.advance(53_000);
    expect(sent).toHaveLength(before);
    clock.advance(14_000);
    expect(sentTimes().at(-1)).toEqual([1_900_000_000]);
  });

  test('limits the number of samples in a message', () => {
    const sender = link();
    for (let time = 1; time <= 60; time++) buffer.push(sampleOf(time, null));
    clock.advance(30_000);
    expect(sentTimes()[0]!.length).toBeLessThanOrEqual(limits.samplesOfMessage);
    expect(sent[0]!.bytes).toBeLessThanOrEqual(4_096);
    sender.end();
  });

  test('sends samples again on the next link if the response was lost', () => {
    const first = link();
    add(1, 2);
    clock.advance(30_000);
    first.end();
    first.stored(2);
    add(3);
    expect(clock.next).toBeNull();
    const second = link();
    clock.advance(30_000);
    expect(sentTimes()).toEqual([
      [1, 2],
      [1, 2, 3],
    ]);
    second.stored(3);
    expect(buffer.first).toBe(3);
  });

  test('resends unacknowledged samples after five minutes, without delaying reports', () => {
    const sender = link();
    add(1);
    clock.advance(30_000);
    expect(window).toBeLessThan(limits.unacknowledgedBytes);
    clock.advance(10_000);
    expect(window).toBe(limits.unacknowledgedBytes);
    add(2);
    clock.advance(289_999);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sentTimes()).toEqual([[1], [1, 2]]);
    // The late reply to the first message acknowledges its samples. The other samples are sent immediately.
    sender.stored(1);
    expect(sentTimes().at(-1)).toEqual([2]);
    sender.stored(2);
    expect(window).toBe(limits.unacknowledgedBytes);
  });

  test('resends refused samples at the requested time, with later samples', () => {
    const sender = link();
    // These replies do not belong to any message.
    sender.refused(1);
    sender.setEnabled(false);
    sender.refused(1);
    sender.setEnabled(true);
    add(1);
    clock.advance(29_999);
    expect(sent).toEqual([]);
    clock.advance(1);
    sender.refused(30_000);
    expect(window).toBe(limits.unacknowledgedBytes);
    add(2);
    // All agents receive the same delay, so each agent adds a random part.
    clock.advance(44_999);
    expect(sent).toHaveLength(1);
    clock.advance(1);
    expect(sentTimes()).toEqual([[1], [1, 2]]);
    sender.stored(2);
    add(3);
    clock.advance(60_000);
    expect(sentTimes().at(-1)).toEqual([3]);
  });

  test('sends samples only after reports that fill the window', () => {
    link();
    window = 100;
    add(1);
    clock.advance(30_000);
    expect(sent).toEqual([]);
    clock.advance(5_000);
    expect(sent).toEqual([]);
    window = 8_000;
    clock.advance(1_000);
    expect(sentTimes()).toEqual([[1]]);
  });

  test('sends samples only after the agent is approved', () => {
    const sender = link();
    add(1);
    sender.setEnabled(false);
    clock.advance(600_000);
    expect(sent).toEqual([]);
    sender.setEnabled(true);
    clock.advance(30_000);
    expect(sentTimes()).toEqual([[1]]);
    sender.setEnabled(false);
    expect(window).toBe(limits.unacknowledgedBytes);
    expect(clock.next).toBeNull();
    sender.stored(1);
    expect(buffer.first).toBe(0);
  });

  test('drops only samples that the acknowledged message contained', () => {
    const sender = link();
    add(10, 20);
    sender.stored(20);
    expect(buffer.first).toBe(0);
    clock.advance(30_000);
    add(30);
    sender.stored(5);
    expect(sent).toHaveLength(1);
    expect(buffer.first).toBe(0);
    // The reply covers more samples than were sent.
    sender.stored(1_000);
    expect(buffer.first).toBe(2);
    sender.stored(1_000);
    expect(buffer.first).toBe(2);
  });

  test('keeps newer samples if the buffer drops older ones while they are in transit', () => {
    buffer = new SampleBuffer(2);
    const sender = link();
    add(1, 2);
    clock.advance(30_000);
    add(3, 4);
    sender.stored(2);
    expect(buffer.first).toBe(2);
    expect(buffer.end).toBe(4);
  });

  test('sends samples at a long interval if the orchestrator requests it', () => {
    link(1e12);
    add(1);
    clock.advance(1_000_000_000);
    expect(sent).toEqual([]);
  });
});
