import { type Agent, agentExample, listAgents, redeemWebLogin } from '@muster/protocol/http';
import { expect, onTestFinished, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { session } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { keys } from '../query-keys.ts';
import type { Person } from '../sign-in/session.ts';
import { redeemCode } from '../sign-in/sign-in.ts';
import { firstAgentsSort, prefetchAgents, requestFirstAgents } from './agent-list.ts';

test.each([
  [null, 'name'],
  ['agent', 'name'],
  ['-agent', '-name'],
  ['state', null],
  ['-cpu', null],
])('requests the first agents in the sort order of the page: %s', (order, sort) => {
  expect(firstAgentsSort(order)).toBe(sort);
});

/** A sign-in that waits for confirmation, and whose session prefetches the agents. */
async function pendingSignIn() {
  const api = fakeApi();
  api.answerExamples(redeemWebLogin);
  const agents: readonly Agent[] = [agentExample];
  const first = vi.fn(() => [...agents]);
  const all = Promise.withResolvers<Agent[]>();
  api.answer(listAgents, ({ query: { limit } }) => (limit === undefined ? all.promise : first()));
  const pending = await redeemCode('code');
  onTestFinished(async () => {
    all.resolve([]);
    await session.leave();
  });
  onTestFinished(
    session.subscribe(() => {
      const state = session.state();
      if (state.status === 'live') prefetchAgents(state.person);
    }),
  );
  return { api, agents, first, pending };
}
const firstAgents = () => queryClient.getQueryData(keys.firstAgents('name'));

test('sends a single request for the first agents and caches them before a confirmed session begins', async () => {
  const { agents, first, pending } = await pendingSignIn();
  requestFirstAgents(pending);
  await vi.waitFor(() => expect(first).toHaveBeenCalledTimes(1));
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(firstAgents()).toBeUndefined();
  let atStart: unknown;
  onTestFinished(
    session.subscribe(() => {
      atStart = firstAgents();
    }),
  );
  await pending.begin();
  expect(atStart).toEqual(agents);
  expect(first).toHaveBeenCalledTimes(1);
});

test('waits for a request for the first agents that was sent before the session began', async () => {
  const { agents, first, pending } = await pendingSignIn();
  requestFirstAgents(pending);
  await pending.begin();
  await vi.waitFor(() => expect(firstAgents()).toEqual(agents));
  expect(first).toHaveBeenCalledTimes(1);
});

test('requests the first agents again after a failed request', async () => {
  const { agents, first, pending } = await pendingSignIn();
  requestFirstAgents({ ...pending, call: () => Promise.reject(new Error('no answer')) });
  await pending.begin();
  await vi.waitFor(() => expect(firstAgents()).toEqual(agents));
  expect(first).toHaveBeenCalledTimes(1);
});

test('does not show first agents that were requested for another sign-in', async () => {
  const { agents, first, pending } = await pendingSignIn();
  const person: Person = { ...pending.person };
  requestFirstAgents({ ...pending, person, call: async () => [] as never });
  await new Promise((resolve) => setTimeout(resolve, 10));
  await pending.begin();
  await vi.waitFor(() => expect(firstAgents()).toEqual(agents));
  expect(first).toHaveBeenCalledTimes(1);
});

test('requests the first agents again if the sign-in is confirmed late', async () => {
  const { agents, first, pending } = await pendingSignIn();
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  now.mockReturnValue(1_000);
  requestFirstAgents({ ...pending, call: async () => [] as never });
  now.mockReturnValue(31_001);
  await pending.begin();
  await vi.waitFor(() => expect(firstAgents()).toEqual(agents));
  expect(first).toHaveBeenCalledTimes(1);
});
