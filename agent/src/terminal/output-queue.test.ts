import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type OutputLimits, OutputQueue } from './output-queue.ts';

const small: OutputLimits = { windowBytes: 100, frameBytes: 20, smallBytes: 8, pauseMs: 5 };
const pieceBytes = 16;

const copy = (bytes: Uint8Array) => Buffer.from(bytes);

describe('output', () => {
  test('sends output immediately after a pause, and combines small chunks', () => {
    const queue = new OutputQueue(pieceBytes, small);
    queue.add(Buffer.from('$'));
    expect(queue.take(1000, copy)?.toString()).toBe('$');
    queue.add(Buffer.from('a'));
    expect(queue.take(1001, copy)).toBeNull();
    queue.add(Buffer.from('b'));
    expect(queue.dueAt()).toBe(1005);
    expect(queue.take(1004, copy)).toBeNull();
    expect(queue.take(1005, copy)?.toString()).toBe('ab');
    expect(queue.dueAt()).toBeNull();
  });

  test('sends large output without a delay', () => {
    const queue = new OutputQueue(pieceBytes, small);
    for (const at of [0, 0, 0]) {
      queue.add(Buffer.alloc(8, 'x'));
      expect(queue.take(at, copy)).toHaveLength(8);
    }
  });

  test('stops sending when the window is full, and continues when credit arrives', () => {
    const queue = new OutputQueue(pieceBytes, small);
    let sent = 0;
    for (let at = 0; at < 40; at++) {
      if (queue.hasSpace) queue.add(Buffer.alloc(16, 'x'));
      sent += queue.take(at * 5, copy)?.length ?? 0;
    }
    expect(sent).toBe(100);
    expect(queue.hasSpace).toBe(false);
    expect(queue.dueAt()).toBeNull();
    expect(queue.credited(101)).toBe(false);
    expect(queue.credited(12)).toBe(true);
    expect(queue.take(1000, copy)).toHaveLength(12);
    expect(queue.take(2000, copy)).toBeNull();
  });

  test('sends all output in order, within the window and the rate', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('show' as const), bytes: fc.integer({ min: 1, max: pieceBytes }) }),
      fc.record({ kind: fc.constant('credit' as const), part: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 7 }) }),
      fc.constant({ kind: 'send' as const }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const queue = new OutputQueue(pieceBytes, small);
        const shown: number[] = [];
        const sent: number[] = [];
        let credited = 0;
        let now = 0;
        let lastAt = Number.NEGATIVE_INFINITY;
        let next = 0;
        const send = () => {
          for (let frame = queue.take(now, copy); frame !== null; frame = queue.take(now, copy)) {
            expect(frame.length).toBeGreaterThan(0);
            expect(frame.length).toBeLessThanOrEqual(small.frameBytes);
            if (frame.length < small.smallBytes) expect(now - lastAt).toBeGreaterThanOrEqual(small.pauseMs);
            lastAt = now;
            sent.push(...frame);
            expect(sent.length - credited).toBeLessThanOrEqual(small.windowBytes);
          }
        };
        const credit = (part: number) => {
          const bytes = Math.ceil((sent.length - credited) / part);
          expect(queue.credited(bytes)).toBe(true);
          credited += bytes;
        };
        for (const action of steps) {
          if (action.kind === 'show' && queue.hasSpace) {
            const bytes = Uint8Array.from({ length: action.bytes }, () => next++ % 251);
            shown.push(...bytes);
            queue.add(bytes);
          } else if (action.kind === 'credit') credit(action.part);
          else if (action.kind === 'wait') now += action.ms;
          else if (action.kind === 'send') send();
        }
        for (let round = 0; !queue.isEmpty && round < 100; round++) {
          credit(1);
          now = Math.max(now, queue.dueAt() ?? now);
          send();
        }
        expect(sent).toEqual(shown);
      }),
      { numRuns: 300 },
    );
  });
});
