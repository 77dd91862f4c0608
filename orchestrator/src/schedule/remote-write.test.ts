import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { sampleAt } from '../../test/samples.ts';
import type { NamedSamples } from '../domain/fleet/sample-forwarding.ts';
import type { Attempt } from '../domain/notifications/delivery.ts';
import type { Context } from '../domain/shared/context.ts';
import { startRemoteWrite } from './remote-write.ts';

type Outcome = Attempt | number | 'hang';
const refusal = (status: number, text?: string): Attempt => ({
  status,
  retryAfterMs: null,
  ...(text === undefined ? {} : { text }),
});

function started({ capacity = 10_000, judge = (_batch: NamedSamples[]): Outcome => 204 } = {}) {
  const clock = new ManualClock();
  const lines: { fields: Record<string, unknown>; message: string }[] = [];
  const keep = (fields: object, message: string) => void lines.push({ fields: { ...fields }, message });
  const context = {
    db: {
      all: async (_query: unknown, { ids }: { ids: string[] }) => ids.map((id) => ({ node_id: id, name: `n-${id}` })),
    },
    now: () => clock.now(),
    log: { debug: keep, info: keep, warn: keep, error: keep },
  } as unknown as Context;
  const requests: NamedSamples[][] = [];
  const signals: AbortSignal[] = [];
  const far = { judge };
  const remote = startRemoteWrite(context, clock, {
    capacity,
    random: () => 0,
    write: (batch, { signal }) => {
      requests.push([...batch]);
      const outcome = far.judge([...batch]);
      if (typeof outcome === 'number') return Promise.resolve(refusal(outcome));
      if (outcome !== 'hang') return Promise.resolve(outcome);
      signals.push(signal as AbortSignal);
      return new Promise((resolve) =>
        signal?.addEventListener('abort', () => resolve({ status: null, reason: 'it was canceled' })),
      );
    },
  });
  const now = Math.floor(clock.now() / 1000);
  /** Runs all pending work that does not wait for a timer. */
  const settled = async () => {
    for (let n = 0; n < 40; n++) await turn();
  };
  const after = async (ms: number) => {
    clock.advance(ms);
    await settled();
  };
  const sizes = () => requests.map((batch) => batch.reduce((sum, { samples }) => sum + samples.length, 0));
  return { clock, remote, requests, lines, far, now, settled, after, sizes, signals };
}

const times = (from: number, count: number) => Array.from({ length: count }, (_, n) => sampleAt(from + n));

