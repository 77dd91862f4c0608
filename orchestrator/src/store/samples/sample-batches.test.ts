import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import { describe, expect, test } from 'vitest';
import { sampleAt } from '../../../test/samples.ts';
import { type SampleBatch, SampleBatches } from './sample-batches.ts';

/** Creates batches whose commits are completed by the test. */
function createBatches(gatherMs = 20) {
  const commits: { batch: SampleBatch; done: () => void; fail: (error: Error) => void }[] = [];
  const batches = new SampleBatches(
    (batch) => new Promise((resolve, reject) => commits.push({ batch, done: resolve, fail: reject })),
    gatherMs,
  );
  return { commits, batches };
}

describe('sample batches', () => {
  test('runs one commit at a time, and collects samples during a commit', async () => {
    const { commits, batches } = createBatches();
    const first = batches.add('a', [sampleAt(1), sampleAt(2)]);
    await sleep(40);
    const rest = [batches.add('b', [sampleAt(3)]), batches.add('c', [sampleAt(4)])];
    await sleep(40);
    expect(commits.map(({ batch }) => batch.nodes)).toEqual([['a', 'a']]);
    expect(batches.stats).toEqual({ queued: 4, stored: 0, commits: 0, failed: 0, trouble: null });
    commits[0]!.done();
    await first;
    await sleep(0);
    expect(commits[1]?.batch.nodes).toEqual(['b', 'c']);
    commits[1]?.done();
    await Promise.all(rest);
    expect(batches.stats).toEqual({ queued: 0, stored: 4, commits: 2, failed: 0, trouble: null });
  });

  test('commits a large batch without waiting', async () => {
    const { commits, batches } = createBatches(60_000);
    const few = batches.add('a', [sampleAt(1)]);
    expect(commits).toEqual([]);
    const many = batches.add(
      'b',
      Array.from({ length: 999 }, (_, n) => sampleAt(n)),
    );
    expect(commits[0]?.batch.nodes.length).toBe(1000);
    commits[0]?.done();
    await Promise.all([few, many]);
  });

  test('rejects all samples of a failed commit, and continues with the next commit', async () => {
    const { commits, batches } = createBatches();
    const both = [batches.add('a', [sampleAt(1)]), batches.add('b', [sampleAt(1)])];
    await sleep(40);
    commits[0]!.fail(new MusterError('storage_full'));
    for (const one of both) await expect(one).rejects.toMatchObject({ code: 'storage_full' });
    expect(batches.stats.trouble).toBe(new MusterError('storage_full').message);
    const next = batches.add('a', [sampleAt(1)]);
    await sleep(40);
    commits[1]!.done();
    await next;
    expect(batches.stats).toEqual({ queued: 0, stored: 1, commits: 1, failed: 2, trouble: null });
  });

  test('refuses samples beyond the maximum', async () => {
    const { commits, batches } = createBatches();
    const many = Array.from({ length: 150_000 }, (_, n) => sampleAt(n));
    const first = batches.add('a', many);
    await expect(batches.add('b', many)).rejects.toMatchObject({ code: 'storage_unavailable' });
    commits[0]!.done();
    await first;
  });

  test('commits accepted samples on close, and refuses new samples', async () => {
    const { commits, batches } = createBatches();
    const adding = batches.add('a', [sampleAt(1)]);
    let closed = false;
    const closing = batches.close().then(() => {
      closed = true;
    });
    await expect(batches.add('a', [sampleAt(2)])).rejects.toMatchObject({ code: 'draining' });
    await sleep(0);
    expect(closed).toBe(false);
    commits[0]!.done();
    await adding;
    await closing;
  });
});
