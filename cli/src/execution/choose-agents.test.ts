import type { Client } from '@muster/protocol/client';
import { ApiError } from '@muster/protocol/client';
import { type Agent, listAgents } from '@muster/protocol/http';
import { matchesSelector, parseSelector } from '@muster/protocol/selector';
import { describe, expect, test } from 'vitest';
import { agent } from '../../test/examples.ts';
import type { Connection, Context } from '../context/context.ts';
import { type AgentOptions, agreeTo, chooseAgent, chooseAgents, fewNames, matchAgent } from './choose-agents.ts';

const web1 = agent({ name: 'web-1', node_id: `3f8c${'0'.repeat(28)}` });
const web10 = agent({ name: 'web-10', node_id: `3f8d${'0'.repeat(28)}` });
const db = agent({ name: 'database', node_id: `a1${'0'.repeat(30)}` });
const pending = agent({ name: null, status: 'pending', node_id: `b2${'0'.repeat(30)}`, initial_hostname: 'cache-1' });
const all = [web1, web10, db, pending];

test.each([
  ['a complete name that is the beginning of another', 'web-1', web1],
  ['a node id', web10.node_id, web10],
  ['a node id in capitals', web10.node_id.toUpperCase(), web10],
  ['the beginning of one name', 'da', db],
  ['the beginning of one node id', '3f8d', web10],
  ['an agent without a name by its node id', 'b2', pending],
])('finds an agent by %s', (_, nameOrId, found) => {
  expect(matchAgent(nameOrId, all)).toEqual({ fitting: [found], nearest: [] });
});

test('reports a prefix that matches several names as ambiguous', () => {
  expect(matchAgent('web', all)).toEqual({ fitting: [web1, web10], nearest: [] });
  expect(matchAgent('3f8', all)).toEqual({ fitting: [web1, web10], nearest: [] });
});

test('does not match web-10 with the prefix web-1', () => {
  expect(matchAgent('web-1', [web10, db])).toEqual({ fitting: [], nearest: ['web-10'] });
  expect(matchAgent('web-', [web10, db])).toEqual({ fitting: [web10], nearest: [] });
  expect(matchAgent('3f8d0', [web10, db])).toEqual({ fitting: [web10], nearest: [] });
});

test('ignores hostnames, because a pending agent chooses its own', () => {
  expect(matchAgent('cache-1', all)).toMatchObject({ fitting: [] });
});

test.each([
  ['wbe-1', ['web-1']],
  ['web-11', ['web-1', 'web-10']],
  ['databse', ['database']],
  ['DATABASE', ['database']],
  ['zzzzzzzz', []],
])('given %s, suggests %s', (nameOrId, near) => {
  expect(matchAgent(nameOrId, all)).toEqual({ fitting: [], nearest: near });
});

/** Creates a client that responds as the orchestrator does and records the requests. */
function clientOf(agents: readonly Agent[]) {
  const requests: unknown[] = [];
  const call = (async (
    route: { id: string },
    { params, query = {} }: { params?: { node_id: string }; query?: { status?: string; filter?: string } },
  ) => {
    requests.push(route.id === listAgents.id ? query : params?.node_id);
    const problem = { type: '', title: '', instance: '' };
    if (route.id === listAgents.id) {
      const { filter, status } = query;
      const parsed = parseSelector(filter ?? '');
      if (!parsed.ok) {
        const { column, message } = parsed.fault;
        const errors = [{ path: '/filter', message, line: 1, column }];
        const detail = `${message} (column ${column})`;
        throw new ApiError({ ...problem, status: 400, detail, code: 'selector_invalid', errors });
      }
      return agents.filter(
        (one) => (status === undefined || one.status === status) && matchesSelector(parsed.selector, one),
      );
    }
    const found = agents.find(({ name, node_id }) => name === params?.node_id || node_id === params?.node_id);
    if (found) return found;
    throw new ApiError({ ...problem, status: 404, detail: 'no such agent', code: 'agent_not_found' });
  }) as unknown as Client;
  const context = (stdin = '') => ({ connect: async () => ({ call }) as Connection, stdin: async () => stdin });
  return { call, requests, context };
}

const choose = (typed: string[], options: AgentOptions = {}, stdin = '') =>
  chooseAgents(clientOf(all).context(stdin), typed, options);

test('requests a single agent for a complete name, and the list of agents for a prefix', async () => {
  const { call, requests } = clientOf(all);
  expect(await chooseAgent(call, 'web-1')).toBe(web1);
  expect(requests).toEqual(['web-1']);
  expect(await chooseAgent(call, 'data')).toBe(db);
  expect(requests).toEqual(['web-1', 'data', {}]);
});

test('requests the list of agents once for several names, and removes duplicates', async () => {
  const { context, requests } = clientOf(all);
  expect(await chooseAgents(context(), ['web-1', '3f8c', 'da,b2'], {})).toEqual([web1, db, pending]);
  expect(requests).toEqual([{}]);
});

