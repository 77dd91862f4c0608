import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@muster/protocol/client';
import { expect } from 'vitest';
import { signIn, transportTo } from './client.ts';
import { type Orchestrator, type Stage, test } from './harness.ts';

/**
 * Tests the API behavior that docs/api.md promises in addition to the schemas, with a real orchestrator and agent:
 * statuses, headers, the meaning of null, and repeated requests.
 */

interface Answer {
  status: number;
  code: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a client that was written from a page has no types
  body: any;
  header(name: string): string | null;
}
type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;

async function signedIn(orchestrator: Orchestrator): Promise<Ask> {
  const transport = transportTo(() => readFileSync(join(orchestrator.dataDir, 'api.crt'), 'utf8'));
  const token = await signIn(createClient({ url: orchestrator.url, transport }), orchestrator.operator);
  return async (method, path, body, headers = {}) => {
    const answer = await transport({
      method,
      url:
        path.startsWith('/api/') || path === '/healthz'
          ? `${orchestrator.url}${path}`
          : `${orchestrator.url}/api/v1${path}`,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: undefined,
    });
    const text = await answer.text();
    const read = text === '' ? undefined : JSON.parse(text);
    return { status: answer.status, code: read?.code, body: read, header: answer.header };
  };
}

async function open(stage: Stage) {
  const orchestrator = await stage.orchestrator();
  const ask = await signedIn(orchestrator);
  const waiting = async () => (await stage.agent(orchestrator, 'web-1', { token: null })).nodeId;
  /** Returns the status of a response, followed by its error code, if any. */
  const outcomeOf = async (...call: Parameters<Ask>) => {
    const { status, code } = await ask(...call);
    return code === undefined ? `${status}` : `${status} ${code}`;
  };
  return { ask, outcomeOf, waiting };
}

const moduleAt = (name: string, path: string) => ({
  name,
  content: JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ id: 'f', resource: { 'file-unix': { path, content: 'x\n' } } }],
  }),
});

test('the API keeps the name on a second approval, and paginates lists with the Link header', async ({ stage }) => {
  const { ask, outcomeOf, waiting } = await open(stage);
  const id = await waiting();
  expect(await outcomeOf('DELETE', `/agents/${id}`)).toBe('409 agent_not_rejected');
  expect(await outcomeOf('POST', `/agents/${id}`, { status: 'approved', name: null })).toBe('400 name_required');
  const { body: approved } = await ask('POST', `/agents/${id}`, { status: 'approved', name: 'web-1' });
  for (const again of [{ status: 'approved' }, { status: 'approved', name: 'web-1' }])
    expect((await ask('POST', '/agents/web-1', again)).body.updated_at).toBe(approved.updated_at);
  expect((await ask('GET', '/audit?event_type=agent.approved')).body.events).toHaveLength(1);
  expect(await outcomeOf('POST', `/agents/${id}`, { status: 'approved', name: 'web-2' })).toBe('409 agent_named');
  expect(await outcomeOf('POST', '/agents/!!', { status: 'unheard of' })).toBe('400 invalid_input');
  expect(await outcomeOf('POST', '/agents/!!', { status: 'approved', name: 'x' })).toBe('404 agent_not_found');

  expect(await outcomeOf('PUT', '/agents/web-1/tags', { tags: { role: 'web', env: 'prod eu' } })).toBe('204');
  const matches = async (selector: string) => (await ask('POST', '/selectors/matches', { selector })).body.matches;
  for (const selector of ['env="prod eu"', 'role in (web,db) !gone', 'attr.platform=linux gone notin (a)', 'gone!=a'])
    expect(await matches(selector)).toEqual([id]);
  expect(await matches('')).toEqual([]);
  expect((await ask('GET', '/agents?filter=')).body).toHaveLength(1);
  const bad = await ask('GET', '/agents?filter=role%3D');
  expect(bad.body).toMatchObject({ status: 400, code: 'selector_invalid', errors: [{ path: '/filter', column: 6 }] });

  for (const name of ['m1', 'm2']) await ask('POST', '/modules', moduleAt(name, `/nowhere/${name}`));
  const first = await ask('GET', '/modules?limit=1');
  const [, next = ''] = /^<(.*)>; rel="next"$/.exec(first.header('link') ?? '') ?? [];
  const second = await ask('GET', next);
  expect([first, second].map(({ body }) => body[0].name)).toEqual(['m1', 'm2']);
  expect(second.header('link')).toBeNull();
  for (const limit of ['-1', 'x', '1.5', ''])
    expect(await outcomeOf('GET', `/modules?limit=${limit}`)).toBe('400 invalid_input');
  expect((await ask('GET', '/modules?limit=99999999999999999999')).body).toHaveLength(2);
  expect((await ask('GET', '/modules?limit=0')).body).toEqual([]);

  for (const path of ['/modules', '/healthz']) {
    const wrong = await ask('PATCH', path);
    expect([wrong.code, wrong.header('allow')]).toEqual([
      'method_not_allowed',
      path === '/healthz' ? 'GET, HEAD' : 'GET, HEAD, POST',
    ]);
  }
});

