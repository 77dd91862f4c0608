import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputQueue } from './input-queue.ts';

const limits = { windowBytes: 64, minCreditBytes: 16 };

describe('input', () => {
  test('passes input directly to a terminal that accepts it, and combines credits', () => {
    const queue = new InputQueue(limits);
    let taken = 0;
    const write = (bytes: Uint8Array) => {
      taken += bytes.length;
      return bytes.length;
    };
    expect(queue.add(Buffer.alloc(15), write)).toBe(true);
    expect(queue.isEmpty).toBe(true);
    expect(queue.takeCredit()).toBe(0);
    queue.add(Buffer.alloc(1), write);
    expect(queue.takeCredit()).toBe(16);
    expect(taken).toBe(16);
  });

  test('refuses input that exceeds the window', () => {
    const queue = new InputQueue(limits);
    expect(queue.add(Buffer.alloc(64), () => 0)).toBe(true);
    expect(queue.add(Buffer.alloc(1), () => 0)).toBe(false);
    expect(queue.flush(() => 16)).toBe(true);
    expect(queue.takeCredit()).toBe(16);
    expect(queue.add(Buffer.alloc(16), () => 0)).toBe(true);
    expect(queue.add(Buffer.alloc(1), () => 0)).toBe(false);
  });

  test('passes on all input in order, even if the terminal accepts only a little at a time', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('type' as const), bytes: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant('room' as const), bytes: fc.integer({ min: 0, max: 40 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new InputQueue(limits);
        const typed: number[] = [];
        const taken: number[] = [];
        let capacity = 0;
        let window = limits.windowBytes;
        let next = 0;
        const write = (bytes: Uint8Array) => {
          const some = bytes.subarray(0, capacity);
          taken.push(...some);
          capacity -= some.length;
          return some.length;
        };
        for (const action of steps) {
          if (action.kind === 'type') {
            const bytes = Uint8Array.from({ length: action.bytes }, () => next++ % 251);
            const fits = bytes.length <= window;
            expect(queue.add(bytes, write)).toBe(fits);
            if (!fits) {
              next -= bytes.length;
              continue;
            }
            typed.push(...bytes);
            window -= bytes.length;
          } else {
            capacity = action.bytes;
            queue.flush(write);
          }
          window += queue.takeCredit();
        }
        capacity = Number.POSITIVE_INFINITY;
        queue.flush(write);
        window += queue.takeCredit();
        expect(taken).toEqual(typed);
        expect(queue.isEmpty).toBe(true);
        // Withheld credit must never block the sender.
        expect(window).toBeGreaterThan(limits.windowBytes - limits.minCreditBytes);
      }),
      { numRuns: 300 },
    );
  });
});
