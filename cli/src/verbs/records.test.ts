import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  agentExample,
  chainedExample,
  listReconcile,
  maxSamples,
  operatorSchema,
  routes,
  sampleExample,
} from '@muster/protocol/http';
import stringWidth from 'string-width';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { agent, style } from '../../test/examples.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../test/orchestrator.ts';
import { makeHome, musterHere as run } from '../../test/process.ts';
import type { Prompter } from '../keys/prompt.ts';
import { eventLine } from '../text/event-text.ts';

// Tests the commands for tags, metrics, the audit log, state, settings, operators, and module revisions.

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let answers: Record<string, (seen: Seen) => Answer | undefined> = {};
let env: Record<string, string>;

beforeAll(async () => {
  server = await standIn({ answers: new Proxy({}, { get: (_, id: string) => answers[id] }) });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url };
  await run(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  server.seen.length = 0;
});
afterEach(() => {
  answers = {};
});

const muster = (...args: string[]) => run(args, env);
const json = async (...args: string[]) => JSON.parse((await muster(...args, '--json')).stdout);
const all = (id: string) => server.seen.filter(({ route }) => route.id === id);
const sent = (id: string) => all(id)[0];
const widest = (text: string) =>
  Math.max(...text.split('\n').map((line) => stringWidth(line.replace(/\u001b\[\d+m/g, ''))));

/**
 * Simulates a terminal of this width whose prompter answers every question with the given answer and records the
 * questions.
 */
function person(columns: number, answer: boolean) {
  const questions: string[] = [];
  const prompt: Prompter = {
    interactive: true,
    confirm: async (question) => {
      questions.push(question);
      return answer;
    },
    choose: async () => null,
    ask: async () => '',
    secret: async () => '',
  };
  return { questions, types: (...args: string[]) => run(args, { ...env, NO_COLOR: '1' }, '', { columns, prompt }) };
}

describe('tags', () => {
  test('lists tags with their number of agents, and prints the key on every line in a pipe', async () => {
    expect((await muster('tags', 'list')).stdout).toMatch(/^KEY +VALUE +AGENTS\nrole +db +2\nrole +web +12\n$/);
    expect((await person(80, true).types('tags', 'list')).stdout).toMatch(/role +db +2\n +web +12/);
    expect(await json('tags', 'list', 'role')).toEqual({
      tags: { role: ['db', 'web'] },
      counts: { role: { db: 2, web: 12 } },
    });
    const unknown = await muster('tags', 'list', 'rolle');
    expect(unknown.exit).toBe(1);
    expect(unknown.stderr).toContain('Did you mean role?');
    answers.listTags = () => ({ body: { tags: {}, counts: {} } });
    expect((await muster('tags', 'list')).stderr).toContain('muster tags set');
  });

  test('replaces tags only after confirmation', async () => {
    expect((await muster('tags', 'replace', 'web-1', 'role=db')).exit).toBe(2);
    expect(sent('putTags')).toBeUndefined();
    const no = person(80, false);
    expect((await no.types('tags', 'replace', 'web-1', 'role=db', 'a=b')).exit).toBe(1);
    expect(no.questions).toEqual(['Keep only role=db a=b, and remove every other tag, on web-1?']);
    expect(sent('putTags')).toBeUndefined();
    expect((await person(80, true).types('tags', 'replace', 'web-1', 'role=db', 'a=b')).exit).toBe(0);
    expect(sent('putTags')?.body).toEqual({ tags: { role: 'db', a: 'b' } });
  });
});

describe('metrics', () => {
  test('requests all agents’ metrics together, but a few agents’ metrics individually, and lists agents without a sample', async () => {
    answers.listAgents = () => ({ body: [agent({}), agent({ node_id: 'ab'.repeat(16), name: 'web-2' })] });
    const listed = await muster('metrics', 'list');
    expect(listed.stdout).toMatch(
      /^AGENT +CPU +MEMORY +DISK +LOAD +UPTIME +SAMPLED\nweb-1 +13 % +25 % +30 % +0\.42 +10d +/,
    );
    expect(listed.stdout).toMatch(/web-2 +- +- +- +- +- +never/);
    expect(all('latestSamples')).toHaveLength(1);
    server.seen.length = 0;
    const drawn = await person(80, true).types('metrics', 'list', 'web-1');
    expect(drawn.stdout).toContain('█░░░░░░░░░  13 %');
    expect(widest(drawn.stdout)).toBeLessThanOrEqual(80);
    expect(all('latestSamples')).toHaveLength(0);
    expect(sent('latestSample')?.params).toEqual({ node_id: agentExample.node_id });
  });

  test.each([80, 40])(
    'fits metrics into %i columns, and requests averages over the width of a column',
    async (columns) => {
      const now = Math.floor(Date.now() / 1000);
      const at = (ago: number) => ({ ...sampleExample, collected_at: now - ago });
      answers.listSamples = ({ query }) => ({
        body: {
          node_id: agentExample.node_id,
          samples: query.step === undefined ? [at(90), at(60), at(30)] : [at(2000), at(1000), at(0)],
        },
      });
      const ran = await person(columns, true).types('metrics', 'show', 'web-1', '--since', '24h');
      expect(ran.stdout).toMatch(/last 1d, \S+( \S+)? per column, newest 3\ds ago/);
      for (const name of ['cpu', 'memory', 'disk', 'load', 'net in', 'net out'])
        expect(ran.stdout).toContain(`\n${name}`);
      // The first line is a sentence that is not wrapped.
      expect(widest(ran.stdout.split('\n').slice(1).join('\n'))).toBeLessThanOrEqual(columns);
      const averages = all('listSamples').find(({ query }) => query.step !== undefined);
      const step = Number(averages?.query.step);
      expect(step * columns).toBeGreaterThan(86_400);
      // The request includes one earlier bucket, because a rate needs the previous value of the counter.
      expect(now - Number(averages?.query.since)).toBeGreaterThan(86_400);
      expect(Number(averages?.query.since) % step).toBe(0);
    },
  );

  test('prints every sample as CSV or JSON', async () => {
    const ran = await muster('metrics', 'show', 'web-1', '--csv', '--since', '7d', '--step', '5m');
    expect(ran.stdout.split('\n')).toEqual([
      expect.stringMatching(/^collected_at,cpu_usage,memory_total,/),
      expect.stringMatching(/^1795000000,12\.5,8589934592,/),
      '',
    ]);
    expect(sent('listSamples')?.query).toMatchObject({ step: '300', limit: String(maxSamples) });
    expect((await json('metrics', 'show', 'web-1')).samples).toHaveLength(1);
    answers.listSamples = () => ({ status: 204, body: undefined });
    expect(await json('metrics', 'show', 'web-1')).toEqual({ node_id: agentExample.node_id, samples: [] });
    expect((await muster('metrics', 'show', 'web-1')).stderr).toContain('no samples of that period');
    for (const wrong of [
      ['--since', '5s'],
      ['--step', '5m'],
      ['--csv', '--json'],
      ['--follow', '--json'],
    ])
      expect((await muster('metrics', 'show', 'web-1', ...wrong)).exit).toBe(2);
  });

  test('prints each sample once when following', async () => {
    let requests = 0;
    answers.listSamples = ({ query }) => {
      if (requests++ === 3) return { code: 'agent_not_found', detail: 'it is gone' };
      const next = Math.max(1_795_000_000, Number(query.since));
      return { body: { node_id: agentExample.node_id, samples: [{ ...sampleExample, collected_at: next }] } };
    };
    const ran = await muster('metrics', 'follow', 'web-1', '--json');
    const times = ran.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).collected_at as number);
    expect(times).toEqual([times[0], times[0]! + 1, times[0]! + 2]);
    expect(ran).toMatchObject({ exit: 1, stderr: expect.stringContaining('it is gone') });
  });
});

