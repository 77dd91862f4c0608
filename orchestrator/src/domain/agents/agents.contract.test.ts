import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { listAudit } from '../audit/audit.ts';
import { agentsInTurns, getAgent, listAgentPage, listAgents, removeAgent, setStatus } from './agents.ts';
import { createToken, deleteOldTokens, listTokens, namesFromHostname, revokeToken } from './enrollment.ts';
import { deleteOneTag, listTags, putOneTag, putTags } from './tags.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );
const advertised = { agents: 'muster.example:4747', publicKey: 'ab'.repeat(32) };

const all = { limit: 100, offset: 0 };

describeAnyDatabase('agents', (fixture) => {
  test('gives a pending agent a permanent name when it is approved', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const key = await newKey();
    expect(await connect(domain, key)).toMatchObject({ admitted: true, standing: { status: 'pending', name: null } });
    const set = (status: 'approved' | 'rejected', name?: string) =>
      code(setStatus(context, actor, key.id, name === undefined ? { status } : { status, name }));
    expect(await set('approved')).toBe('name_required');
    expect(await set('approved', '1web')).toBe('invalid_input');
    expect(await set('approved', 'web-1')).toBe('done');
    expect(await set('approved', 'web-1')).toBe('done');
    expect(await set('approved', 'web-2')).toBe('agent_named');
    expect(await getAgent(context, 'web-1')).toMatchObject({
      node_id: key.id,
      status: 'approved',
      connected: true,
      initial_ip: '192.0.2.7',
    });
    expect(await code(removeAgent(context, actor, key.id))).toBe('agent_not_rejected');
    expect(await set('rejected', 'ignored')).toBe('done');
    expect(await code(getAgent(context, 'web-1'))).toBe('agent_not_found');
    expect(await connect(domain, key)).toMatchObject({
      admitted: false,
      refusal: { code: 'rejected', retry_after_secs: 600 },
    });
    expect(await set('approved')).toBe('done');
    expect((await getAgent(context, key.id)).name).toBe('web-1');
    expect(await set('rejected')).toBe('done');
    expect(await code(removeAgent(context, actor, key.id))).toBe('done');
    expect(await code(getAgent(context, key.id))).toBe('agent_not_found');
    const { events } = await listAudit(context, { agent: key.id });
    expect(events.map(({ event_type }) => event_type).reverse()).toEqual([
      'agent.pending',
      'agent.connected',
      'agent.approved',
      'agent.rejected',
      'agent.approved',
      'agent.rejected',
      'agent.removed',
    ]);
  });

  test('refuses a name that is in use', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    await newAgent(domain, actor, 'web-1');
    const second = await newKey();
    await connect(domain, second);
    const approval = { status: 'approved', name: 'web-1' } as const;
    expect(await code(setStatus(domain.context, actor, second.id, approval))).toBe('name_taken');
    expect((await getAgent(domain.context, second.id)).status).toBe('pending');
  });

  test('refuses new agents when too many are pending', async () => {
    const domain = await openDomain(fixture, { pendingCapacity: 2 });
    const keys = [await newKey(), await newKey(), await newKey()];
    const outcomes = [];
    for (const key of keys) outcomes.push((await connect(domain, key)).admitted);
    expect(outcomes).toEqual([true, true, false]);
    expect(await connect(domain, keys[0]!)).toMatchObject({ admitted: true });
    expect(await connect(domain, keys[2]!)).toMatchObject({ refusal: { code: 'pending_full' } });
  });

  test('enrolls an agent with the name and tags from a single-use token', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { token, command } = await createToken(context, actor, { name: 'db-1', tags: { role: 'db' } }, advertised);
    expect(command).toBe(
      `MUSTER_TOKEN=${token} muster agent connect muster.example:4747 --orchestrator-key ${advertised.publicKey}`,
    );
    expect(await code(createToken(context, actor, { name: 'db-1' }, advertised))).toBe('name_taken');
    const key = await newKey();
    expect(await connect(domain, key, { token })).toMatchObject({
      standing: { status: 'approved', name: 'db-1', tags: { role: 'db' } },
    });
    // The agent may present the same token on each start.
    expect(await connect(domain, key, { token })).toMatchObject({ standing: { status: 'approved', name: 'db-1' } });
    expect(await connect(domain, await newKey(), { token })).toMatchObject({ refusal: { code: 'token_invalid' } });
    expect((await listTokens(context, false, all)).items).toEqual([]);
  });

  test('derives distinct names from hostnames for agents that enroll with a multi-use token', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { token, id } = await createToken(context, actor, { uses: 3 }, advertised);
    const [first, second] = [await newKey(), await newKey()];
    expect(await connect(domain, first, { token, hostname: 'web-1.example.org' })).toMatchObject({
      standing: { name: 'web-1' },
    });
    expect(await connect(domain, second, { token, hostname: 'web-1' })).toMatchObject({
      standing: { name: `web-1-${second.id.slice(0, 4)}` },
    });
    expect((await listTokens(context, false, all)).items).toMatchObject([{ id, uses_left: 1 }]);
    await revokeToken(context, actor, id);
    expect(await code(revokeToken(context, actor, id))).toBe('enrolment_token_not_found');
    expect(await connect(domain, await newKey(), { token })).toMatchObject({ refusal: { code: 'token_invalid' } });
  });

  test('lists ended tokens for 30 days', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const used = await createToken(context, actor, {}, advertised);
    await connect(domain, await newKey(), { token: used.token, hostname: 'one' });
    const revoked = await createToken(context, actor, {}, advertised);
    await revokeToken(context, actor, revoked.id);
    const expired = await createToken(context, actor, { expires_in: 60 }, advertised);
    const live = await createToken(context, actor, { expires_in: 86_400 }, advertised);
    domain.clock.advance(60_000);
    const ids = async (ended: boolean) => (await listTokens(context, ended, all)).items.map(({ id }) => id);
    expect(await ids(false)).toEqual([live.id]);
    expect(await ids(true)).toEqual([live.id, expired.id, revoked.id, used.id]);
    const { items } = await listTokens(context, true, all);
    expect(items.map(({ uses_left, revoked_at }) => [uses_left, revoked_at !== null])).toEqual([
      [1, false],
      [1, false],
      [1, true],
      [0, false],
    ]);
    expect(JSON.stringify(items)).not.toContain(live.token);
    domain.clock.advance(30 * 86_400_000);
    await deleteOldTokens(context);
    expect(await ids(true)).toEqual([live.id, revoked.id, used.id]);
    domain.clock.advance(86_400_000);
    await deleteOldTokens(context);
    expect(await ids(true)).toEqual([]);
  });

  test('refuses an expired token, and approves a pending agent with a valid token', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const { token } = await createToken(domain.context, actor, { expires_in: 60, uses: 2 }, advertised);
    const key = await newKey();
    await connect(domain, key);
    expect(await connect(domain, key, { token })).toMatchObject({ standing: { status: 'approved' } });
    domain.clock.advance(60_000);
    expect(await connect(domain, await newKey(), { token })).toMatchObject({ refusal: { code: 'token_invalid' } });
  });

  test('finds agents by tag selectors', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const web = await newAgent(domain, actor, 'web-1');
    const db = await newAgent(domain, actor, 'db-1');
    await putTags(context, actor, 'web-1', { role: 'web', site: 'paris' });
    await putOneTag(context, actor, db.id, 'role', 'db');
    expect(await listTags(context)).toEqual({
      tags: { role: ['db', 'web'], site: ['paris'] },
      counts: { role: { db: 1, web: 1 }, site: { paris: 1 } },
    });
    const found = async (filter: string) => (await listAgents(context, { filter })).map(({ node_id }) => node_id);
    expect(await found('role=web')).toEqual([web.id]);
    expect((await found('')).sort()).toEqual([web.id, db.id].sort());
    expect(await found('role in (db,cache) attr.distro=debian')).toEqual([db.id]);
    expect(await code(listAgents(context, { filter: '=web' }))).toBe('selector_invalid');
    await putTags(context, actor, 'web-1', { role: 'cache' });
    expect((await getAgent(context, 'web-1')).tags).toEqual({ role: 'cache' });
    await deleteOneTag(context, actor, 'web-1', 'role');
    expect(await code(deleteOneTag(context, actor, 'web-1', 'role'))).toBe('tag_not_found');
    expect(await code(putTags(context, actor, 'web-1', { '1x': 'a', ok: '\u0007' }))).toBe('invalid_input');
    const pathsOf = (promise: Promise<unknown>) =>
      promise.catch((error: unknown) => (error instanceof MusterError ? error.errors?.map(({ path }) => path) : error));
    expect(await pathsOf(putTags(context, actor, 'web-1', { 'a/b': '\n', '1x': 'a' }))).toEqual([
      '/tags/a~1b',
      '/tags/1x',
    ]);
    expect(await pathsOf(putOneTag(context, actor, 'web-1', '1x', '\n'))).toEqual(['/key', '/value']);
    await putTags(context, actor, 'web-1', { role: 'db', 'a.b': '' });
    expect(await listTags(context)).toEqual({
      tags: { 'a.b': [''], role: ['db'] },
      counts: { 'a.b': { '': 1 }, role: { db: 2 } },
    });
  });

  test('lists agents by status, text, and page', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    for (const name of ['alpha', 'beta', 'gamma']) await newAgent(domain, actor, name);
    await connect(domain, await newKey(), { hostname: 'Alphabet' });
    const names = async (filter: Parameters<typeof listAgents>[1]) =>
      (await listAgents(context, filter)).map(({ name, initial_hostname }) => name ?? initial_hostname);
    expect(await names({ sort: 'name', status: 'approved' })).toEqual(['alpha', 'beta', 'gamma']);
    expect(await names({ sort: '-name' })).toEqual(['gamma', 'beta', 'alpha', 'Alphabet']);
    expect(await names({ sort: 'name', limit: 2, offset: 1 })).toEqual(['beta', 'gamma']);
    expect((await names({ q: 'ALPHA' })).sort()).toEqual(['Alphabet', 'alpha']);
    expect(await names({ status: 'pending' })).toEqual(['Alphabet']);
    expect(await names({ limit: 0 })).toEqual([]);
  });

  test('sorts agents by last-seen time, which is now for connected agents', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const first = await newAgent(domain, actor, 'first');
    domain.clock.advance(10_000);
    const second = await newAgent(domain, actor, 'second');
    domain.connected.delete(second.id);
    await domain.links.closed(second.id, 'gone', domain.now());
    domain.clock.advance(10_000);
    const names = async (filter: Parameters<typeof listAgents>[1]) =>
      (await listAgents(context, filter)).map(({ name }) => name);
    expect(await names({ sort: '-last_seen_at' })).toEqual(['first', 'second']);
    expect(await names({ sort: 'last_seen_at' })).toEqual(['second', 'first']);
    expect(await names({ sort: 'connected_at' })).toEqual(['first', 'second']);
    domain.connected.delete(first.id);
    await domain.links.closed(first.id, 'gone', domain.now());
    domain.clock.advance(10_000);
    domain.connected.add(second.id);
    expect(await names({ sort: '-last_seen_at' })).toEqual(['second', 'first']);
  });

  test('finds agents by their current hostname and by no other attribute', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const key = await newAgent(domain, actor, 'web-1');
    await newAgent(domain, actor, 'web-2');
    await domain.links.attributesChanged(key.id, { hostname: 'Paris-7', distro: 'debian', note: 'web-2' });
    const found = async (q: string, more: object = {}) =>
      (await listAgents(context, { q, sort: 'name', ...more })).map(({ name }) => name);
    expect(await found('paris')).toEqual(['web-1']);
    expect(await found('debian')).toEqual([]);
    expect(await found('distro')).toEqual([]);
    expect(await found('web-2')).toEqual(['web-2']);
    expect(await found('WEB')).toEqual(['web-1', 'web-2']);
    expect(await found('web', { limit: 1, offset: 1 })).toEqual(['web-2']);
    expect(await found('')).toEqual(['web-1', 'web-2']);
  });

  test('reports for each page whether another page follows', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) {
      await newAgent(domain, actor, name);
      await putOneTag(context, actor, name, 'group', name[0] as string);
    }
    for (const filter of [
      {},
      { sort: 'name' },
      { filter: 'group=a' },
      { filter: 'group=a', sort: '-name' },
      { q: 'a' },
    ] as const) {
      const whole = await listAgents(context, filter);
      const inTurns: unknown[] = [];
      for await (const part of agentsInTurns(context, filter))
        inTurns.push(...part.map((json) => JSON.parse(String(json))));
      expect(inTurns).toEqual(whole);
      for (let offset = 0; offset <= 6; offset++)
        for (let limit = 0; limit <= 6; limit++) {
          const { items, more } = await listAgentPage(context, filter, { limit, offset });
          expect(items.map((json) => JSON.parse(String(json)))).toEqual(whole.slice(offset, offset + limit));
          expect(more).toBe(limit > 0 && offset + limit < whole.length);
        }
    }
  });

  test('omits agents that stop matching while the list is read', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const agents = await Promise.all(['a', 'b', 'c'].map((name) => newAgent(domain, actor, name)));
    const last = agents.map(({ id }) => id).sort()[2] as string;
    for (const [sort, node_id] of [
      [undefined, last],
      ['name', agents[1]?.id as string],
    ] as const) {
      const listed: unknown[] = [];
      for await (const part of agentsInTurns(context, { status: 'approved', sort }, 1)) {
        listed.push(...part.map((json) => JSON.parse(String(json)).status));
        await setStatus(context, actor, node_id, { status: 'rejected' });
      }
      expect(listed, sort).toEqual(['approved', 'approved']);
      await setStatus(context, actor, node_id, { status: 'approved' });
    }
  });

  test('shows each agent’s last-seen time', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const key = await newAgent(domain, actor, 'web-1');
    const since = domain.now();
    domain.clock.advance(5_000);
    expect(await getAgent(domain.context, key.id)).toMatchObject({ connected: true, last_seen_at: since + 5 });
    domain.connected.delete(key.id);
    await domain.links.closed(key.id, 'gone', domain.now());
    domain.clock.advance(5_000);
    expect(await getAgent(domain.context, key.id)).toMatchObject({
      connected: false,
      connected_at: since,
      last_seen_at: since + 5,
    });
    await domain.links.attributesChanged(key.id, { kernel: '6.18' });
    expect((await getAgent(domain.context, key.id)).attributes).toEqual({ kernel: '6.18' });
  });
});

test('derives a valid name from any hostname', () => {
  const nameFromHostname = (hostname: string, id: string, taken: boolean) =>
    namesFromHostname(hostname, id)[taken ? 1 : 0];
  const node = '3f8c2b0a9d7e41568c1b2a3d4e5f6071';
  expect(nameFromHostname('web-1.example.org', node, false)).toBe('web-1');
  expect(nameFromHostname('42', node, false)).toBe(`agent-${node}`);
  expect(nameFromHostname('7büro 1', node, false)).toBe('büro-1');
  expect(namesFromHostname('x'.repeat(200), node)[2]).toHaveLength(64);
  expect(nameFromHostname(node.replace(/^3/, 'a'), node, false)).toBe(`agent-${node}`);
});
