import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkHistory } from './check-history.ts';
import { accessAfterEnd, lostWrites, repeatedEffects } from './client-invariants.ts';
import type { ClientRequest, Effect, Entry, EventSeen, History, OperationSeen } from './history.ts';
import { staleWrites } from './log-invariants.ts';

let calls = 0;
/** Returns a request with its outcome. */
function call(at: number, request: ClientRequest, outcome: object | null, replica = 'a'): Entry[] {
  const id = ++calls;
  const invoked: Entry = { type: 'invoked', at, call: id, client: 'c', replica, request };
  return outcome === null ? [invoked] : [invoked, { at: at + 5, call: id, ...outcome } as Entry];
}
const write = (at: number, key: string, value: string, outcome: object | null = { type: 'succeeded' }) =>
  call(at, { kind: 'write', key, value }, outcome);
const read = (at: number, key: string, value: string | null, replica = 'b') =>
  call(at, { kind: 'read', key }, { type: 'succeeded', value }, replica);
const unknown = { type: 'unknown', reason: 'connection lost' };
const operation = (at: number, id: string, status: string, more: Partial<OperationSeen> = {}): Entry => ({
  type: 'operation',
  at,
  answered: at + 5,
  replica: 'a',
  operation: id,
  node: 'web',
  run: null,
  status,
  finished: status === 'running' ? null : 1,
  ...more,
});
const event = (place: number, more: Partial<EventSeen> = {}): Entry => ({
  type: 'event',
  at: place,
  replica: 'a',
  stream: 'one',
  place,
  hash: `h${place}`,
  id: `e${place}`,
  about: '{}',
  ...more,
});
/** Returns an event of the export about a write. */
const recorded = (place: number, value: string) =>
  event(place, { stream: 'export', about: JSON.stringify({ tags: { any: value } }) });
const effect = (more: Partial<Effect>): Entry => ({
  type: 'effect',
  node: 'web',
  operation: null,
  token: null,
  ...more,
});
const claimed = (fence: string, holder: string, committed: number): Entry => ({
  type: 'claimed',
  fence,
  holder,
  committed,
  transaction: `claim ${committed}`,
});
const fenced = (fence: string, holder: string, began: number, transaction = `write ${began}`): Entry => ({
  type: 'fenced_write',
  fence,
  holder,
  began,
  transaction,
  what: 'a row',
});

/** The records of a loop without violations. */
const sound: History = [
  ...write(0, 'x', 'x1'),
  ...write(10, 'x', 'x2', unknown),
  ...read(20, 'x', 'x1'),
  ...read(30, 'x', 'x2'),
  ...call(40, { kind: 'apply', node: 'web', token: 't1' }, unknown),
  ...call(50, { kind: 'apply', node: 'web', token: 't2' }, { type: 'succeeded', id: 'op2' }),
  effect({ token: 't1' }),
  effect({ token: 't2' }),
  operation(60, 'op2', 'running'),
  operation(70, 'op2', 'succeeded'),
  ...call(80, { kind: 'run', assignment: 'all' }, { type: 'succeeded', id: 'run1' }),
  operation(90, 'op3', 'succeeded', { run: 'run1', node: 'sim' }),
  effect({ node: 'sim', operation: 'op3' }),
  {
    type: 'run',
    at: 95,
    replica: 'a',
    run: 'run1',
    status: 'succeeded',
    finished: true,
    results: [{ node: 'sim', operation: 'op3', status: 'succeeded' }],
  },
  ...call(100, { kind: 'access', access: 's' }, { type: 'succeeded' }),
  { type: 'access_ended', at: 110, access: 's' },
  ...call(2_100, { kind: 'access', access: 's' }, { type: 'succeeded' }, 'b'),
  ...call(2_200, { kind: 'access', access: 's' }, { type: 'refused', status: 401, code: 'unauthenticated' }, 'b'),
  event(1),
  event(2),
  event(2, { replica: 'b', stream: 'two' }),
  event(3),
  event(3, { replica: 'b', stream: 'two' }),
  recorded(1, 'x1'),
  recorded(2, 'x2'),
  { type: 'chain', at: 3_000, replica: 'a', ok: true, fault: null },
  claimed('link:web', 'p', 1_000),
  fenced('link:web', 'p', 2_000),
  claimed('link:web', 'q', 5_000),
  // Began before the claim was surely visible.
  fenced('link:web', 'p', 5_300),
  fenced('link:web', 'q', 6_000),
  claimed('link:web', 'r', 9_000),
  fenced('link:web', 'r', 8_000, 'claim 9000'),
  { type: 'shown', at: 0, session: 'term', text: 'one' },
  { type: 'shown', at: 1_900, session: 'term', text: 'two' },
  { type: 'transcript', session: 'term', open: 2_000, text: '$ one\r\n' },
];