describe('the audit log', () => {
  test('lists audit events with every filter, and with times or ages', async () => {
    const ran = await muster(
      ...['audit', 'list', '--agent', 'web-1', '--operator', 'ada', '--type', 'agent.approved', '--category', 'agent'],
      ...['--since', '2h', '--until', '2026-11-20T08:00:00Z', '--limit', '7'],
    );
    expect(ran.stdout).toMatch(/agent\.approved +Agent web-1 approved +ada/);
    const { query } = sent('listAudit') as Seen;
    expect(query).toMatchObject({
      agent: agentExample.node_id,
      operator: 'ada',
      event_type: 'agent.approved',
      category: 'agent',
      before: '2026-11-20T08:00:00.000Z',
      limit: '7',
    });
    expect(Math.abs(Date.parse(query.after ?? '') - (Date.now() - 7_200_000))).toBeLessThan(60_000);
    expect((await muster('audit', 'list', '--since', 'yesterday')).exit).toBe(2);
  });

  test('reads the audit log page by page, up to the limit', async () => {
    const { place: _, hash: __, ...event } = chainedExample;
    answers.listAudit = ({ query }) => ({
      body: {
        events: Array.from({ length: Number(query.limit) }, () => event),
        has_more: true,
        next_cursor: `after-${query.cursor ?? 'none'}`,
      },
    });
    const page = await json('audit', 'list', '--limit', '700');
    expect(page.events).toHaveLength(700);
    expect(page).toMatchObject({ has_more: true, next_cursor: 'after-after-none' });
    expect(all('listAudit').map(({ query }) => query.limit)).toEqual(['500', '200']);
  });

  test('verifies the chain, and exits with 1 if it finds an error', async () => {
    expect(await muster('audit', 'verify')).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('The chain is intact: 1207 events verified.'),
    });
    answers.verifyAudit = ({ route }) => ({
      body: {
        ...(route.example.answer as object),
        ok: false,
        verified: 41,
        fault: { place: 42, event_id: '01KAGZ7R3E5F6G7H8J9K0M1N2P', message: 'the event is missing' },
      },
    });
    const broken = await muster('audit', 'verify');
    expect(broken).toMatchObject({
      exit: 1,
      stdout: expect.stringMatching(/broken at position 42: the event is missing\nevent +01KAGZ7R3E5F6G7H8J9K0M1N2P\n/),
    });
    expect((await muster('audit', 'verify', '--json')).exit).toBe(1);
  });

  test('prunes only after it has shown the number of events and the operator has confirmed', async () => {
    expect((await muster('audit', 'prune', '--before', '365d')).exit).toBe(2);
    expect(sent('pruneAudit')).toBeUndefined();
    const no = person(80, false);
    expect((await no.types('audit', 'prune', '--before', '365d')).exit).toBe(1);
    expect(no.questions).toEqual([expect.stringMatching(/^Remove 4711 events before 20..-..-..T\S+Z permanently\?$/)]);
    expect(all('pruneAudit').map(({ query }) => query.dry_run)).toEqual(['true']);
    server.seen.length = 0;
    expect(await json('audit', 'prune', '--before', '2026-01-01T00:00:00Z', '--yes')).toMatchObject({ deleted: 4711 });
    expect(all('pruneAudit').map(({ query }) => query)).toEqual([{ before: '2026-01-01T00:00:00.000Z' }]);
    expect(await json('audit', 'prune', '--before', '1d', '--dry-run')).toMatchObject({ would_delete: 4711 });
  });

  test('exports to a file completely or not at all', async () => {
    const file = join(home.path, 'audit.jsonl');
    answers.exportAudit = () => ({ text: `${JSON.stringify(chainedExample)}\n`.repeat(3) });
    expect(await json('audit', 'export', '-o', file, '--since', '30d')).toMatchObject({ file, events: 3 });
    expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(4);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    answers.exportAudit = () => ({ cut: '{"half": ' });
    const cut = await muster('audit', 'export', '-o', file);
    expect(cut.exit).not.toBe(0);
    expect(await readFile(file, 'utf8')).toContain('approved');
    expect((await readdir(home.path)).filter((name) => name.includes('part'))).toEqual([]);
  });

  test('changes the retention only after confirmation', async () => {
    expect((await muster('audit', 'retention', 'set', '30')).exit).toBe(2);
    expect((await muster('audit', 'retention', 'set', 'x', '--yes')).exit).toBe(2);
    expect(sent('setAuditRetention')).toBeUndefined();
    expect((await muster('audit', 'retention', 'set', '365', '--yes')).stdout).toBe('Events are kept for 365 days.\n');
    expect(sent('setAuditRetention')?.body).toEqual({ retention_days: 365 });
    answers.setAuditRetention = ({ body }) => ({ body: body as object });
    expect((await muster('audit', 'retention', 'off')).stdout).toBe('All events are kept.\n');
    expect(all('setAuditRetention').at(-1)?.body).toEqual({ retention_days: 1_000_000 });
    answers.setAuditRetention = () => ({ body: { retention_days: null } });
    expect(await json('audit', 'retention', 'clear', '--yes')).toEqual({ retention_days: null });
  });
});

