import { limits } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { liveBytes } from '../../../../lib/test/live-memory.ts';
import { codePoint } from '../../../../protocol/test/code-point.ts';
import { LiveOutput } from './live-output.ts';

const source = { operation_id: '01HZZZZZZZZZZZZZZZZZZZ0001', resource: 'site/deploy' };
const bytesOf = (message: object): number => Buffer.byteLength(JSON.stringify(message));

describe('live output', () => {
  test('streams all output of a program that prints less than the limit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ unit: codePoint, maxLength: 12 }), fc.nat(60), fc.boolean()), { maxLength: 10 }),
        (said) => {
          const text = said.map(([one]) => one.toWellFormed()).join('');
          const bytes = Buffer.from(text);
          const live = new LiveOutput(() => {});
          let [at, shown, taken] = [0, '', 0];
          const take = () => {
            const piece = live.take()?.stdout ?? null;
            if (piece === null) return;
            expect(piece.from).toBe(taken);
            expect(piece.to - piece.from).toBe(Buffer.byteLength(piece.text));
            taken = piece.to;
            shown += piece.text;
          };
          // Splits the output at random positions, even within characters.
          for (const [, length, taking] of said) {
            live.add(source, 'stdout', bytes.subarray(at, at + length));
            at += length;
            if (taking) take();
          }
          live.add(source, 'stdout', bytes.subarray(at));
          take();
          expect(shown).toBe(text);
        },
      ),
    );
  });

  test('streams only the last part of longer output, and stays within the limit for any bytes', () => {
    const pieces = fc.oneof(
      fc.uint8Array({ maxLength: 9_000 }),
      fc.constantFrom(0, 0x1b, 0x22, 0x80, 0xff, 0xf0).map((byte) => Buffer.alloc(5_000, byte)),
      fc.constantFrom('漢', '😀', 'é').map((one) => Buffer.from(one.repeat(2_000))),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(pieces, fc.boolean()), { minLength: 1, maxLength: 6 }), (said) => {
        const live = new LiveOutput(() => {});
        const ends = { stdout: 0, stderr: 0 };
        for (const [bytes, isError] of said) {
          const stream = isError ? 'stderr' : 'stdout';
          live.add(source, stream, Buffer.from(bytes));
          ends[stream] += bytes.length;
        }
        const message = live.take();
        if (message === null) return;
        expect(bytesOf(message)).toBeLessThanOrEqual(limits.outputProgressBytes);
        for (const stream of ['stdout', 'stderr'] as const) {
          const piece = message[stream];
          if (piece === null) continue;
          // A chunk contains all bytes except those of an incomplete character.
          expect(piece.to).toBeGreaterThanOrEqual(ends[stream] - 3);
          expect(piece.to).toBeLessThanOrEqual(ends[stream]);
          expect(piece.from).toBeLessThan(piece.to);
        }
        expect(live.take()).toBeNull();
      }),
    );
  });

  test('keeps only a bounded part of long output in memory', () => {
    const live = new LiveOutput(() => {});
    const piece = Buffer.alloc(64 * 1024, 'x');
    const before = liveBytes();
    let maxGrowth = 0;
    // `npm run soak -- kill-steps` adds 1 GiB, `npm test` 128 MiB.
    const pieces = process.env.MUSTER_EVERY_STEP === undefined ? 2 * 1024 : 16 * 1024;
    for (let i = 0; i < pieces; i++) {
      live.add(source, 'stdout', piece);
      if (i % 256 === 250) maxGrowth = Math.max(maxGrowth, liveBytes() - before);
    }
    // The limit is far below the size of the output. On a busy machine, uncollected garbage can add as much as 4.3 MiB.
    expect(maxGrowth).toBeLessThan(16 * 1024 * 1024);
    expect(live.take()?.stdout).toMatchObject({ to: pieces * piece.length });
  });

  test('streams only the output of the running program, and nothing after its operation has finished', () => {
    const live = new LiveOutput(() => {});
    live.add(source, 'stdout', Buffer.from('one'));
    live.add({ ...source, resource: 'site/next' }, 'stderr', Buffer.from('two'));
    expect(live.take()).toMatchObject({ resource: 'site/next', stdout: null, stderr: { from: 0, to: 3, text: 'two' } });
    live.add({ ...source, resource: 'site/next' }, 'stderr', Buffer.from('three'));
    live.forget('another');
    live.forget(source.operation_id);
    expect(live.take()).toBeNull();
  });

  test('streams nothing if the resource name leaves no room in the frame', () => {
    const live = new LiveOutput(() => {});
    live.add({ ...source, resource: `site/${'\u0001'.repeat(400)}` }, 'stdout', Buffer.from('one'));
    expect(live.take()).toBeNull();
  });
});
