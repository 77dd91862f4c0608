import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Channel, maskedSecret, type Notification } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere } from '../../../test/process.ts';

// Tests the commands for channels, notifications, and windows. The server validates every request with the route table.

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let answers: Record<string, (seen: Seen) => Answer | undefined> = {};
let env: Record<string, string>;

beforeAll(async () => {
  server = await standIn({ answers: new Proxy({}, { get: (_, id: string) => answers[id] }) });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url };
  expect((await musterHere(['operator', 'init'], env)).exit).toBe(0);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  answers = { listChannels: () => ({ body: [hook, chat] }) };
  server.seen.length = 0;
});

const muster = (...args: string[]) => musterHere(args, env);
const sent = (id: string) => server.seen.filter(({ route }) => route.id === id);

const delivery = {
  ...{ last_delivered_at: 1_795_000_100, last_error: null, failures: 0, failing_since: null, next_attempt_at: null },
};
const hook: Channel = {
  id: '01KAGZ8R3E5F6G7H8J9K0M1N2P',
  name: 'on-call',
  channel_type: 'webhook',
  config: { url: 'https://hooks.example/muster', secret: maskedSecret },
  created_at: 1795000000,
  created_by: '21fe31dfa154a261626bf854046fd227',
  delivery,
};
const chat: Channel = {
  ...hook,
  id: '01KAGZ8R3E5F6G7H8J9K0M1N3Q',
  name: 'chat',
  channel_type: 'discord',
  config: { webhook_url: `https://discord.com/${maskedSecret}` },
  delivery: { ...delivery, last_delivered_at: null, last_error: 'the receiver answered 404', failures: 7 },
};

describe('channels', () => {
  test('lists channels with their destinations and the health of their deliveries', async () => {
    const { stdout } = await muster('channels', 'list');
    expect(stdout).toMatch(/on-call +webhook +https:\/\/hooks\.example\/muster/);
    expect(stdout).toContain(`https://discord.com/${maskedSecret}`);
    expect(stdout).toMatch(/on-call .* delivered /);
    expect(stdout).toContain('failing: the receiver answered 404; nothing delivered yet');
    expect(JSON.parse((await muster('channels', 'list', '--json')).stdout)).toEqual([hook, chat]);
  });

  test('adds channels with secrets from files or standard input', async () => {
    const key = join(home.path, 'hook.key');
    await writeFile(key, 'correct horse\n');
    answers.createChannel = () => ({ status: 201, body: hook });
    expect(
      await muster('channels', 'add', 'on-call', 'webhook', '--to', 'https://h.example/x', '--secret-file', key),
    ).toMatchObject({ exit: 0 });
    const add = ['channels', 'add', 'chat', 'discord', '--to-file', '-'];
    expect((await musterHere(add, env, 'https://discord.com/api/webhooks/1/x\n')).exit).toBe(0);
    expect((await muster('channels', 'add', 'phone', 'ntfy', '--topic', 'fleet')).exit).toBe(0);
    expect(sent('createChannel').map(({ body }) => body)).toEqual([
      { name: 'on-call', channel_type: 'webhook', config: { url: 'https://h.example/x', secret: 'correct horse' } },
      { name: 'chat', channel_type: 'discord', config: { webhook_url: 'https://discord.com/api/webhooks/1/x' } },
      { name: 'phone', channel_type: 'ntfy', config: { topic: 'fleet' } },
    ]);
  });

  test.each([
    [['add', 'x', 'pager', '--to', 'https://h.example'], 'one of webhook, discord, slack, ntfy'],
    [['add', 'x', 'webhook'], '--to'],
    [['add', 'x', 'ntfy'], '--topic'],
    [['add', 'x', 'slack', '--to', 'https://h.example', '--token-file', 'x'], '--token-file does not apply to slack'],
    [['add', 'x', 'webhook', '--to', 'https://h.example', '--to-file', 'x'], '--to cannot be combined with --to-file'],
    [['add', 'x', 'webhook', '--to', 'https://h.example', '--secret-file', '/no/such/file'], 'cannot read'],
    [['update', 'on-call'], 'no change was specified'],
  ])('refuses %s before sending a request', async (args, message) => {
    const ran = await muster('channels', ...args);
    expect(ran.exit).toBe(2);
    expect(ran.stderr).toContain(message);
    expect([...sent('createChannel'), ...sent('updateChannel')]).toEqual([]);
  });

  test('updates only the specified fields of a channel', async () => {
    answers.updateChannel = () => ({ body: hook });
    await muster('channels', 'update', 'on-call', '--to', 'https://hooks.example/v2');
    await muster('channels', 'update', 'on-call', '--no-secret');
    await muster('channels', 'update', hook.id.slice(-5), '--name', 'night');
    expect(sent('updateChannel').map(({ params, body }) => [params.id, body])).toEqual([
      [hook.id, { config: { url: 'https://hooks.example/v2', secret: maskedSecret } }],
      [hook.id, { config: { url: 'https://hooks.example/muster', secret: null } }],
      [hook.id, { name: 'night' }],
    ]);
  });

  test('tests and removes several channels, and reports a failure', async () => {
    answers.testChannel = ({ params }) =>
      params.id === chat.id ? { code: 'channel_failed', detail: 'the receiver answered 404' } : undefined;
    const tested = await muster('channels', 'test', 'on-call', 'chat');
    expect(tested.exit).toBe(6);
    expect(tested.stdout).toContain('on-call accepted the test with status 200.');
    expect(tested.stderr).toContain('the receiver answered 404');
    expect(JSON.parse((await muster('channels', 'remove', 'on-call', 'chat', '--yes', '--json')).stdout)).toEqual({
      removed: [hook.id, chat.id],
    });
  });

  test('suggests a name for an unknown channel, and refuses an ambiguous name', async () => {
    expect((await muster('channels', 'remove', 'on-cal', '--yes')).stderr).toContain('Did you mean on-call?');
    answers.listChannels = () => ({ body: [hook, { ...chat, name: 'on-call' }] });
    const ran = await muster('channels', 'remove', 'on-call', '--yes');
    expect(ran.exit).toBe(1);
    expect(ran.stderr).toContain(chat.id);
    expect(sent('removeChannel')).toEqual([]);
  });
});