test('prints the actor of an event only once', () => {
  const line = (summary: string) => eventLine({ ...chainedExample, summary }, style({}));
  expect(line('ada signed in')).toMatch(/ ada signed in$/);
  expect(line('agent web-1 approved')).toMatch(/ Agent web-1 approved by ada$/);
});

test('prints audit events and other live events, one per line', async () => {
  const agentFrame = `event: agents\ndata: {"agents":[{"node_id":"${'ab'.repeat(16)}","change":"disconnected"}]}\n\n`;
  const frames = `event: operation\ndata: {"operation_id":"o","status":"succeeded"}\n\nid: 1207\ndata: ${JSON.stringify(chainedExample)}\n\nevent: run\ndata: {"run_id":"x"}\n\n${agentFrame}`;
  let requests = 0;
  answers.followEvents = () => (requests++ === 0 ? { text: frames } : { code: 'forbidden', detail: 'no more' });
  const ran = await muster('events', '--category', 'agent,run', '--json');
  expect(
    ran.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { event: 'operation', data: { operation_id: 'o', status: 'succeeded' } },
    { event: 'audit', data: chainedExample },
    { event: 'run', data: { run_id: 'x' } },
    { event: 'agents', data: { agents: [{ node_id: 'ab'.repeat(16), change: 'disconnected' }] } },
  ]);
  expect(all('followEvents').map(({ query }) => query)).toEqual([
    { category: 'agent,run' },
    { category: 'agent,run', last_event_id: '1207' },
  ]);
  requests = 0;
  // Text output shows only audit events, which already describe the operation and the run.
  expect((await muster('events')).stdout).toMatch(
    /^\d\d:00:00 agent\.approved +Agent web-1 approved by ada\n\d\d:\d\d:\d\d agent +abababababab disconnected\n$/,
  );
  requests = 0;
  // Events without a position are not in the audit log.
  expect((await muster('audit', 'follow')).stdout.trim().split('\n')).toHaveLength(1);
  expect((await muster('events', '--after', 'x')).exit).toBe(2);
});