/** Faults of an orchestrator, as clients would see them. */
const planted: Record<string, { history: Entry[]; invariant: string }> = {
  'a lease without fencing': {
    history: [
      claimed('lease:audit', 'p', 1_000),
      claimed('lease:audit', 'q', 2_000),
      fenced('lease:audit', 'p', 3_000),
    ],
    invariant: 'no write under an old claim',
  },
  'a link without epoch': {
    history: [fenced('link:web', 'q', 20_000)],
    invariant: 'no write under an old claim',
  },
  'a commit that is answered before it is durable': {
    history: [...write(100, 'x', 'x3'), recorded(3, 'x3'), ...read(200, 'x', 'x1')],
    invariant: 'nothing acknowledged is lost',
  },
  'a replica that answers from its memory': {
    history: [...write(100, 'y', 'y1'), recorded(3, 'y1'), ...read(200, 'y', null)],
    invariant: 'nothing acknowledged is lost',
  },
  'an operation that is settled twice': {
    history: [operation(200, 'op2', 'interrupted')],
    invariant: 'one end for each operation',
  },
  'an operation that is dispatched again after its end': {
    history: [operation(200, 'op2', 'running'), operation(210, 'op2', 'succeeded')],
    invariant: 'one end for each operation',
  },
  'an operation that is sent to its agent twice': {
    history: [effect({ node: 'sim', operation: 'op3' })],
    invariant: 'no effect twice',
  },
  'a refused request that is executed': {
    history: [
      ...call(250, { kind: 'apply', node: 'web', token: 't9' }, { type: 'refused', status: 503, code: 'draining' }),
      effect({ token: 't9' }),
    ],
    invariant: 'no effect twice',
  },
  'a report that is acknowledged and forgotten': {
    history: [...call(300, { kind: 'apply', node: 'web', token: 't3' }, { type: 'succeeded', id: 'op4' })],
    invariant: 'each success has its effect',
  },
  'a success that no agent reported': {
    history: [operation(300, 'op5', 'succeeded', { run: 'run1', node: 'sim-2' })],
    invariant: 'each success has its effect',
  },
  'two sequencers': {
    history: [event(3, { replica: 'c', stream: 'export', hash: 'other', id: 'other' })],
    invariant: 'one audit chain',
  },
  'an event that is placed twice': {
    history: [event(4, { id: 'e3' })],
    invariant: 'one audit chain',
  },
  'a stream that misses hints': {
    history: [event(5)],
    invariant: 'streams are complete',
  },
  'a write without its event': {
    history: [...write(400, 'z', 'z1')],
    invariant: 'writes are audited',
  },
  'a cache of sessions that is not checked': {
    history: call(2_120, { kind: 'access', access: 's' }, { type: 'succeeded' }, 'c'),
    invariant: 'no access after its end',
  },
  'a run that nobody takes over': {
    history: call(500, { kind: 'run', assignment: 'all' }, { type: 'succeeded', id: 'run2' }),
    invariant: 'runs continue',
  },
  'a run with two conductors': {
    history: [
      operation(500, 'op6', 'succeeded', { run: 'run1', node: 'sim' }),
      effect({ node: 'sim', operation: 'op6' }),
    ],
    invariant: 'runs continue',
  },
  'an error that nobody expected': {
    history: call(600, { kind: 'read', key: 'x' }, { type: 'refused', status: 500, code: 'internal' }),
    invariant: 'refusals are clear',
  },
  'a transcript in the memory of a replica': {
    history: [{ type: 'shown', at: 10, session: 'term', text: 'lost' }],
    invariant: 'transcripts are complete',
  },
};

