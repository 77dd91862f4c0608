import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maxGapMs, PeerWatch, stillMs } from './peer-watch.ts';

const peer = (beat: number) => ({ incarnation: 'peer', beat });

test('closes a peer whose heartbeat counter does not change for ten seconds', () => {
  const watch = new PeerWatch();
  for (let at = 0; at < stillMs; at += 2_000) expect(watch.read([peer(1)], at)).toEqual([]);
  expect(watch.read([peer(1)], stillMs)).toEqual([peer(1)]);
});

test('closes no peer after being suspended until it has watched the peer for ten seconds', () => {
  const watch = new PeerWatch();
  watch.read([peer(1)], 0);
  expect(watch.read([peer(1)], 60_000)).toEqual([]);
  for (let at = 62_000; at < 70_000; at += 2_000) expect(watch.read([peer(1)], at)).toEqual([]);
  expect(watch.read([peer(1)], 70_000)).toEqual([peer(1)]);
});

test('closes exactly the peers without a new heartbeat in the reads of the last ten seconds, if the reads have no gaps', () => {
  const read = fc.record({
    pass: fc.integer({ min: 1, max: maxGapMs + 500 }),
    beats: fc.boolean(),
    there: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(read, { maxLength: 60 }), (reads) => {
      const watch = new PeerWatch();
      let at = 0;
      let beat = 0;
      /** Time of the first of the consecutive reads with the same heartbeat; null before the first read. */
      let since: number | null = null;
      for (const { pass, beats, there } of reads) {
        at += pass;
        if (beats) beat++;
        if (!there) since = null;
        else if (since === null || beats || pass > maxGapMs) since = at;
        const closed = watch.read(there ? [peer(beat)] : [], at);
        expect(closed.length > 0).toBe(since !== null && at - since >= stillMs);
      }
    }),
  );
});