describe('operators', () => {
  const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea grace@laptop';
  const hex = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

  test('adds an operator by a public key in hexadecimal or in OpenSSH form', async () => {
    const file = join(home.path, 'id_ed25519.pub');
    await writeFile(file, `# keys\nssh-rsa AAAAB3NzaC1yc2E= old\n${line}\n`);
    for (const key of [[hex.toUpperCase()], ['--from-ssh', file], ['--from-ssh', line]])
      expect((await muster('operator', 'add', 'grace', ...key, '--role', 'admin')).exit).toBe(0);
    expect((await run(['operator', 'add', 'grace', '--from-ssh', '-', '--role', 'admin'], env, line)).exit).toBe(0);
    expect(all('addOperator').map(({ body }) => body)).toEqual(
      Array(4).fill({ public_key: hex, username: 'grace', role: 'admin' }),
    );
  });

  test('refuses an invalid public key before sending a request', async () => {
    const file = join(home.path, 'id_rsa');
    await writeFile(file, '-----BEGIN OPENSSH PRIVATE KEY-----\n');
    const wrongs = [
      [],
      ['abc'],
      [line],
      [hex, '--from-ssh', line],
      ['--from-ssh', file],
      ['--from-ssh', 'ssh-rsa AAAA x'],
    ];
    for (const wrong of wrongs) expect((await muster('operator', 'add', 'grace', ...wrong)).exit).toBe(2);
    expect((await muster('operator', 'add', 'grace', '--from-ssh', file)).stderr).toContain('private key');
    expect(sent('addOperator')).toBeUndefined();
  });

  test('removes operators by name after a confirmation, and none if a name is wrong', async () => {
    const [ada] = operatorSchema.array().parse(routeExample('listOperators'));
    answers.listOperators = () => ({
      body: [ada, { ...ada, operator_id: 'ab'.repeat(16), username: 'grace' }],
    });
    expect((await muster('operator', 'remove', 'grace')).exit).toBe(2);
    const wrong = await muster('operator', 'remove', 'grace', 'graze', '--yes');
    expect(wrong).toMatchObject({ exit: 1, stderr: expect.stringContaining('Did you mean grace?') });
    expect(sent('removeOperatorReporting')).toBeUndefined();
    expect(await json('operator', 'remove', 'grace', '--yes')).toEqual({
      removed: ['ab'.repeat(16)],
      ended: [routeExample('removeOperatorReporting')],
    });
    const removal = await muster('operator', 'remove', 'grace', '--yes');
    expect(removal.stdout).toContain(
      'Removed grace. This also ended 1 sign-in session, 1 enrollment token (01JD1XM3Z3T8Y4E2W6R5Q7P9AB).',
    );
    expect(await json('operator', 'show', 'ada')).toMatchObject({ username: 'ada' });
    expect((await muster('operator', 'show', 'ada', 'nobody')).exit).toBe(6);
  });
});

