import { maskedSecret } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../../test/domain.ts';
import { SecretKeys } from '../../identity/secret-keys.ts';
import { channels } from '../../store/queries/channels.ts';
import { setChannelHealth } from '../../store/queries/deliveries.ts';
import { statement } from '../../store/transaction.ts';
import { listAudit } from '../audit/audit.ts';
import { missingKey, rotateSecretsKey } from '../secrets/secret-rotation.ts';
import {
  createChannel,
  findRow,
  getChannel,
  listChannels,
  removeChannel,
  targetOf,
  updateChannel,
} from './channels.ts';
import type { Attempt, Deliver, Message } from './delivery.ts';
import { recordRecovered } from './outbox.ts';
import { testChannel } from './test-channel.ts';

const rule = { denyPrivate: false };
const secret = 'canary-5f2c';
const webhook = {
  name: 'on-call',
  channel_type: 'webhook' as const,
  config: { url: `https://u:${secret}@hooks.example/x?k=${secret}`, secret },
};

describeAnyDatabase('channels', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    return { ...domain, actor };
  };

  test('creates, changes, and removes channels, with one event each and without returning a secret', async () => {
    const { context, actor, now } = await open();
    const made = await createChannel(context, actor, rule, webhook);
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      name: 'on-call',
      channel_type: 'webhook',
      config: { url: `https://${maskedSecret}@hooks.example/x?${maskedSecret}`, secret: maskedSecret },
      created_at: now(),
      created_by: actor.id,
      delivery: {
        ...{ last_delivered_at: null, last_error: null, failures: 0, failing_since: null, next_attempt_at: null },
      },
    });
    expect(await listChannels(context)).toEqual([made]);
    expect(await updateChannel(context, actor, rule, made.id, { name: 'night', config: made.config })).toEqual({
      ...made,
      name: 'night',
    });
    expect(await updateChannel(context, actor, rule, made.id, {})).toMatchObject({ name: 'night' });
    await removeChannel(context, actor, made.id);
    expect(await listChannels(context)).toEqual([]);
    const { events } = await listAudit(context, { category: 'channel' });
    expect(events.map(({ event_type }) => event_type)).toEqual([
      'channel.removed',
      'channel.updated',
      'channel.created',
    ]);
    expect(JSON.stringify([events, made])).not.toContain(secret);
  });

  test('keeps the values of masked fields, and uses them for messages', async () => {
    const { context, actor } = await open();
    const { id, config } = await createChannel(context, actor, rule, webhook);
    const targets: unknown[] = [];
    const deliver: Deliver = async (target) => {
      targets.push(target.config);
      return { status: 204, retryAfterMs: null };
    };
    await updateChannel(context, actor, rule, id, { config });
    await testChannel(context, actor, deliver, id);
    await updateChannel(context, actor, rule, id, { config: { url: 'https://hooks.example/y' } });
    await testChannel(context, actor, deliver, id);
    expect(targets).toEqual([webhook.config, { url: 'https://hooks.example/y' }]);
    await expect(updateChannel(context, actor, rule, id, { config: { ...config } })).rejects.toMatchObject({
      code: 'invalid_input',
      errors: [{ path: '/config/url' }, { path: '/config/secret' }],
    });
  });

  test('encrypts each config separately, and encrypts it again when the key is rotated', async () => {
    const domain = await open();
    const { context, actor, db } = domain;
    let saved: Buffer[] = [];
    const secretKeys = new SecretKeys([Buffer.alloc(32, 1)], {
      write: async (keys) => {
        saved = [...keys];
      },
    });
    const keyed = { ...context, secretKeys };
    const { id } = await createChannel(keyed, actor, rule, webhook);
    const other = await createChannel(keyed, actor, rule, webhook);
    const rows = async () => db.all(channels, { limit: 10 });
    const [before, second] = await rows();
    expect(JSON.stringify([before, second])).not.toContain(secret);
    expect(before?.sealed).not.toBe(second?.sealed);
    expect(targetOf(keyed, before!)?.config).toEqual(webhook.config);
    // A config that was sealed for one channel cannot be decrypted for another channel.
    expect(targetOf(keyed, { ...second!, sealed: before!.sealed })).toBeNull();

    await rotateSecretsKey(keyed, actor);
    expect(saved).toHaveLength(1);
    const [after] = await rows();
    expect(after?.key_id).not.toBe(before?.key_id);
    expect(targetOf(keyed, after!)?.config).toEqual(webhook.config);
    expect(await missingKey(keyed)).toBeNull();

    const without = { ...context, secretKeys: new SecretKeys([]) };
    expect(await missingKey(without)).toBe(after?.key_id);
    expect(await getChannel(without, id)).toMatchObject({ name: 'on-call', config: {} });
    const deliver: Deliver = () => Promise.reject(new Error('there is nowhere to send to'));
    await expect(testChannel(without, actor, deliver, id)).rejects.toMatchObject({ code: 'channel_failed' });
    await expect(createChannel(without, actor, rule, webhook)).rejects.toMatchObject({ code: 'secrets_locked' });
    await removeChannel(without, actor, other.id);
  });

  test('sends a single test message, and returns and records the result', async () => {
    const { context, actor } = await open();
    const { id } = await createChannel(context, actor, rule, webhook);
    const seen: Message[] = [];
    let attempt: Attempt = { status: 200, retryAfterMs: null };
    const deliver: Deliver = async (_, message, { timeoutMs }) => {
      expect(timeoutMs).toBe(10_000);
      seen.push(message);
      return attempt;
    };
    expect(await testChannel(context, actor, deliver, id)).toEqual({ delivered: true, status: 200 });
    const at = Math.floor(context.now() / 1000);
    expect((await getChannel(context, id)).delivery).toMatchObject({ last_delivered_at: at, last_error: null });
    attempt = { status: 503, retryAfterMs: null };
    await expect(testChannel(context, actor, deliver, id)).rejects.toMatchObject({
      code: 'channel_failed',
      message: 'the receiver answered 503',
    });
    attempt = { status: null, reason: 'the connection was refused' };
    await expect(testChannel(context, actor, deliver, id)).rejects.toMatchObject({
      code: 'channel_failed',
      message: 'the connection was refused',
    });
    expect((await getChannel(context, id)).delivery).toMatchObject({
      last_delivered_at: at,
      last_error: 'the connection was refused',
    });
    expect(seen.map(({ event }) => event.event_type)).toEqual(['channel.test', 'channel.test', 'channel.test']);
    const { events } = await listAudit(context, { event_type: 'channel.tested' });
    expect(events.map(({ severity, metadata }) => [severity, metadata.status])).toEqual([
      ['warning', null],
      ['warning', 503],
      ['info', 200],
    ]);
  });

  test('does not record the result of a test during which the config changed', async () => {
    const { context, actor } = await open();
    const { id } = await createChannel(context, actor, rule, webhook);
    const answers = (status: number, meanwhile: () => Promise<unknown>): Deliver => {
      return async () => {
        await meanwhile();
        return { status, retryAfterMs: null };
      };
    };
    const change = () => updateChannel(context, actor, rule, id, { config: webhook.config });
    const health = async () => (await getChannel(context, id)).delivery;
    await testChannel(context, actor, answers(200, change), id);
    expect(await health()).toMatchObject({ last_delivered_at: null, last_error: null });
    await expect(testChannel(context, actor, answers(503, change), id)).rejects.toThrow('503');
    expect(await health()).toMatchObject({ last_delivered_at: null, last_error: null });
  });

  test('records a recovery once if the outbox records it during a test', async () => {
    const { context, actor } = await open();
    const { id } = await createChannel(context, actor, rule, webhook);
    const { name, sealed } = (await findRow(context, id))!;
    await context.db.write({
      name: 'test/failing',
      statements: [
        statement(setChannelHealth, {
          ...{ channel_id: id, sealed, failures: 3, retry_at_ms: 0, failing_since: 1, last_error: 'x' },
        }),
      ],
    });
    const failing = { channelId: id, name, sealed, failures: 3, failing_since: 1 };
    const deliver: Deliver = async () => {
      await recordRecovered(context, [], failing);
      return { status: 200, retryAfterMs: null };
    };
    await testChannel(context, actor, deliver, id);
    expect((await listAudit(context, { event_type: 'channel.recovered' })).events).toHaveLength(1);
  });

  test('refuses unknown channels, and limits the number of channels', async () => {
    const { context, actor } = await open();
    const missing = { code: 'channel_not_found' };
    await expect(getChannel(context, 'x')).rejects.toMatchObject(missing);
    await expect(updateChannel(context, actor, rule, 'x', { name: 'y' })).rejects.toMatchObject(missing);
    await expect(removeChannel(context, actor, 'x')).rejects.toMatchObject(missing);
    await expect(
      testChannel(context, actor, async () => ({ status: 200, retryAfterMs: null }), 'x'),
    ).rejects.toMatchObject(missing);
    for (let count = 0; count < 100; count++) await createChannel(context, actor, rule, webhook);
    await expect(createChannel(context, actor, rule, webhook)).rejects.toMatchObject({ code: 'too_many_channels' });
  });
});
