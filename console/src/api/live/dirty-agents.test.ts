import { describe, expect, test } from 'vitest';
import { createDirtyAgents, patched } from './dirty-agents.ts';

/** Uses a fake clock that the test advances. */
function rig() {
  let time = 0;
  let timers: { at: number; act: () => void }[] = [];
  const done: string[] = [];
  const agents = createDirtyAgents({
    fetchSome: (ids) => done.push(`${time}: ${ids.join(' ')}`),
    fetchAll: () => done.push(`${time}: all`),
    now: () => time,
    after: (ms, act) => {
      const timer = { at: time + ms, act };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  });
  const turn = (to: number) => {
    for (;;) {
      const due = timers.filter(({ at }) => at <= to).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      timers = timers.filter((other) => other !== due);
      time = due.at;
      due.act();
    }
    time = to;
  };
  return { agents, turn, done };
}

const many = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

describe('changed agents', () => {
  test('fetches each changed agent once, a second after the first event', () => {
    const { agents, turn, done } = rig();
    for (const id of ['a', 'b', 'a']) agents.add(id);
    turn(999);
    expect(done).toEqual([]);
    turn(5_000);
    expect(done).toEqual(['1000: a b']);
  });

  test('fetches the whole list if an event indicates that any agent may have changed', () => {
    const { agents, turn, done } = rig();
    agents.add('a');
    agents.addAll();
    turn(5_000);
    agents.add('b');
    turn(20_000);
    expect(done).toEqual(['1000: all', '6000: b']);
  });

  test('fetches the whole list at most every ten seconds if many agents changed', () => {
    const { agents, turn, done } = rig();
    for (let second = 0; second < 25; second++) {
      for (const id of many(50)) agents.add(id);
      turn((second + 1) * 1_000);
    }
    turn(60_000);
    expect(done).toEqual(['1000: all', '11000: all', '21000: all', '31000: all']);
  });

  test('fetches the whole list if an event names no agents', () => {
    const { agents, turn, done } = rig();
    agents.add('a');
    agents.addAll();
    turn(5_000);
    agents.addAll();
    agents.clear();
    agents.add('b');
    turn(60_000);
    expect(done).toEqual(['1000: all', '6000: b']);
  });

  test('fetches nothing after a sign-out clears the changes', () => {
    const { agents, turn, done } = rig();
    agents.add('a');
    agents.clear();
    turn(5_000);
    expect(done).toEqual([]);
  });
});

describe('a list of agents', () => {
  test('replaces changed agents in the list and keeps the other records', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((node_id) => ({ node_id, at: 1 }));
    const list = [a, b, c] as { node_id: string; at: number }[];
    const fresh = new Map([
      ['b', { node_id: 'b', at: 2 }],
      ['c', null],
      ['d', { node_id: 'd', at: 2 }],
      ['e', null],
    ]);
    const next = patched(list, fresh);
    expect(next).toEqual([a, { node_id: 'b', at: 2 }, { node_id: 'd', at: 2 }]);
    expect(next[0]).toBe(a);
  });
});