const routeExample = (id: string) => {
  const route = routes.find((each) => each.id === id);
  return route?.example.answer;
};

test('lists settings with their sources: all, those with a prefix, or only changed ones', async () => {
  expect((await muster('settings', 'show')).stdout).toMatch(
    /^KEY +VALUE +FROM\napi_port +4748 +default\ndrift\.enabled/,
  );
  expect((await muster('settings', 'show', '--changed')).stdout).toMatch(/^KEY.*\ndrift\.interval +600 +file\n$/);
  expect(await json('settings', 'show', 'drift')).toEqual({
    settings: { 'drift.enabled': true, 'drift.interval': 600 },
    sources: { 'drift.enabled': 'default', 'drift.interval': 'file' },
  });
  expect((await muster('settings', 'show', 'api_prt')).stderr).toContain('Did you mean api_port?');
});

test('tests a selector, and shows the position of its error', async () => {
  expect((await muster('selectors', 'match', 'role=web')).stdout).toMatch(
    /web-1 +connected +role=web +3f8c2b0a9d7e\S+/,
  );
  answers.matchSelector = () => ({ body: { matches: [] } });
  expect((await muster('selectors', 'match', 'a=b')).exit).toBe(0);
  expect((await muster('selectors', 'match', 'a=b', '--exit-code')).exit).toBe(1);
  answers.matchSelector = () => ({
    code: 'selector_invalid',
    detail: 'a value is missing',
    errors: [{ path: '/selector', message: 'a value is missing', line: 1, column: 6 }],
  });
  expect((await muster('selectors', 'match', 'role=')).stderr).toContain('role=\n  ');
});

describe('modules', () => {
  const revisions: Record<string, string> = { 1: 'name: motd\na: 1\n', 2: 'name: motd\na: 2\n' };
  beforeEach(() => {
    answers.getModule = ({ query, route }) => ({
      body: {
        ...(route.example.answer as object),
        revision: Number(query.revision ?? 2),
        content: revisions[query.revision ?? '2'],
      },
    });
  });

  test('compares two revisions, or a file with the stored module', async () => {
    expect((await muster('modules', 'diff', 'motd')).stdout).toBe(
      '--- motd, revision 1\n+++ motd, revision 2\n@@ -1,2 +1,2 @@\n name: motd\n-a: 1\n+a: 2\n',
    );
    expect((await muster('modules', 'diff', 'motd', '2', '1', '--exit-code')).exit).toBe(3);
    expect(await json('modules', 'diff', 'motd', '2', '2')).toMatchObject({ equal: true, diff: '' });
    const file = join(home.path, 'mine.yml');
    await writeFile(file, 'name: motd\na: 3\n');
    const mine = await muster('modules', 'diff', 'motd', '--file', file);
    expect(mine.stdout).toContain(`--- motd, revision 2\n+++ ${file}\n`);
    expect(mine.stdout).toContain('-a: 2\n+a: 3\n');
    await writeFile(file, 'name: other\nsupports: [{ platform: linux }]\nresources: []\n');
    expect((await muster('modules', 'diff', 'motd', '--file', file)).exit).toBe(2);
    expect((await muster('modules', 'diff', 'motd', '1', '2', '--file', file)).exit).toBe(2);
  });

  test('shows errors from the orchestrator at their positions in the file', async () => {
    const file = join(home.path, 'bad.yml');
    await writeFile(file, 'name: bad\nresources: 7\n');
    answers.validateModule = () => ({
      body: {
        valid: false,
        faults: [{ path: '/resources', message: 'must be a list', line: 2, column: 12 }],
        warnings: [],
      },
    });
    const ran = await muster('modules', 'check', '--orchestrator', file);
    expect(ran).toMatchObject({ exit: 1, stderr: '1 of 1 module with errors\n' });
    expect(ran.stdout).toBe(`${file}:2:12 must be a list\n  1 | name: bad\n> 2 | resources: 7\n    |            ^\n`);
    const checked = await json('modules', 'check', '--orchestrator', file);
    expect(checked).toMatchObject({ valid: false, files: [{ file, valid: false }] });
    expect((await muster('modules', 'check', file, join(home.path, 'absent.yml'))).exit).toBe(6);
  });
});

