import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { transcriptsFixture } from '../../../test/transcripts.ts';
import { outputLines } from '../cast.ts';
import type { Recording } from './transcripts.ts';

const id = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const idOf = (n: number) => `${id.slice(0, -2)}${String(n).padStart(2, '0')}`;
const never = (reason: Error) => {
  throw reason;
};
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const recorded = (recording: Recording, lines: string) =>
  new Promise<void>((done) => recording.append(lines, () => done()));

describeDatabases('transcripts', (fixture) => {
  const stores = transcriptsFixture(fixture);

  test('records lines in order, and returns transcripts with their digests, even after they are reopened', async () => {
    const at = await stores.place();
    const transcripts = await stores.open(at);
    expect([await transcripts.has(id), await transcripts.raw(id), await transcripts.cast(id)]).toEqual([
      false,
      null,
      null,
    ]);
    expect(await transcripts.digest(id)).toBeNull();
    const recording = await transcripts.create(id, never);
    expect(await transcripts.has(id)).toBe(true);
    const order: number[] = [];
    let text = '';
    for (let n = 0; n < 50; n++) {
      const line = outputLines(n, Buffer.from(`é${n} `));
      text += line;
      recording.append(line, () => order.push(n));
    }
    recording.append('', () => order.push(50));
    expect([recording.size, recording.written]).toEqual([Buffer.byteLength(text), 0]);
    const digest = await recording.finish();
    expect(order).toEqual(Array.from({ length: 51 }, (_, n) => n));
    const bytes = Buffer.from(text);
    expect(digest).toEqual({ sha256: sha256(bytes), bytes: bytes.length });
    expect([recording.size, recording.written, transcripts.recorded]).toEqual(Array(3).fill(bytes.length));
    const again = await stores.open(at);
    for (const one of [transcripts, again]) {
      expect(await one.digest(id)).toEqual(digest);
      expect(await buffer((await one.cast(id))!)).toEqual(bytes);
      expect(String(await buffer((await one.raw(id))!))).toBe(Array.from({ length: 50 }, (_, n) => `é${n} `).join(''));
      expect(Buffer.from(await one.part(id, 3, 900))).toEqual(bytes.subarray(3, 900));
      expect(Buffer.from(await one.part(id, bytes.length - 5, bytes.length + 5))).toEqual(bytes.subarray(-5));
      expect(await one.part(id, bytes.length, bytes.length + 5)).toHaveLength(0);
    }
  });

  test('makes lines readable by other processes before it confirms them', async () => {
    const at = await stores.place();
    const transcripts = await stores.open(at);
    const other = await stores.open(at);
    const recording = await transcripts.create(id, never);
    const first = outputLines(1, Buffer.from('first'));
    let found: Promise<Buffer | null> | null = null;
    recording.append(first, () => {
      found = other.cast(id).then(async (content) => content && (await buffer(content)));
    });
    await vi.waitFor(() => expect(found).not.toBeNull());
    expect(String(await found)).toBe(first);
    expect(recording.written).toBe(first.length);
    const more = outputLines(2, Buffer.from('more'));
    await recorded(recording, more);
    expect(String(await buffer((await transcripts.raw(id))!))).toBe('firstmore');
    // The lines that are recorded after the call are not part of its result.
    const before = (await transcripts.cast(id))!;
    await recorded(recording, more);
    expect(String(await buffer(before))).toBe(first + more);
    await recording.finish();
  });

  test('refuses a second transcript of a session, and IDs that are not session IDs', async () => {
    const transcripts = await stores.open(await stores.place());
    const recording = await transcripts.create(id, never);
    await expect(transcripts.create(id, never)).rejects.toThrow(/exists/);
    for (const tried of [`../${id}`, `/${id}`, `${id}\0`, '', 'x'.repeat(5000)]) {
      expect(await transcripts.has(tried), tried).toBe(false);
      expect(await transcripts.cast(tried), tried).toBeNull();
      expect(await transcripts.digest(tried), tried).toBeNull();
      await transcripts.repair(tried);
      await transcripts.remove(tried);
      await expect(transcripts.create(tried, never), tried).rejects.toThrow(TypeError);
    }
    await recording.finish();
  });

  test('lists transcripts in order and in pages, and removes them', async () => {
    const transcripts = await stores.open(await stores.place());
    for (const n of [3, 1, 5, 2, 4]) {
      const recording = await transcripts.create(idOf(n), never);
      recording.append(outputLines(n, Buffer.from(`${n}`)));
      await recording.finish();
    }
    const list = (after: string, below: string, limit: number) => transcripts.ids({ after, below, limit });
    expect(await list('', '~', 9)).toEqual([1, 2, 3, 4, 5].map(idOf));
    expect(await list(idOf(1), idOf(5), 2)).toEqual([2, 3].map(idOf));
    expect(await list(idOf(3), idOf(5), 2)).toEqual([idOf(4)]);
    await transcripts.remove(idOf(2));
    await transcripts.remove(idOf(2));
    expect([await transcripts.has(idOf(2)), await transcripts.cast(idOf(2))]).toEqual([false, null]);
    expect(await list('', '~', 9)).toEqual([1, 3, 4, 5].map(idOf));
    expect(String(await buffer((await transcripts.raw(idOf(3)))!))).toBe('3');
  });

  test('returns any part of a transcript, however its lines were appended', async () => {
    const transcripts = await stores.open(await stores.place());
    let drawn = 0;
    const lengths = fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.nat(), fc.nat(3_000_000), fc.boolean(), async (all, from, length, waits) => {
        const sessionId = idOf(++drawn % 100);
        const recording = await transcripts.create(sessionId, never);
        const lines = all.map((size, n) => String.fromCharCode(97 + n).repeat(size));
        for (const line of lines)
          if (waits) await recorded(recording, line);
          else recording.append(line);
        const digest = await recording.finish();
        const content = Buffer.from(lines.join(''));
        expect(digest).toEqual({ sha256: sha256(content), bytes: content.length });
        expect(await transcripts.digest(sessionId)).toEqual(digest);
        const start = from % (content.length + 1);
        const part = await transcripts.part(sessionId, start, start + length);
        expect(Buffer.from(part).equals(content.subarray(start, start + length))).toBe(true);
        await transcripts.remove(sessionId);
      }),
      { numRuns: 25 },
    );
  });

  test('syncs all open transcripts twice a second with one timer, and each transcript when it is finished', async () => {
    const clock = new ManualClock();
    const transcripts = await stores.open(await stores.place(), { clock });
    const after = vi.spyOn(clock, 'after');
    const recordings = await Promise.all([1, 2, 3].map((n) => transcripts.create(idOf(n), never)));
    expect([transcripts.syncs, after.mock.calls.length]).toEqual([0, 0]);
    for (let round = 1; round <= 3; round++) {
      await Promise.all(recordings.map((recording) => recorded(recording, '{}\n')));
      await vi.waitFor(() => expect(after).toHaveBeenCalledTimes(round));
      expect(after.mock.calls[0]?.[0]).toBe(500);
      const before = transcripts.syncs;
      clock.advance(500);
      await vi.waitFor(() => expect(transcripts.syncs).toBe(before + (fixture.kind === 'sqlite' ? 3 : 1)));
    }
    await Promise.all(recordings.map((recording) => recording.finish()));
  });
});
