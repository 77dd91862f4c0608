import { expect, test } from 'vitest';
import { allAgents, allOperations, createCrowd } from './event-coalescer.ts';
import { passingOf } from './live-frames.ts';

const hinted = (hint: Parameters<typeof passingOf>[0]) => passingOf(hint) as NonNullable<ReturnType<typeof passingOf>>;
const linked = (n: number) => hinted({ type: 'agent_linked', node_id: `n${n}` });
const departed = (n: number) => hinted({ type: 'agent_departed', node_id: `n${n}`, heard_at: 1 });

test('forwards a few changes individually and immediately', () => {
  const crowd = createCrowd();
  for (let n = 0; n < 20; n++) expect(crowd.take(linked(n))).toEqual(linked(n));
  expect(crowd.turn()).toEqual([]);
  expect(crowd.take(linked(20))).not.toBeNull();
});

test('combines later changes into one per name, with the last state, at the end of the turn', () => {
  const crowd = createCrowd();
  for (let n = 0; n < 20; n++) crowd.take(linked(n));
  for (const change of [linked(1), departed(1), linked(2), linked(1)]) expect(crowd.take(change)).toBeNull();
  const run = hinted({ type: 'run_ended', run_id: 'r' });
  expect(crowd.take(run)).toBe(run);
  const [agents, ...rest] = crowd.turn();
  expect(rest).toEqual([]);
  expect(agents).toMatchObject({ event: 'agents', category: 'agent' });
  expect(agents?.data).toEqual({
    agents: [
      { node_id: 'n1', change: 'disconnected' },
      { node_id: 'n2', change: 'connected' },
      { node_id: 'n1', change: 'connected' },
    ],
  });
  expect(crowd.turn()).toEqual([]);
});

test('combines ten thousand names into one change without names', () => {
  const crowd = createCrowd();
  let bytes = 0;
  for (let n = 0; n < 10_000; n++) bytes += crowd.take(linked(n))?.frame.length ?? 0;
  for (let n = 0; n < 10_000; n++) {
    const ended = { operation_id: `o${n}`, node_id: `n${n}`, run_id: 'r', status: 'succeeded' } as const;
    bytes += crowd.take(hinted({ type: 'operation_ended', ...ended }))?.frame.length ?? 0;
  }
  const few = crowd.turn();
  expect(few).toEqual([allAgents, allOperations]);
  expect(bytes + few.reduce((sum, { frame }) => sum + frame.length, 0)).toBeLessThan(8_000);
});
