import { expect, test } from 'vitest';
import type { Unit } from '../../store/transaction.ts';
import type { Context } from './context.ts';
import { createHealth } from './health.ts';

const open = (isReplica: boolean) => {
  const state = { beatAge: 0, fails: false, written: [] as string[] };
  const db = {
    get: async () => undefined,
    write: async ({ statements }: Unit) => {
      if (state.fails) throw new Error('the lock is lost');
      state.written.push(...statements.map(({ query }) => query.name));
    },
  };
  const context = { db, now: () => 0 } as unknown as Context;
  return { state, health: createHealth(context, isReplica ? () => state.beatAge : null) };
};

test('reports no readiness while test writes fail', async () => {
  for (const isReplica of [false, true]) {
    const { state, health } = open(isReplica);
    await health.proveWritable();
    expect(await health.isReady()).toBe(true);
    state.fails = true;
    await expect(health.proveWritable()).rejects.toThrow('the lock is lost');
    expect(await health.isReady()).toBe(false);
    state.fails = false;
    await health.proveWritable();
    expect(await health.isReady()).toBe(true);
  }
});

test('reports a replica as not ready while its last heartbeat is too old', async () => {
  const { state, health } = open(true);
  state.beatAge = 6_000;
  await expect(health.proveWritable()).rejects.toThrow('accepts no heartbeats');
  expect(await health.isReady()).toBe(false);
});

test('reports a database that accepts writes, but no readiness, while draining', async () => {
  const { health } = open(true);
  await health.proveWritable();
  expect(health.serves).toBe(true);
  health.draining = true;
  expect(await health.isReady()).toBe(false);
  expect(health.serves).toBe(false);
  expect(await health.isWritable()).toBe(true);
});

test('changes a row in a test write only without replicas, because the test writes of replicas would conflict', async () => {
  for (const [isReplica, query] of [
    [true, 'operators/any'],
    [false, 'settings/put'],
  ] as const) {
    const { state, health } = open(isReplica);
    await health.proveWritable();
    expect(state.written).toEqual([query]);
  }
});