test('the API responds immediately with respond-async, binds applies to plans, and paginates by cursor', async ({
  stage,
}) => {
  const { ask, outcomeOf, waiting } = await open(stage);
  const id = await waiting();
  await ask('POST', `/agents/${id}`, { status: 'approved', name: 'web-1' });
  const path = join(stage.folder('machine'), 'file');
  await ask('POST', '/modules', moduleAt('one', path));
  expect((await ask('GET', '/agents/web-1/drift/latest')).body).toBeNull();
  expect(await outcomeOf('POST', '/agents/web-1/drift')).toBe('409 nothing_applied');
  for (const what of ['metrics', 'metrics/latest']) expect(await outcomeOf('GET', `/agents/web-1/${what}`)).toBe('204');
  expect(await outcomeOf('POST', '/terminal/web-1')).toBe('409 terminal_disabled');

  expect(await outcomeOf('POST', '/agents/web-1/plan', {})).toBe('400 invalid_input');
  expect(await outcomeOf('POST', '/agents/web-1/plan', { modules: ['gone'] })).toBe('404 module_not_found');
  const plan = (await ask('POST', '/agents/web-1/plan', { modules: ['one'] })).body;
  expect(plan).toMatchObject({ kind: 'plan', status: 'succeeded', summary: { total: 1, changed: 1 } });
  const apply = { modules: ['one'], plan_id: plan.operation_id, ttl: null };
  expect((await ask('POST', '/agents/web-1/apply', apply)).body).toMatchObject({
    status: 'succeeded',
    plan_id: plan.operation_id,
    resources: [{ status: 'changed', action: 'create' }],
  });
  expect(await outcomeOf('POST', '/agents/web-1/apply', apply)).toBe('409 plan_stale');
  appendFileSync(path, 'more\n');
  expect((await ask('POST', '/agents/web-1/drift')).body).toMatchObject({ status: 'drifted', trigger: 'operator' });
  // An apply that repairs drift succeeds and reports the repair.
  expect((await ask('POST', '/agents/web-1/apply', { modules: ['one', 'one'] })).body).toMatchObject({
    modules: ['one'],
    resources: [{ corrective: true, status: 'changed' }],
  });

  const prefer = { prefer: 'wait=5, respond-async' };
  const accepted = await ask('POST', '/agents/web-1/apply', { modules: [] }, prefer);
  expect(accepted.status).toBe(202);
  expect(accepted.header('preference-applied')).toBe('respond-async');
  expect((await ask('GET', accepted.header('location') ?? '')).body.operation_id).toBe(accepted.body.operation_id);

  await ask('POST', '/assignments', { name: 'all', modules: ['one'], selector: '!gone', mode: null, parameters: null });
  expect(await outcomeOf('DELETE', '/modules/one')).toBe('409 module_in_use');
  expect(await outcomeOf('POST', '/assignments/all/plan')).toBe('200');
  const run = await ask('POST', '/assignments/all/apply', { batch: '50%', canary: null, offline: null }, prefer);
  expect([run.status, run.header('location')]).toEqual([202, `/api/v1/runs/${run.body.run_id}`]);

  const ofAgents = await ask(
    'POST',
    '/runs',
    { kind: 'plan', node_ids: [run.body.results[0].node_id], modules: [] },
    prefer,
  );
  expect(ofAgents).toMatchObject({ status: 202, body: { assignment: null, kind: 'plan' } });

  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: Answer = await ask('GET', `/state/operations?limit=2${cursor && `&cursor=${cursor}`}`);
    seen.push(...body.operations.map(({ operation_id }: { operation_id: string }) => operation_id));
    expect(body.has_more).toBe(body.next_cursor !== null);
    cursor = body.next_cursor;
  }
  expect(seen).toEqual([...new Set(seen)].sort().reverse());
  expect(seen.length).toBeGreaterThanOrEqual(5);
});

