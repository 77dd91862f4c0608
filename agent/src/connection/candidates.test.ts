import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Candidates } from './candidates.ts';
import type { Target } from './pin.ts';

const target = (host: string): Target => ({
  host,
  port: 4747,
  orchestrator_key: 'aa'.repeat(32),
  token: null,
  pinSource: 'discovery',
  addresses: [],
  replacedKey: null,
});
const home = { ...target('home'), pinSource: 'pinned' as const };

describe('candidates', () => {
  test('tries new announcements first, and then alternates between the known and the announced orchestrators', () => {
    const candidates = new Candidates();
    const next = (known: Target | null = home) => candidates.next(known)?.host;
    expect(next(null)).toBe(undefined);
    expect([next(), next()]).toEqual(['home', 'home']);
    expect(candidates.add(target('a'))).toBe(true);
    expect(candidates.add(target('a'))).toBe(false);
    candidates.add(target('b'));
    expect(candidates.hasNew).toBe(true);
    expect([next(), next()]).toEqual(['a', 'b']);
    expect(candidates.hasNew).toBe(false);
    expect([next(), next(), next(), next()]).toEqual(['home', 'a', 'home', 'b']);
    expect([next(null), next(null), next(null)]).toEqual(['a', 'b', 'a']);
    candidates.add(target('b'));
    expect(next(null)).toBe('b');
  });

  test('does not try a dropped target again until it is announced again', () => {
    const candidates = new Candidates();
    candidates.add(target('a'));
    const tried = candidates.next(null)!;
    candidates.drop(tried);
    expect(candidates.next(null)).toBe(null);
    expect(candidates.add(target('a'))).toBe(true);
    expect(candidates.next(null)?.host).toBe('a');
    candidates.clear();
    expect(candidates.next(null)).toBe(null);
  });

  test('keeps at most eight targets, and discards tried targets before untried ones', () => {
    const candidates = new Candidates();
    const hosts = (from: number) => Array.from({ length: 8 }, (_, index) => `h${from + index}`);
    for (const host of [...hosts(0), 'late']) candidates.add(target(host));
    const tried = () => Array.from({ length: 8 }, () => candidates.next(null)?.host);
    expect(tried()).toEqual(hosts(0));
    expect(tried()).toEqual(hosts(0));
    for (const host of hosts(8)) candidates.add(target(host));
    expect(tried()).toEqual(hosts(8));
    expect(tried()).toEqual(hosts(8));
  });

  test('keeps a limited number of targets, all of which were announced', () => {
    const actions = fc.array(fc.oneof(fc.nat({ max: 40 }), fc.constantFrom('next', 'drop')), { maxLength: 200 });
    fc.assert(
      fc.property(actions, (steps) => {
        const candidates = new Candidates();
        const announced = new Set<string>();
        let last: Target | null = null;
        for (const step of steps) {
          if (typeof step === 'number') {
            announced.add(`h${step}`);
            candidates.add(target(`h${step}`));
            expect(candidates.hasNew).toBe(true);
          } else if (step === 'next') {
            last = candidates.next(null);
            if (last !== null) expect(announced).toContain(last.host);
          } else if (last !== null) candidates.drop(last);
        }
        const seen = new Set<string>();
        for (let turn = 0; turn < 50; turn++) seen.add(candidates.next(null)?.host ?? '');
        expect(seen.size).toBeLessThanOrEqual(8);
        expect(candidates.hasNew).toBe(false);
      }),
    );
  });
});
