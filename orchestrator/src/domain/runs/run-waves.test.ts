import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { batchOf, optionsOf, rulesOf } from './run-basis.ts';
import { RunTrack, type Turn } from './run-track.ts';
import { nextWave, type Wave, type WaveRules } from './run-waves.ts';

const everyone = (count: number) =>
  Array.from({ length: count }, (_, position) => ({
    node_id: `n${position}`,
    status: 'waiting',
    operation_id: null,
    position,
  }));

const defaults: WaveRules = { limit: 1000, canary: 0, maxFailures: null, absent: 'report' };

/** Simulates a run, and changes its rows in the same way as the conductor and the database. */
function simulate(count: number, rules: WaveRules, isConnected: (nodeId: string) => boolean = () => true) {
  const track = new RunTrack('r', rules, everyone(count), isConnected);
  const open = new Map<string, string>();
  const outcomes = new Map<string, string>();
  const order: string[] = [];
  let halted: string | null = null;
  let made = 0;
  const finish = (nodeId: string, status: string) => {
    expect(outcomes.has(nodeId), `${nodeId} has one outcome`).toBe(false);
    outcomes.set(nodeId, status);
  };
  return {
    track,
    open,
    outcomes,
    order,
    get halted() {
      return halted;
    },
    /** Continues the run until no further agent may start. */
    step() {
      while (halted === null) {
        const wave = nextWave(rules, track.picture(isConnected, 0));
        if (wave.verdict === 'halt') {
          halted = wave.reason;
          for (const { node_id } of everyone(count))
            if (!open.has(node_id) && !outcomes.has(node_id)) finish(node_id, 'cancelled');
          return;
        }
        if (wave.queue.length + wave.report.length === 0) return;
        const turns: Turn[] = [
          ...wave.queue.map((node_id) => ({
            node_id,
            operation_id: `o${++made}`,
            status: 'queued' as const,
            error: null,
          })),
          ...wave.report.map((node_id) => ({ node_id, operation_id: null, status: 'failed' as const, error: 'away' })),
        ];
        for (const { node_id, operation_id, status } of turns) {
          if (operation_id === null) finish(node_id, status);
          else {
            open.set(node_id, operation_id);
            order.push(node_id);
          }
        }
        track.turned(turns, isConnected);
      }
    },
    end(nodeId: string, status: 'succeeded' | 'failed' | 'cancelled') {
      const id = open.get(nodeId) as string;
      open.delete(nodeId);
      finish(nodeId, status);
      track.ended(nodeId, id, status);
    },
  };
}