describe('remote write', () => {
  test('collects samples for a second or until a request is full, in order and with agent names', async () => {
    const { remote, requests, now, settled, after, sizes } = started();
    remote.take('a', times(now - 1000, 150));
    remote.take('b', times(now - 1000, 150));
    await settled();
    expect(sizes()).toEqual([200]);
    expect(requests[0]?.map(({ nodeId, name }) => [nodeId, name])).toEqual([
      ['a', 'n-a'],
      ['b', 'n-b'],
    ]);
    remote.take('a', times(now, 1));
    await after(999);
    expect(sizes()).toEqual([200]);
    await after(1);
    expect(sizes()).toEqual([200, 101]);
    expect(
      requests.flatMap((batch) => batch.filter(({ nodeId }) => nodeId === 'b')).flatMap(({ samples }) => samples),
    ).toEqual(times(now - 1000, 150));
    expect(remote.stats()).toEqual({ queued: 0, sent: 301, overflowed: 0, refused: 0, passedOver: 0, retries: 0 });
    await remote.stop();
  });

  test('retries failed writes with backoff, and respects Retry-After', async () => {
    const { remote, far, requests, lines, now, settled, after } = started();
    far.judge = () => 503;
    remote.take('a', times(now - 10, 3));
    await settled();
    await after(1000);
    expect(requests).toHaveLength(1);
    // With a random number of 0, each delay is halved.
    for (const [index, ms] of [250, 500, 1000, 2000].entries()) {
      await after(ms - 1);
      expect(requests).toHaveLength(index + 1);
      await after(1);
      expect(requests).toHaveLength(index + 2);
    }
    far.judge = () => ({ status: 429, retryAfterMs: 90_000 });
    await after(4000);
    expect(requests).toHaveLength(6);
    far.judge = () => ({ status: null, reason: 'the connection was refused' });
    await after(89_999);
    expect(requests).toHaveLength(6);
    await after(1);
    expect(requests).toHaveLength(7);
    expect(remote.stats()).toMatchObject({ queued: 3, sent: 0, retries: 7 });
    far.judge = () => 204;
    await after(60_000);
    expect(remote.stats()).toMatchObject({ queued: 0, sent: 3, refused: 0 });
    for (const batch of requests) expect(batch).toEqual(requests[0]);
    expect(lines.map(({ message }) => message)).toEqual([
      'failed to send samples to the remote-write endpoint; will queue samples in memory and retry',
      'the remote-write endpoint recovered; sending queued samples',
    ]);
    await remote.stop();
  });

  test('drops, counts, and logs only refused samples', async () => {
    const { remote, far, lines, now, requests, settled } = started();
    far.judge = (batch) =>
      batch.some(({ nodeId }) => nodeId === 'bad') ? refusal(400, 'out of\n\u001b[31morder') : 204;
    for (const id of ['a', 'b', 'c']) remote.take(id, times(now - 100, 40));
    remote.take('bad', times(now - 100, 1));
    for (const id of ['d', 'e', 'f', 'g']) remote.take(id, times(now - 100, 40));
    await settled();
    await settled();
    expect(remote.stats()).toMatchObject({ sent: 199, refused: 1, queued: 81 });
    const taken = requests.filter((batch) => far.judge(batch) === 204).flat();
    for (const id of ['a', 'b', 'c', 'd'])
      expect(taken.filter(({ nodeId }) => nodeId === id).flatMap(({ samples }) => samples)).toEqual(
        times(now - 100, 40),
      );
    remote.take('bad', times(now - 50, 1));
    await remote.stop();
    expect(remote.stats()).toMatchObject({ sent: 280, refused: 2, queued: 0 });
    const dropped = lines.filter(({ message }) => message.includes('dropped'));
    expect(dropped).toHaveLength(1);
    expect(dropped[0]?.fields).toEqual({ samples: 1, reason: 'the receiver answered 400: out of [31morder' });
  });

  test('splits a refused batch a limited number of times, and only if its samples may be the cause', async () => {
    const { remote, far, now, requests, settled } = started();
    far.judge = () => 400;
    remote.take('a', times(now - 1000, 200));
    await settled();
    await settled();
    expect(remote.stats()).toMatchObject({ sent: 0, refused: 200, queued: 0 });
    expect(requests.length).toBeLessThanOrEqual(64);
    for (const status of [401, 403, 404, 302]) {
      const before = requests.length;
      far.judge = () => status;
      remote.take(`of ${status}`, times(now - 1000, 200));
      await settled();
      expect(requests.length - before).toBe(1);
    }
    expect(remote.stats()).toMatchObject({ sent: 0, refused: 1000, queued: 0 });
    await remote.stop();
  });

  test('splits batches into fewer parts until the server accepts a sample', async () => {
    const { remote, far, now, requests, settled } = started();
    far.judge = () => 400;
    const cost: number[] = [];
    const batch = async (name: string) => {
      const before = requests.length;
      remote.take(name, times(now - 1000, 200));
      for (let n = 0; n < 3; n++) await settled();
      cost.push(requests.length - before);
    };
    for (let n = 0; n < 7; n++) await batch(`a${n}`);
    expect(cost[0]).toBeGreaterThan(20);
    expect(cost.slice(-2)).toEqual([3, 3]);
    far.judge = () => 204;
    await batch('b');
    far.judge = (named) =>
      named.some(({ samples }) => samples.some((of) => of.collected_at === now - 900)) ? 400 : 204;
    await batch('c');
    expect(cost.slice(-2)).toEqual([1, 15]);
    expect(remote.stats()).toMatchObject({ sent: 399, refused: 1401 });
    await remote.stop();
  });

  test('drops the oldest samples when the queue is full', async () => {
    const { remote, far, now, settled, after, requests } = started({ capacity: 1000 });
    far.judge = () => 500;
    for (let n = 0; n < 30; n++) remote.take(`a${n}`, times(now - 1000, 100));
    await settled();
    expect(remote.stats()).toMatchObject({ sent: 0, overflowed: 2000 });
    expect(remote.stats().queued).toBe(1000);
    far.judge = () => 204;
    await after(60_000);
    await after(60_000);
    expect(remote.stats()).toMatchObject({ sent: 1000, queued: 0 });
    expect(requests.at(-1)?.at(-1)?.nodeId).toBe('a29');
    await remote.stop();
  });

  test('sends each sample once, and skips old samples and samples from the far future', async () => {
    const { remote, now, requests } = started();
    remote.take('a', [sampleAt(now - 30), sampleAt(now - 60)]);
    remote.take('a', [sampleAt(now - 30), sampleAt(now - 60), sampleAt(now)]);
    remote.take('b', [sampleAt(now - 45), sampleAt(now + 301), sampleAt(now + 300)]);
    await remote.stop();
    const seen = requests
      .flat()
      .map(({ nodeId, samples }) => [nodeId, ...samples.map((one) => one.collected_at - now)]);
    expect(seen).toEqual([
      ['a', -60, -30, 0],
      ['b', -45, 300],
    ]);
    expect(remote.stats()).toMatchObject({ sent: 5, passedOver: 3 });
  });

  test('writes queued samples once on stop without waiting for a hanging server', async () => {
    const well = started();
    well.remote.take('a', times(well.now - 10, 5));
    await well.remote.stop();
    expect(well.remote.stats()).toMatchObject({ sent: 5, queued: 0 });
    well.remote.take('a', times(well.now, 5));
    expect(well.remote.stats()).toMatchObject({ queued: 0 });

    const stuck = started({ judge: () => 'hang' });
    stuck.remote.take('a', times(stuck.now - 300, 250));
    await stuck.settled();
    let stopped = false;
    const stopping = stuck.remote.stop().then(() => {
      stopped = true;
    });
    await stuck.after(2999);
    expect(stopped).toBe(false);
    await stuck.after(1);
    await stopping;
    expect(stuck.lines.at(-1)).toEqual({
      fields: { samples: 250 },
      message: 'remote write stopped before all samples were sent',
    });

    const failing = started({ judge: () => 500 });
    failing.remote.take('a', times(failing.now - 10, 5));
    await failing.settled();
    await failing.after(1000);
    await failing.remote.stop();
    expect(failing.requests).toHaveLength(2);
  });

  test('sends each sample at most once and in order, and counts every sample, for any sequence of responses', async () => {
    const answers = fc.array(fc.constantFrom(204, 204, 400, 413, 429, 500, 404), { maxLength: 60 });
    const takes = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: -5000, max: 400 }), fc.integer({ min: 1, max: 48 })),
      { maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(answers, takes, async (given, taken) => {
        const left = [...given];
        const arrived: NamedSamples[] = [];
        const { remote, now, after } = started({
          capacity: 1000,
          judge: (batch) => {
            const status = left.shift() ?? 204;
            if (status < 300) arrived.push(...batch);
            return status;
          },
        });
        let count = 0;
        for (const [node, from, length] of taken) {
          remote.take(node, times(now + from, length));
          count += length;
          await after(400);
        }
        for (let n = 0; n < 70; n++) await after(60_000);
        const { queued, sent, overflowed, refused, passedOver } = remote.stats();
        expect(queued).toBe(0);
        expect(sent + overflowed + refused + passedOver).toBe(count);
        for (const node of ['a', 'b', 'c']) {
          const seen = arrived
            .filter(({ nodeId }) => nodeId === node)
            .flatMap(({ samples }) => samples.map((one) => one.collected_at));
          expect(seen).toEqual([...new Set(seen)].sort((one, other) => one - other));
        }
        await remote.stop();
      }),
      { numRuns: 25 },
    );
  });
});