test('the API clears a field that is null in a request and keeps a field that is absent', async ({ stage }) => {
  const { ask, outcomeOf } = await open(stage);
  const expires_at = '2036-01-01T02:00:00+02:00';
  await ask('POST', '/secrets', { name: 'pw', value: 'x', description: 'd', expires_at, restriction: { tags: 'a=b' } });
  const put = async (body?: unknown) => {
    const { body: secret } = await ask('PUT', '/secrets/pw', body);
    return [secret.description, secret.expires_at, secret.restriction?.tags ?? null];
  };
  const as = ['d', '2036-01-01T00:00:00.000Z', 'a=b'];
  for (const body of [undefined, {}, { value: null, description: null, restriction: null }])
    expect(await put(body)).toEqual(as);
  expect(await put({ expires_at: null })).toEqual(['d', null, 'a=b']);
  expect(await put({ restriction: {} })).toEqual(['d', null, null]);

  const days = async (body?: unknown) => (await ask('PUT', '/audit/retention', body)).body.retention_days;
  for (const body of [{ retention_days: null }, {}, undefined]) {
    expect(await days({ retention_days: 100_000 })).toBe(100_000);
    expect(await days(body)).toBeNull();
  }
  for (const retention_days of [0, -1, 1.5, '5'])
    expect(await outcomeOf('PUT', '/audit/retention', { retention_days })).toBe('400 invalid_input');

  const url = 'http://127.0.0.1:1/';
  const channel = { name: 'hook', channel_type: 'webhook', config: { url, secret: 'hunter2' } };
  const { id, config } = (await ask('POST', '/channels', channel)).body;
  expect(config).toEqual({ url, secret: '••••' });
  expect((await ask('PUT', `/channels/${id}`, { name: null, config })).body).toMatchObject({ name: 'hook', config });
  expect((await ask('PUT', `/channels/${id}`, { config: { url } })).body.config).toEqual({ url });
  expect(await outcomeOf('PUT', `/channels/${id}`, { config })).toBe('400 invalid_input');
  expect(await outcomeOf('POST', `/channels/${id}/test`)).toBe('502 channel_failed');
  expect(await outcomeOf('DELETE', `/channels/${id}`)).toBe('204');

  const now = Math.floor(Date.now() / 1000);
  const window = { starts_at: now - 10, ends_at: now + 100, reason: 'x', selector: null };
  const { body: made } = await ask('POST', '/maintenance-windows', window);
  expect((await ask('PUT', `/maintenance-windows/${made.id}`)).body).toEqual(made);
  expect((await ask('PUT', `/maintenance-windows/${made.id}`, { ends_at: now })).body.ends_at).toBe(now);
  expect(await outcomeOf('POST', '/maintenance-windows', { ...window, ends_at: window.starts_at })).toBe(
    '400 invalid_input',
  );
});