test('asks before removing anything, and requires --yes if there is no terminal', async () => {
  for (const noun of ['modules', 'assignments', 'secrets', 'channels', 'windows'])
    expect((await muster(noun, 'remove', 'x')).stderr).toContain('--yes');
  const no = person(80, false);
  expect((await no.types('modules', 'remove', 'motd', 'base')).exit).toBe(1);
  expect(no.questions).toEqual(['Remove 2 modules: motd, base?']);
  expect(sent('removeModule')).toBeUndefined();
});

test('updates the end of a window relative to its start', async () => {
  const id = '01KAGZ8S4F6G7H8J9K0M1N2P3Q';
  expect((await muster('windows', 'update', id, '--for', '4h', '--reason', 'more')).exit).toBe(0);
  expect(sent('updateWindow')?.body).toEqual({ ends_at: 1_795_000_000 + 14_400, reason: 'more' });
  for (const wrong of [[], ['--for', '1h', '--until', '2026-12-01T22:00:00Z']])
    expect((await muster('windows', 'update', id, ...wrong)).exit).toBe(2);
});

test('updates only the specified fields of a profile', async () => {
  const own = { ...env, XDG_CONFIG_HOME: join(home.path, 'profiles') };
  const type = (...args: string[]) => run(['profile', ...args], own);
  await type('create', 'prod', '--url', 'https://a.example', '--key-file', '/k', '--fingerprint', 'ab'.repeat(32));
  expect((await type('update', 'prod')).exit).toBe(2);
  expect((await type('update', 'prd', '--url', 'https://b.example')).exit).toBe(2);
  expect((await type('update', 'prod', '--url', 'https://b.example', '--rename', 'live')).exit).toBe(0);
  expect(JSON.parse((await type('list', '--json')).stdout)).toEqual([
    { name: 'live', url: 'https://b.example', key_file: '/k', current: true, fingerprint: null },
  ]);
  // The certificate is removed, because no profile uses the address anymore.
  expect(await readFile(join(home.path, 'profiles', 'muster', 'profiles.json'), 'utf8')).not.toContain('abab');
  expect((await type('update', 'live', '--usual-key')).exit).toBe(0);
  expect(JSON.parse((await type('list', '--json')).stdout)).toMatchObject([{ key_file: null, current: true }]);
});

