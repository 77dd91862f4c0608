import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextNetwork } from './next-network.ts';

const all = () => true;

describe('nextNetwork', () => {
  test('chooses the first waiting network with the fewest slots among those that may start', () => {
    const network = fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e');
    const networks = fc.uniqueArray(network);
    const slotsOf = fc.array(fc.tuple(network, fc.nat(4))).map((entries) => new Map(entries));
    fc.assert(
      fc.property(networks, networks, slotsOf, (waiting, mayBegin, slots) => {
        const may = waiting.filter((each) => mayBegin.includes(each));
        const next = nextNetwork(waiting, slots, (each) => mayBegin.includes(each));
        const of = (each: string) => slots.get(each) ?? 0;
        const fewest = Math.min(...may.map(of));
        expect(next).toBe(may.find((each) => of(each) === fewest) ?? null);
      }),
    );
  });

  test('admits a site’s agents in bounded time while silent networks occupy slots', () => {
    const slots = 128;
    const heldInSilenceMs = 1_000;
    /** Simulates the queue. @returns milliseconds until all of the site's agents are admitted */
    const simulate = (hostile: number, agents: number, agentMs: number) => {
      const slotsOf = new Map<string, number>();
      const ends: { at: number; network: string }[] = [];
      const turns = ['site', ...Array.from({ length: hostile }, (_, i) => `hostile ${i}`)];
      let inside = 0;
      let began = 0;
      for (let now = 0; ; now++) {
        for (const end of ends.filter(({ at }) => at <= now)) {
          ends.splice(ends.indexOf(end), 1);
          slotsOf.set(end.network, slotsOf.get(end.network)! - 1);
          if (end.network === 'site' && ++inside === agents) return now;
        }
        while (ends.length < slots) {
          const next = nextNetwork(turns, slotsOf, (network) => network !== 'site' || began < agents);
          if (next === null) break;
          turns.push(...turns.splice(turns.indexOf(next), 1));
          slotsOf.set(next, (slotsOf.get(next) ?? 0) + 1);
          if (next === 'site') began++;
          ends.push({ at: now + (next === 'site' ? agentMs : heldInSilenceMs), network: next });
        }
      }
    };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 5, max: 400 }), (hostile, agentMs) => {
        const agents = 500;
        const share = Math.floor(slots / (hostile + 1));
        // Time to admit the site with its share of the slots, after the first silent connections have lost their slots.
        const allowed = heldInSilenceMs + Math.ceil(agents / share + 1) * (agentMs + 1);
        expect(simulate(hostile, agents, agentMs)).toBeLessThanOrEqual(allowed);
      }),
      { numRuns: 20 },
    );
  });

  test('returns null if no network is waiting', () => {
    expect(nextNetwork([], new Map(), all)).toBe(null);
  });
});