describe('notifications', () => {
  const one: Notification = {
    id: '01KAGZ9R3E5F6G7H8J9K0M1N2P',
    event_id: '01KAGZ9Q3E5F6G7H8J9K0M1N2P',
    event_type: 'agent.lost',
    severity: 'critical',
    summary: 'agent web-1\u001b[31m is lost',
    timestamp_ms: 1795000100000,
    read: false,
    suppressed: true,
  };

  test('lists notifications with escaped text', async () => {
    answers.listNotifications = () => ({ body: { notifications: [one], unread_count: 1 } });
    const ran = await muster('notifications', 'list', '--unread', '--limit', '5');
    expect(ran.stdout).toMatch(/• +critical .*Agent web-1.* is lost \(in a maintenance window\)/);
    expect(ran.stdout).not.toContain('\u001b');
    expect(ran.stderr).toContain('1 notification unread.');
    expect(sent('listNotifications')[0]?.query).toEqual({ unread: 'true', limit: '5' });
  });

  test('marks some or all notifications as read', async () => {
    answers.listNotifications = () => ({ body: { notifications: [one], unread_count: 1 } });
    expect((await muster('notifications', 'read', one.id.slice(-6))).exit).toBe(0);
    expect(sent('readNotification')[0]?.params).toEqual({ id: one.id });
    expect((await muster('notifications', 'read', '--all')).exit).toBe(0);
    expect(sent('readAllNotifications')).toHaveLength(1);
    expect((await muster('notifications', 'read')).exit).toBe(2);
    expect((await muster('notifications', 'read', '--all', 'x')).exit).toBe(2);
  });
});

describe('windows', () => {
  const now = () => Math.floor(Date.now() / 1000);

  test('adds maintenance windows that start now or at a given time', async () => {
    await muster('windows', 'add', 'updates', '--for', '2h', '--selector', 'site=paris');
    await muster('windows', 'add', 'x', '--from', '2026-12-01T22:00:00Z', '--until', '2026-12-01T23:30:00+01:00');
    await muster('windows', 'add', 'x', '--from', '2026-12-01 22:00Z', '--for', '30m');
    const [first, second, third] = sent('createWindow').map(
      ({ body }) => body as { starts_at: number; ends_at: number },
    );
    expect(first).toEqual({
      reason: 'updates',
      selector: 'site=paris',
      starts_at: expect.any(Number),
      ends_at: (first?.starts_at ?? 0) + 7200,
    });
    expect(Math.abs((first?.starts_at ?? 0) - now())).toBeLessThan(10);
    expect(second).toEqual({ reason: 'x', starts_at: 1796162400, ends_at: 1796164200 });
    expect(third).toEqual({ reason: 'x', starts_at: 1796162400, ends_at: 1796164200 });
  });

  test.each([
    [['x']],
    [['x', '--for', '1h', '--until', '2026-12-01T22:00Z']],
    [['x', '--from', 'tomorrow', '--for', '1h']],
  ])('refuses the command windows add %s', async (args) => {
    expect((await muster('windows', 'add', ...args)).exit).toBe(2);
    expect(sent('createWindow')).toEqual([]);
  });

  test('lists, ends, and removes windows', async () => {
    const planned = { id: '01KAGZ8S4F6G7H8J9K0M1N2P3Q', reason: 'updates', created_by: hook.created_by };
    const open = { ...planned, starts_at: now() - 60, ends_at: now() + 3900, selector: null };
    answers.listWindows = () => ({ body: [open] });
    answers.updateWindow = () => ({ body: open });
    expect((await muster('windows', 'list')).stdout).toMatch(/open, 1h \d+m left +all agents +updates/);
    expect((await muster('windows', 'end', 'N2P3Q')).stdout).toContain('Ended updates.');
    const [ended] = sent('updateWindow').map(({ body }) => body as { ends_at: number });
    expect(sent('updateWindow')[0]?.params).toEqual({ id: planned.id });
    expect(Math.abs((ended?.ends_at ?? 0) - now())).toBeLessThan(10);
    expect(JSON.parse((await muster('windows', 'remove', planned.id, '--yes', '--json')).stdout)).toEqual({
      removed: [planned.id],
    });
  });
});