describe('nextWave', () => {
  test('starts further agents as slots become free', () => {
    const run = simulate(5, { ...defaults, limit: 2 });
    run.step();
    expect([...run.open.keys()]).toEqual(['n0', 'n1']);
    run.end('n1', 'succeeded');
    run.step();
    expect([...run.open.keys()]).toEqual(['n0', 'n2']);
  });

  test('treats a wave as small while less than a quarter of the slots are free, unless no other agent is waiting', () => {
    const rules = { ...defaults, limit: 8 };
    const run = simulate(18, rules);
    const everywhere = () => true;
    const wave = (): Wave => nextWave(rules, run.track.picture(everywhere, 0));
    expect(wave()).toMatchObject({ isSmall: false });
    run.step();
    run.end('n0', 'succeeded');
    expect(wave()).toMatchObject({ queue: ['n8'], isSmall: true });
    run.end('n1', 'succeeded');
    expect(wave()).toMatchObject({ queue: ['n8', 'n9'], isSmall: false });
    run.step();
    for (let i = 2; i < 9; i++) run.end(`n${i}`, 'succeeded');
    run.step();
    run.end('n9', 'succeeded');
    expect(wave()).toMatchObject({ queue: ['n17'], isSmall: false });
  });

  test('starts with the canaries, and halts if a canary does not succeed', () => {
    const well = simulate(4, { ...defaults, canary: 2 });
    well.step();
    expect([...well.open.keys()]).toEqual(['n0', 'n1']);
    well.end('n0', 'succeeded');
    well.step();
    expect([...well.open.keys()]).toEqual(['n1']);
    well.end('n1', 'succeeded');
    well.step();
    expect([...well.open.keys()]).toEqual(['n2', 'n3']);
    const badly = simulate(4, { ...defaults, canary: 2 });
    badly.step();
    badly.end('n1', 'cancelled');
    badly.step();
    expect(badly.halted).toBe('a canary did not succeed');
    expect([...badly.open.keys()]).toEqual(['n0']);
  });

  test('halts the run if the failures exceed the maximum', () => {
    const run = simulate(10, { ...defaults, limit: 2, maxFailures: 1 });
    run.step();
    run.end('n0', 'failed');
    run.step();
    expect(run.halted).toBeNull();
    run.end('n1', 'failed');
    run.step();
    expect(run.halted).toBe('2 agents failed, and the maximum is 1');
    expect(run.open.size).toBe(1);
  });

  test('reports absent agents last, queues them without a slot, or holds them, depending on the rules', () => {
    const away = (nodeId: string) => nodeId !== 'n0' && nodeId !== 'n3';
    const report = simulate(4, { ...defaults, limit: 1 }, away);
    report.step();
    expect([[...report.open.keys()], [...report.outcomes.keys()]]).toEqual([['n1'], []]);
    report.end('n1', 'succeeded');
    report.step();
    expect([[...report.open.keys()], report.outcomes.get('n0'), report.outcomes.get('n3')]).toEqual([
      ['n2'],
      'failed',
      'failed',
    ]);
    const queue = simulate(4, { ...defaults, limit: 2, absent: 'queue' }, away);
    queue.step();
    expect([...queue.open.keys()]).toEqual(['n0', 'n1', 'n2', 'n3']);
    const hold = simulate(4, { ...defaults, limit: 2, absent: 'hold' }, away);
    hold.step();
    expect([...hold.open.keys()]).toEqual(['n1', 'n2']);
  });

  test('never exceeds its limits in any sequence of events', () => {
    const rules = fc.record({
      limit: fc.integer({ min: 1, max: 6 }),
      canary: fc.integer({ min: 0, max: 4 }),
      maxFailures: fc.option(fc.integer({ min: 0, max: 4 })),
      absent: fc.constantFrom('report' as const, 'hold' as const),
    });
    const happening = fc.record({
      which: fc.nat(),
      how: fc.constantFrom('succeeded' as const, 'succeeded' as const, 'failed' as const, 'cancelled' as const),
      toggles: fc.option(fc.nat()),
    });
    fc.assert(
      fc.property(
        rules,
        fc.integer({ min: 1, max: 14 }),
        fc.array(happening, { maxLength: 60 }),
        (given, count, happenings) => {
          const away = new Set<string>();
          const run = simulate(count, given, (nodeId) => !away.has(nodeId));
          const canaries = everyone(Math.min(given.canary, count)).map(({ node_id }) => node_id);
          for (const { which, how, toggles } of [
            ...happenings,
            ...everyone(count).map(() => ({ which: 0, how: 'succeeded' as const, toggles: null })),
          ]) {
            if (toggles === null) away.clear();
            else away.add(`n${toggles % count}`);
            const haltedBefore = run.halted;
            run.step();
            if (haltedBefore !== null) expect(run.halted).toBe(haltedBefore);
            expect(run.open.size).toBeLessThanOrEqual(given.limit);
            const others = run.order.some((nodeId) => !canaries.includes(nodeId));
            if (others) for (const canary of canaries) expect(run.outcomes.get(canary)).toBe('succeeded');
            const failures = [...run.outcomes.values()].filter((status) => status === 'failed').length;
            if (given.maxFailures !== null && failures > given.maxFailures) expect(run.halted).not.toBeNull();
            const nodeId = [...run.open.keys()][which % Math.max(run.open.size, 1)];
            if (nodeId !== undefined) run.end(nodeId, how);
          }
          // Finally, all agents connect and succeed, so that each has exactly one outcome.
          while (run.open.size > 0) {
            run.end([...run.open.keys()][0] as string, 'succeeded');
            run.step();
          }
          run.step();
          expect(run.outcomes.size).toBe(count);
          if (run.halted === null) expect(run.track.done).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('tracks the same state as a track that is rebuilt from the rows', () => {
    const run = simulate(6, { ...defaults, limit: 3, canary: 1, maxFailures: 3 });
    run.step();
    run.end('n0', 'succeeded');
    run.step();
    run.end('n2', 'failed');
    const rows = everyone(6).map((row) => ({
      ...row,
      operation_id: run.open.get(row.node_id) ?? null,
      status: run.outcomes.get(row.node_id) ?? (run.open.has(row.node_id) ? 'queued' : 'waiting'),
    }));
    const rebuilt = new RunTrack('r', run.track.rules, rows, () => true);
    const seen = (track: RunTrack) => {
      const { waiting, ...rest } = track.picture(() => true, 0);
      return { ...rest, waiting: [...waiting] };
    };
    expect(seen(rebuilt)).toEqual(seen(run.track));
  });
});

describe('RunTrack', () => {
  const at = (now: number, track: RunTrack) => track.picture(() => false, now);

  test('frees a disconnected agent’s slot, and counts the agent as failed until its operation ends', () => {
    const track = new RunTrack('r', { ...defaults, limit: 1 }, everyone(2), () => true);
    track.turned([{ node_id: 'n0', operation_id: 'o', status: 'queued', error: null }], () => true);
    expect(track.look(() => false, 100, 60)).toEqual([]);
    expect(track.look(() => false, 161, 60)).toEqual(['n0']);
    expect(at(400, track)).toMatchObject({ taken: 1, failures: 0 });
    expect(at(401, track)).toMatchObject({ taken: 0, failures: 1 });
    track.ended('n0', 'o', 'succeeded');
    expect(at(402, track)).toMatchObject({ taken: 0, failures: 0 });
  });

  test('accepts an operation that ends before its turn is recorded, and a duplicate end', () => {
    const track = new RunTrack('r', defaults, everyone(1), () => true);
    track.ended('n0', 'o', 'failed');
    track.turned([{ node_id: 'n0', operation_id: 'o', status: 'queued', error: null }], () => true);
    track.ended('n0', 'o', 'failed');
    expect(track.done).toBe(true);
    expect(at(0, track).failures).toBe(1);
  });
});

describe('run options', () => {
  test('converts a percentage to a number of agents, at least one', () => {
    expect([batchOf('25%', 10), batchOf('1%', 10), batchOf('100%', 7), batchOf(3, 10), batchOf(undefined, 1)]).toEqual([
      2,
      1,
      7,
      3,
      null,
    ]);
  });

  test('never exceeds the configured concurrent-agent limit', () => {
    const options = optionsOf({ kind: 'apply', batch: 50, offline: 'queue' }, 100);
    expect(rulesOf(options, 20)).toEqual({ limit: 20, canary: 0, maxFailures: null, absent: 'hold' });
    expect(rulesOf(optionsOf({ kind: 'apply', offline: 'queue' }, 100), 20).absent).toBe('queue');
    expect(rulesOf(optionsOf({ kind: 'apply' }, 100), 20).absent).toBe('report');
  });
});
