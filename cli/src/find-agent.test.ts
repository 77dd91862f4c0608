import type { Client } from '@muster/protocol/client';
import { ApiError } from '@muster/protocol/client';
import { type Agent, listAgents } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { agent } from '../test/examples.ts';
import { findAgent, findAgents, matchAgent } from './find-agent.ts';

const web1 = agent({ name: 'web-1', node_id: `3f8c${'0'.repeat(28)}` });
const web10 = agent({ name: 'web-10', node_id: `3f8d${'0'.repeat(28)}` });
const db = agent({ name: 'database', node_id: `a1${'0'.repeat(30)}` });
const pending = agent({ name: null, status: 'pending', node_id: `b2${'0'.repeat(30)}`, initial_hostname: 'cache-1' });
const all = [web1, web10, db, pending];

test.each([
  ['a whole name, though another begins with it', 'web-1', web1],
  ['a node id', web10.node_id, web10],
  ['a node id in capitals', web10.node_id.toUpperCase(), web10],
  ['the beginning of one name', 'da', db],
  ['the beginning of one node id', '3f8d', web10],
  ['an agent without a name by its node id', 'b2', pending],
])('%s finds the agent', (_, wanted, found) => {
  expect(matchAgent(wanted, all)).toEqual({ kind: 'one', agent: found });
});

test('a beginning that several have finds none of them', () => {
  expect(matchAgent('web', all)).toEqual({ kind: 'many', agents: [web1, web10] });
  expect(matchAgent('3f8', all)).toEqual({ kind: 'many', agents: [web1, web10] });
});

test('a hostname finds nobody: an unapproved agent chooses its own', () => {
  expect(matchAgent('cache-1', all)).toMatchObject({ kind: 'none' });
});

test.each([
  ['wbe-1', 'web-1'],
  ['databse', 'database'],
  ['DATABASE', 'database'],
  ['zzzzzzzz', null],
])('for %s the nearest is %s', (wanted, near) => {
  expect(matchAgent(wanted, all)).toEqual({ kind: 'none', nearest: near });
});

/** Answers as the orchestrator does, and counts how often everything was listed. */
function clientOf(agents: readonly Agent[]) {
  let lists = 0;
  const call = (async (route: { id: string }, { params }: { params?: { node_id: string } }) => {
    if (route.id === listAgents.id) {
      lists++;
      return agents;
    }
    const found = agents.find(({ name, node_id }) => name === params?.node_id || node_id === params?.node_id);
    if (found) return found;
    const code = 'agent_not_found';
    throw new ApiError({ type: '', title: '', status: 404, detail: 'no such agent', instance: '', code });
  }) as unknown as Client;
  return { call, lists: () => lists };
}

test('a whole name costs one record, a beginning one list', async () => {
  const { call, lists } = clientOf(all);
  expect(await findAgent(call, 'web-1')).toBe(web1);
  expect(lists()).toBe(0);
  expect(await findAgent(call, 'data')).toBe(db);
  expect(lists()).toBe(1);
});

test('nobody and several are told with what to do', async () => {
  const { call } = clientOf(all);
  await expect(findAgent(call, 'wbe-1')).rejects.toMatchObject({
    code: 'agent_not_found',
    remedy: expect.stringContaining('Did you mean web-1?'),
  });
  await expect(findAgent(call, 'web')).rejects.toMatchObject({
    code: 'agent_ambiguous',
    message: '2 agents begin with "web": web-1, web-10',
  });
  await expect(findAgent(call, '')).rejects.toMatchObject({ code: 'usage' });
});

test('an agent that is named twice is meant once', async () => {
  expect(await findAgents(clientOf(all).call, ['web-1', '3f8c', 'da'])).toEqual([web1, db]);
});