describe('the check of a history', () => {
  test('finds no violation if all invariants hold', () => {
    expect(checkHistory(sound)).toEqual([]);
    expect(checkHistory([])).toEqual([]);
  });

  test.each(Object.entries(planted))('finds %s, and nothing else', (_, { history, invariant }) => {
    const found = checkHistory([...sound, ...history]);
    expect(new Set(found.map((violation) => violation.invariant))).toEqual(new Set([invariant]));
  });

  test('accepts every history of a register, with any outcomes and any order of the requests', () => {
    const step = fc.record({
      kind: fc.constantFrom('write', 'read'),
      outcome: fc.constantFrom('succeeded', 'unknown', 'refused'),
      takesEffect: fc.nat({ max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const history: Entry[] = [];
        let value: string | null = null;
        /** Writes with an unknown outcome that take effect after a number of further steps. */
        let late: { value: string; left: number }[] = [];
        for (const [index, { kind, outcome, takesEffect }] of steps.entries()) {
          for (const one of late) if (one.left-- === 0) value = one.value;
          late = late.filter(({ left }) => left >= 0);
          const at = index * 10;
          if (kind === 'read') history.push(...read(at, 'k', value));
          else {
            const next = `v${index}`;
            if (outcome === 'succeeded') value = next;
            if (outcome === 'unknown') late.push({ value: next, left: takesEffect });
            history.push(...write(at, 'k', next, { ...unknown, type: outcome }));
          }
        }
        expect(lostWrites(history)).toEqual([]);
      }),
    );
  });

  test('finds every read of a value that an acknowledged write had replaced', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.nat(), (count, which) => {
        const writes = Array.from({ length: count }, (_, index) => write(index * 10, 'k', `v${index}`)).flat();
        const old = which % (count - 1);
        expect(lostWrites([...writes, ...read(count * 10, 'k', `v${old}`)])).toHaveLength(1);
        expect(lostWrites([...writes, ...read(count * 10, 'k', `v${count - 1}`)])).toEqual([]);
      }),
    );
  });

  test('accepts writes of the holder of a claim, and finds those of all others', () => {
    const holder = fc.constantFrom('p', 'q', 'r');
    fc.assert(
      fc.property(fc.array(fc.record({ holder, writer: holder }), { minLength: 1, maxLength: 30 }), (turns) => {
        const history = turns.flatMap((turn, index) => [
          claimed('lease:runs/3', turn.holder, index * 10_000),
          fenced('lease:runs/3', turn.writer, index * 10_000 + 5_000),
        ]);
        const wrong = turns.filter((turn) => turn.holder !== turn.writer);
        expect(staleWrites(history)).toHaveLength(wrong.length);
      }),
    );
  });

  test('allows one effect of a request, also if its outcome is unknown, and none if it was refused', () => {
    const apply = (token: string, outcome: object | null) => call(0, { kind: 'apply', node: 'web', token }, outcome);
    const refused = { type: 'refused', status: 504, code: 'agent_not_connected' };
    for (const [outcome, allowed] of [
      [{ type: 'succeeded', id: 'op' }, 1],
      [unknown, 1],
      [null, 1],
      [refused, 0],
    ] as const)
      for (const count of [0, 1, 2]) {
        const effects = Array.from({ length: count }, () => effect({ token: 't' }));
        expect(repeatedEffects([...apply('t', outcome), ...effects])).toHaveLength(count > allowed ? 1 : 0);
      }
  });

  test('allows a session for two seconds after its end, at every replica', () => {
    const history: Entry[] = [{ type: 'access_ended', at: 1_000, access: 's' }];
    const use = (at: number) => call(at, { kind: 'access', access: 's' }, { type: 'succeeded' });
    expect(accessAfterEnd([...history, ...use(3_000)])).toEqual([]);
    expect(accessAfterEnd([...history, ...use(3_001)])).toHaveLength(1);
  });
});
