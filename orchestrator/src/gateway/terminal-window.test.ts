import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputQueue, OutputWindow, Pieces } from './terminal-window.ts';

const numbered = (from: number, length: number) => Uint8Array.from({ length }, (_, at) => (from + at) % 251);

describe('the terminal output window', () => {
  test('returns credit in quarter-window steps, and never twice for a byte', () => {
    const window = new OutputWindow(1000);
    expect(window.receive(1000)).toBe(true);
    expect([window.take(100), window.take(149), window.take(1), window.take(249), window.take(501)]).toEqual([
      0, 0, 250, 0, 750,
    ]);
    expect(window.receive(1000)).toBe(true);
    expect(window.receive(1)).toBe(false);
  });

  test('throws if more bytes are marked as processed than were received', () => {
    const window = new OutputWindow(1000);
    window.receive(400);
    window.take(100);
    expect(() => window.take(301)).toThrow('cannot mark 301 terminal bytes as processed: only 300 are outstanding');
    for (const odd of [-1, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => window.take(odd)).toThrow(RangeError);
    expect(window.take(300)).toBe(400);
  });

  test('neither refuses nor blocks a sender that respects its credit', () => {
    const step = fc.record({ send: fc.nat(600), take: fc.double({ min: 0, max: 1, noNaN: true }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.array(step, { maxLength: 60 }), (size, steps) => {
        const window = new OutputWindow(size);
        let available = size;
        let shown = 0;
        const send = (requested: number) => {
          const bytes = Math.min(requested, available);
          available -= bytes;
          shown += bytes;
          expect(window.receive(bytes)).toBe(true);
        };
        const take = (bytes: number) => {
          shown -= bytes;
          available += window.take(bytes);
          expect(available).toBeLessThanOrEqual(size);
        };
        for (const { send: requested, take: part } of steps) {
          send(requested);
          take(Math.floor(shown * part));
        }
        take(shown);
        expect(available * 4).toBeGreaterThan(size * 3 - 4);
        send(available);
        expect(window.receive(1)).toBe(false);
      }),
    );
  });
});

describe('chunks of terminal output', () => {
  test('delivers all output without stalling, with at most one chunk more than the maximum in flight', () => {
    const step = fc.record({ show: fc.nat(20), take: fc.double({ min: 0, max: 1, noNaN: true }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (maxPieces, steps) => {
        const window = 100;
        const pieces = new Pieces(maxPieces, window);
        const shown: number[] = [];
        let came = 0;
        let taken = 0;
        /** End offsets of unprocessed chunks. */
        let ends: number[] = [];
        const record = (piece: Uint8Array | null) => {
          if (piece === null) return;
          shown.push(...piece);
          ends.push(shown.length);
          expect(ends.length).toBeLessThanOrEqual(maxPieces + 1);
        };
        const take = (bytes: number) => {
          taken += bytes;
          ends = ends.filter((end) => end > taken);
          record(pieces.take(bytes));
        };
        for (const { show, take: part } of steps) {
          const length = Math.min(show, window - (came - taken));
          if (length > 0) record(pieces.receive(numbered(came, length)));
          came += length;
          take(Math.floor((shown.length - taken) * part));
        }
        while (taken < shown.length) take(shown.length - taken);
        expect(shown).toEqual([...numbered(0, came)]);
        expect(pieces.rest()).toBeNull();
      }),
    );
  });

  test('returns the remaining output at the end', () => {
    const pieces = new Pieces(1, 10);
    expect(pieces.receive(numbered(0, 2))).toEqual(numbered(0, 2));
    expect([pieces.receive(numbered(2, 3)), pieces.receive(numbered(5, 5))]).toEqual([null, null]);
    expect([pieces.rest(), pieces.rest()]).toEqual([numbered(2, 8), null]);
  });
});

describe('terminal input', () => {
  test('sends input in maximum-size chunks, joins small chunks, and waits for credit', () => {
    const queue = new InputQueue(10, 4);
    expect(queue.push(numbered(0, 1))).toBe(true);
    expect(queue.push(numbered(1, 9))).toBe(true);
    expect(queue.push(numbered(10, 1))).toBe(false);
    expect([queue.next(), queue.next(), queue.next(), queue.next()]).toEqual([
      numbered(0, 4),
      numbered(4, 4),
      numbered(8, 2),
      null,
    ]);
    expect(queue.waiting).toBe(1);
    expect(queue.credit(3)).toBe(true);
    expect(queue.next()).toEqual(numbered(10, 1));
    expect(queue.push(new Uint8Array(0))).toBe(true);
    expect(queue.next()).toBeNull();
    expect(queue.credit(9)).toBe(false);
  });

  test('delivers input completely and in order, with at most one window of bytes in flight', () => {
    const writes = fc.array(fc.nat(40), { maxLength: 40 });
    const credits = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });
    const sizes = fc.record({ window: fc.integer({ min: 1, max: 64 }), piece: fc.integer({ min: 1, max: 32 }) });
    fc.assert(
      fc.property(sizes, writes, credits, ({ window, piece }, written, given) => {
        const queue = new InputQueue(window, piece);
        const arrived: number[] = [];
        let typed = 0;
        let onTheWay = 0;
        const flush = () => {
          for (let next = queue.next(); next !== null; next = queue.next()) {
            expect(next.length).toBeGreaterThan(0);
            expect(next.length).toBeLessThanOrEqual(piece);
            onTheWay += next.length;
            expect(onTheWay).toBeLessThanOrEqual(window);
            arrived.push(...next);
          }
          // The queue may stall only while the whole window is in flight.
          expect(queue.waiting === 0 || onTheWay === window).toBe(true);
        };
        const credit = (bytes: number) => {
          onTheWay -= bytes;
          expect(queue.credit(bytes)).toBe(true);
          flush();
        };
        for (const [at, length] of written.entries()) {
          const roomy = queue.push(numbered(typed, length));
          typed += length;
          flush();
          expect(roomy).toBe(queue.waiting === 0);
          credit(Math.floor(onTheWay * (given[at] ?? 0)));
        }
        while (onTheWay > 0) credit(Math.ceil(onTheWay / 2));
        expect(arrived).toEqual([...numbered(0, typed)]);
      }),
    );
  });
});