test('reads agent names from standard input', async () => {
  expect(await choose(['-', 'database'], {}, 'web-1\nweb-10\n')).toEqual([web1, web10, db]);
  expect(await choose(['-'], {}, '\r\nweb-1\r\n\r\n  web-10 \r\nweb-1\r\n')).toEqual([web1, web10]);
  await expect(choose(['-'], {}, '\n')).rejects.toMatchObject({ code: 'usage' });
});

test('reports unknown and ambiguous names with instructions', async () => {
  const { call } = clientOf(all);
  await expect(chooseAgent(call, 'wbe-1')).rejects.toMatchObject({
    code: 'agent_not_found',
    remedy: expect.stringContaining('Did you mean web-1?'),
  });
  await expect(chooseAgent(call, 'web')).rejects.toMatchObject({
    code: 'agent_ambiguous',
    message: '2 agents begin with "web": web-1, web-10',
  });
  await expect(chooseAgent(call, '')).rejects.toMatchObject({ code: 'usage' });
  await expect(chooseAgent(call, 'cache-1')).rejects.toMatchObject({
    remedy: expect.stringContaining('its node id is b20000000000'),
  });
  await expect(chooseAgent(call, 'role=web')).rejects.toMatchObject({
    remedy: expect.stringContaining('--selector "role=web"'),
  });
});

test('reports all invalid agent names in one error', async () => {
  await expect(choose(['web-1', 'wbe-1', 'web'])).rejects.toMatchObject({
    message: 'there is no agent "wbe-1"\n2 agents begin with "web": web-1, web-10',
    remedy: expect.stringMatching(/^Did you mean web-1\?\nType more .*\nList the agents/),
  });
});

test('sends a selector to the orchestrator instead of matching it locally', async () => {
  const { context, requests } = clientOf(all);
  expect(await chooseAgents(context(), [], { selector: 'role=web' })).toEqual([web1, web10, db]);
  expect(requests).toEqual([{ sort: 'name', status: 'approved', filter: 'role=web' }]);
  expect(await chooseAgents(context(), [], { all: true })).toEqual([web1, web10, db]);
  expect(await chooseAgents(context(), [], { all: true }, { status: 'pending' })).toEqual([pending]);
  await expect(choose([], { selector: 'role=nothing' })).rejects.toMatchObject({
    exit: 1,
    message: 'no approved agent matches "role=nothing"',
  });
});

test('shows the position of the error in a selector', async () => {
  await expect(choose([], { selector: 'role=web site in paris' })).rejects.toMatchObject({
    exit: 2,
    code: 'selector_invalid',
    message: expect.stringMatching(/\(column 18\)\nrole=web site in paris\n {17}\^$/),
  });
});

test.each([
  ['nothing', [], {}],
  ['names and a selector', ['web-1'], { selector: 'role=web' }],
  ['names and all', ['web-1'], { all: true }],
  ['a selector and all', [], { selector: 'role=web', all: true }],
  ['an empty selector', [], { selector: ' ' }],
])('refuses %s', async (_, typed, options) => {
  await expect(choose(typed, options)).rejects.toMatchObject({ code: 'usage' });
});

test('lists the first names and the number of remaining names', () => {
  expect(fewNames([web1, web10, db], 2)).toBe('web-1, web-10, database');
  expect(fewNames([web1, web10, db, pending], 2)).toBe('web-1, web-10 and 2 more');
  expect(fewNames([agent({ name: null, node_id: '\u001b]0;x\u0007' })])).toBe('\\x1b]0;x\\x07');
});

describe('confirmation before a change of many agents', () => {
  const asking = (answer: boolean, interactive = true) => {
    const questions: string[] = [];
    const confirm = async (question: string) => {
      questions.push(question);
      return answer;
    };
    const context = { out: { json: false }, prompt: { interactive, confirm } } as unknown as Pick<
      Context,
      'out' | 'prompt'
    >;
    return { questions, context };
  };
  const agree = (context: Pick<Context, 'out' | 'prompt'>, agents: Agent[], yes = false) =>
    agreeTo(context, agents, { doing: 'Reject', yes });

  test('asks for confirmation only for more than three agents, and stops if the answer is no', async () => {
    const { questions, context } = asking(true);
    await agree(context, [web1, web10, db]);
    expect(questions).toEqual([]);
    await agree(context, all);
    expect(questions).toEqual(['Reject 4 agents: web-1, web-10, database, b20000000000?']);
    await agree(asking(false).context, all, true);
    await expect(agree(asking(false).context, all)).rejects.toMatchObject({ code: 'cancelled' });
  });

  test('requires --yes if there is no terminal', async () => {
    await expect(agree(asking(true, false).context, all)).rejects.toMatchObject({
      exit: 2,
      remedy: expect.stringContaining('--yes'),
    });
  });
});
