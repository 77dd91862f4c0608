import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRefusalBook, type DueRefusal, maxEntries, type Refused, refusalsEveryMs } from './refusal-throttle.ts';

const kinds = Object.keys(maxEntries) as Refused[];
const maxTotal = Object.values(maxEntries).reduce((sum, capacity) => sum + capacity + 1, 0);

describe('refusal throttle', () => {
  test('returns the first refusal immediately and repetitions hourly, then drops the entry', () => {
    const book = createRefusalBook<string>();
    const note = (now: number) => book.note('claimed', 'ada', 'wrong', 'ada was refused', () => 'many', now);
    expect(note(0)).toMatchObject({ what: 'ada was refused', count: 0 });
    for (let at = 1; at <= 5; at++) expect(note(at)).toBeNull();
    expect(book.due(refusalsEveryMs - 1)).toEqual([]);
    expect(book.due(refusalsEveryMs)).toMatchObject([{ what: 'ada was refused', count: 5, since: 0 }]);
    expect(book.due(refusalsEveryMs)).toEqual([]);
    expect(note(refusalsEveryMs + 1)).toBeNull();
    expect(note(2 * refusalsEveryMs)).toMatchObject({ count: 2, since: refusalsEveryMs });
    expect(book.size).toBe(1);
    expect(book.due(3 * refusalsEveryMs)).toEqual([]);
    expect(book.size).toBe(0);
    expect(note(3 * refusalsEveryMs)).toMatchObject({ count: 0 });
  });

  test('returns the remaining refusals at shutdown, and repeats those that could not be written', () => {
    const book = createRefusalBook<string>();
    const note = (same: string) => book.note('agent', '', same, same, () => 'many', 0);
    note('a')?.revert();
    expect(note('a')).not.toBeNull();
    note('b');
    note('a');
    for (const { revert } of book.rest(1)) revert();
    note('a');
    expect(book.rest(2)).toMatchObject([{ what: 'a', count: 2, since: 0 }]);
    expect(book.rest(3)).toEqual([]);
  });

  test('reports repetitions even after the clock was set back', () => {
    const book = createRefusalBook<string>();
    const note = (now: number) => book.note('agent', '', 'a', 'a', () => 'many', now);
    note(10 * refusalsEveryMs);
    expect(note(0)).toBeNull();
    expect(book.due(refusalsEveryMs)).toMatchObject([{ count: 1 }]);
  });

  test.each(kinds)(
    'bounds refusals in category %s from 100,000 addresses, and leaves room for other categories',
    (who) => {
      const book = createRefusalBook<string>();
      const recorded: DueRefusal<string>[] = [];
      for (let at = 0; at < 100_000; at++) {
        const refusal = book.note(who, 'ada', `place ${at}`, 'one', () => 'crowd', at);
        if (refusal !== null) recorded.push(refusal);
      }
      expect(recorded).toHaveLength(maxEntries[who] + 1);
      expect(recorded.at(-1)?.what).toBe('crowd');
      expect(book.size).toBe(maxEntries[who] + 1);
      const due = book.due(200_000 + refusalsEveryMs);
      expect(due).toMatchObject([{ what: 'crowd', count: 100_000 - maxEntries[who] - 1 }]);
      for (const other of kinds.filter((kind) => kind !== who))
        expect(book.note(other, 'ada', 'place 1', 'one', () => 'crowd', 0)).toMatchObject({ what: 'one' });
      expect(book.note(who, 'eve', 'place 1', 'one', () => 'crowd', 0)).toMatchObject({ what: 'one' });
      // After an hour, the expired entries are deleted.
      expect(book.note(who, 'ada', 'place 7', 'one', () => 'crowd', 200_000 + refusalsEveryMs)).toMatchObject({
        what: 'one',
      });
    },
  );

  test('loses no refusal, and never exceeds its bounds', () => {
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ who: fc.constantFrom(...kinds), same: fc.nat(400) }) },
      { weight: 1, arbitrary: fc.record({ wait: fc.integer({ min: -1_000, max: 2 * refusalsEveryMs }) }) },
      { weight: 1, arbitrary: fc.constant('sweep' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 800, size: 'max' }), fc.array(fc.boolean()), (steps, failures) => {
        const book = createRefusalBook<string>();
        let now = 1_000_000;
        let noted = 0;
        let recorded = 0;
        let attempt = 0;
        const record = (refusal: DueRefusal<string>, first: boolean) => {
          if (failures[attempt++ % (failures.length || 1)]) {
            refusal.revert();
            // If the write fails, the first refusal is reverted and must not be expected in the log.
            if (first) noted--;
          } else recorded += refusal.count || 1;
        };
        for (const each of steps) {
          if (each === 'sweep') for (const refusal of book.due(now)) record(refusal, false);
          else if ('wait' in each) now += each.wait;
          else {
            noted++;
            const refusal = book.note(each.who, '', `${each.same}`, 'one', () => 'crowd', now);
            if (refusal !== null) record(refusal, refusal.count === 0);
          }
          expect(book.size).toBeLessThanOrEqual(maxTotal);
        }
        for (const refusal of book.rest(now)) recorded += refusal.count;
        expect(recorded).toBe(noted);
      }),
    );
  });
});
