import { measureNames, type Sample } from '@muster/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SampleBuffer } from './sample-buffer.ts';

const sampleAt = (collected_at: number, value: number | null): Sample =>
  ({
    collected_at,
    ...Object.fromEntries(measureNames.map((name, n) => [name, value === null ? null : value + n])),
  }) as Sample;

describe('the sample buffer', () => {
  test('keeps the newest samples unchanged and in order', () => {
    const action = fc.oneof(
      fc.record({ push: fc.option(fc.nat(Number.MAX_SAFE_INTEGER - 100)) }),
      fc.record({ drop: fc.nat(12) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.array(action, { maxLength: 60 }), (capacity, actions) => {
        const buffer = new SampleBuffer(capacity);
        let model: Sample[] = [];
        let time = 0;
        for (const step of actions) {
          if ('push' in step) {
            const sample = sampleAt(++time, step.push);
            expect(buffer.push(sample)).toBe(model.length === capacity);
            model = [...model, sample].slice(-capacity);
          } else {
            buffer.drop(buffer.first + step.drop - 2);
            model = model.slice(Math.max(0, step.drop - 2));
          }
          const numbers = Array.from({ length: buffer.end - buffer.first }, (_, n) => buffer.first + n);
          expect(buffer.end).toBe(time);
          expect(numbers.map((number) => buffer.at(number))).toEqual(model);
          expect(numbers.map((number) => buffer.timeOf(number))).toEqual(model.map(({ collected_at }) => collected_at));
        }
      }),
    );
  });
});