describe('the fleet', () => {
  test('reports on stderr that a limited list of agents is not complete', async () => {
    answers.listAgents = () => ({ body: ['web-1', 'web-2', 'web-3'].map((name) => agent({ name })) });
    const { stdout, stderr } = await muster('agents', 'list', '--limit', '2');
    expect(stdout).not.toContain('web-3');
    expect(stderr).toContain('There are more agents: raise --limit, or omit it to list all');
    expect((await muster('agents', 'list', '--limit', '3')).stderr).not.toContain('more agents');
    const asJson = await muster('agents', 'list', '--limit', '2', '--json');
    expect([JSON.parse(asJson.stdout).length, asJson.stderr]).toEqual([2, '']);
  });

  test('lists agents in natural order, agents without a name last, and for how long they have been offline', async () => {
    const listed = (name: string | null) => agent({ name, node_id: `0${name}`.padEnd(32, '0') });
    const offline = { connected: false, last_seen_at: Math.floor(Date.now() / 1000) - 301 };
    answers.listAgents = () => ({ body: [{ ...listed('web-10'), ...offline }, listed('web-2'), listed(null)] });
    const { stdout } = await person(120, true).types('agents', 'list');
    const rows = stdout.trim().split('\n').slice(1, 4);
    expect(rows.map((row) => row.split(' ')[0])).toEqual(['web-2', 'web-10', '0null0000000']);
    expect(rows[1]).toContain('offline for 5m');
    expect(rows[0]).toContain('connected');
  });

  test('shows which agents are out of sync or outdated, if there are any and the orchestrator reports them', async () => {
    const [off] = listReconcile.example.answer;
    const listed = (name: string) => agent({ name, node_id: name.padEnd(32, '0') });
    const entry = (name: string, reasons: string[]) => ({ ...off, name, node_id: name.padEnd(32, '0'), reasons });
    const { outdated: _, ...accepted } = entry('web-5', []);
    answers.listAgents = () => ({ body: ['web-1', 'web-2', 'web-3', 'web-4', 'web-5'].map(listed) });
    answers.listReconcile = () => ({ body: [entry('web-1', ['drifted']), entry('web-2', []), accepted] });
    answers.matchSelector = () => ({ body: { matches: ['web-4'.padEnd(32, '0')] } });
    const rows = (await person(120, true).types('agents', 'list')).stdout.trim().split('\n');
    expect(rows[0]).toMatch(/NAME +CONNECTION +SYNC/);
    expect(
      rows.slice(1, 6).map((row) => row.match(/connected +(in sync|out of sync|outdated|accepted|never applied)/)?.[1]),
    ).toEqual([...['out of sync', 'outdated', 'in sync', 'never applied', 'accepted']]);
    expect(sent('matchSelector')?.body).toEqual({ selector: '', never_applied: true });
    expect(sent('listReconcile')?.query).toEqual({
      include_accepted: 'true',
      include_outdated: 'true',
      limit: '500',
    });
    for (const [word, name] of [
      ['in-sync', 'web-3'],
      ['accepted', 'web-5'],
    ] as const)
      expect((await json('agents', 'list', '--sync', word)).map((each: { name: string }) => each.name)).toEqual([name]);
    const ofEarlierRelease = { code: 'invalid_input', detail: 'include_outdated is unknown' } as const;
    for (const answer of [{ body: [] }, ofEarlierRelease]) {
      answers.listReconcile = () => answer;
      const { stdout } = await person(120, true).types('agents', 'list');
      expect(stdout).toContain('web-1');
      expect(stdout).not.toContain('SYNC');
    }
  });

  test('omits redundant columns, so that tags are not truncated on a terminal with 100 columns', async () => {
    const tags = { env: 'production', role: 'web', site: 'paris' };
    const listed = (name: string, attributes = {}) =>
      agent({ name, tags, attributes: { hostname: `${name}.example`, ...attributes } });
    answers.listAgents = () => ({ body: [listed('web-paris-1'), listed('web-paris-2')] });
    const { stdout } = await person(100, true).types('agents', 'list');
    expect(stdout).not.toMatch(/STATUS|HOSTNAME/);
    expect(stdout).toContain('env=production role=web site=paris');
    answers.listAgents = () => ({
      body: [listed('web-paris-1'), { ...listed('db', { hostname: 'other' }), status: 'pending' }],
    });
    expect((await person(120, true).types('agents', 'list')).stdout).toMatch(/STATUS.*HOSTNAME/);
  });

  test('shows the module revisions of an outdated agent', async () => {
    const [off] = listReconcile.example.answer;
    answers.listReconcile = () => ({ body: [{ ...off, reasons: [], drift: [] }] });
    const { stdout } = await muster('agents', 'show', 'web-1');
    expect(stdout).toContain('sync        outdated: 1 module has a newer revision');
    expect(stdout).toContain('motd: revision 3 applied, newest 4');
  });

  test('shows counts in the overview, and omits zeros', async () => {
    const { stdout, stderr, exit } = await muster('overview');
    expect(exit).toBe(0);
    expect(stdout).toContain('412 approved, 409 connected, 3 offline, 2 pending, 1 rejected');
    expect(stdout).toContain('398 in sync, 3 outdated, 2 with accepted drift, 7 out of sync, 2 never applied');
    expect(stdout).toContain('7 agents: 2 apply failed, 5 drifted, 1 check failed');
    expect(stderr).toContain('To see the issues: muster out-of-sync --outdated');
    expect(stdout).not.toContain('to remove');
    expect(await json('overview')).toMatchObject({ off: { agents: 7 } });
  });

  test('filters agents that are not in their desired state', async () => {
    const { stdout } = await muster('reconcile', '-l', 'role=web', '--reason', 'drifted', '--accepted', '--outdated');
    expect(sent('listReconcile')?.query).toEqual({
      limit: '50',
      filter: 'role=web',
      reason: 'drifted',
      include_accepted: 'true',
      include_outdated: 'true',
    });
    expect(stdout).toContain('web-1');
    expect((await muster('reconcile', '--exit-code')).exit).toBe(3);
    answers = { listReconcile: () => ({ body: [] }) };
    expect((await muster('reconcile', '--exit-code')).exit).toBe(0);
    expect((await muster('reconcile', '--reason', 'bad')).exit).toBe(2);
  });

  test('lists outdated agents only with --outdated, also under the former name', async () => {
    const queries = async (...words: string[]) => {
      server.seen.length = 0;
      await muster(...words);
      return sent('listReconcile')?.query;
    };
    for (const noun of ['out-of-sync', 'reconcile']) {
      expect(await queries(noun)).toEqual({ limit: '50' });
      expect(await queries(noun, '--outdated')).toEqual({ limit: '50', include_outdated: 'true' });
    }
    expect((await muster('reconcile', '--help')).stdout).toContain('Usage: muster out-of-sync [options]');
  });

  test('accepts drift and withdraws the acceptance, by agent or by record', async () => {
    const { stdout, stderr } = await muster('drift', 'web-1', '--accept', 'known');
    expect(sent('listDrift')?.query).toEqual({ status: 'drifted', limit: '1' });
    expect(sent('acceptDrift')?.body).toEqual({ reason: 'known' });
    expect(stdout).toContain('accepted: 1 resource');
    expect(stderr).toContain('An apply still repairs the drift');
    expect(await json('drift', 'web-1', '--unaccept')).toMatchObject({ accepted: null });
    for (const wrong of [
      ['--accept', 'x'],
      ['web-1', '--accept', 'x', '--unaccept'],
      ['web-1', '--accept', 'x', '--history'],
    ])
      expect((await muster('drift', ...wrong)).exit).toBe(2);
    answers = { listDrift: () => ({ body: [] }) };
    expect(await muster('drift', 'web-1', '--accept', 'x')).toMatchObject({ exit: 1 });
  });

  test('updates the precedence of an assignment', async () => {
    await muster('assignments', 'update', 'base', '--precedence', '-5');
    expect(sent('updateAssignment')?.body).toEqual({ precedence: -5 });
  });

  test('creates an assignment that only sets parameter values', async () => {
    const file = join(home.path, 'values.json');
    await writeFile(file, '{"motd": {"text": "hi"}}');
    await muster('assignments', 'create', 'paris', '--selector', 'site=paris', '--parameters', file);
    expect(sent('createAssignment')?.body).toEqual({
      ...{ name: 'paris', selector: 'site=paris', modules: [], parameters: { motd: { text: 'hi' } } },
    });
    const { exit, stderr } = await muster('assignments', 'create', 'paris', '--selector', 'site=paris');
    expect(exit).toBe(2);
    expect(stderr).toContain('To only give values: --parameters FILE');
    await muster('assignments', 'update', 'base', '--values-only');
    expect(sent('updateAssignment')?.body).toEqual({ modules: [] });
    expect((await muster('assignments', 'update', 'base', '--values-only', '-m', 'a')).exit).toBe(2);
  });

  test('updates only the specified fields of an assignment', async () => {
    await muster('assignments', 'update', 'base', '--enforce', '--any-time', '-m', 'a', '-m', 'b', '--description', '');
    expect(sent('updateAssignment')?.body).toEqual({
      modules: ['a', 'b'],
      mode: 'enforce',
      window_only: false,
      description: '',
    });
    for (const wrong of [[], ['--audit', '--enforce'], ['--window-only', '--any-time'], ['--precedence', '1.5']])
      expect((await muster('assignments', 'update', 'base', ...wrong)).exit).toBe(2);
  });
});
