import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../test/domain.ts';
import { type Behaviour, type FarEnd, farEnd } from '../../test/far-end.ts';
import { consume, placedEvent } from '../../test/placed-events.ts';
import { joined } from '../../test/replicas.ts';
import { createDeliver } from '../deliver/deliver.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { createChannel, getChannel, removeChannel, updateChannel } from '../domain/notifications/channels.ts';
import type { Deliver } from '../domain/notifications/delivery.ts';
import { notificationsOf } from '../domain/notifications/notifications.ts';
import { nextToSend } from '../domain/notifications/outbox.ts';
import { testChannel } from '../domain/notifications/test-channel.ts';
import { createLease } from '../domain/shared/leases.ts';
import { type Outbox, type OutboxOptions, startOutbox } from './outbox.ts';

const ends: FarEnd[] = [];
const outboxes: Outbox[] = [];
afterEach(async () => {
  for (const outbox of outboxes.splice(0)) await outbox.stop();
  for (const end of ends.splice(0)) await end.close();
});
const rule = { denyPrivate: false };
const killed = fileURLToPath(new URL('../../test/deliver-until-killed.ts', import.meta.url));

describeDatabases('outbox', (fixture) => {
  const open = async (options: Partial<OutboxOptions> = {}) => {
    const at = await fixture.newAddress();
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { context, clock } = domain;
    const { actor } = await newAdmin(domain);
    let place = 0;
    const consumer = notificationsOf(context);
    const deliver: Deliver = createDeliver({ version: '0', now: () => clock.now(), denyPrivate: false });
    const start = (more: Partial<OutboxOptions> = {}) => {
      const outbox = startOutbox(context, clock, {
        deliver,
        random: () => 0,
        giveUpAfter: 86_400,
        retentionDays: 30,
        lease: createLease(context, 'outbox'),
        // Only unresponsive servers reach this timeout. All other servers respond immediately, even on a busy machine.
        timeoutMs: 120_000,
        ...options,
        ...more,
      });
      outboxes.push(outbox);
      return outbox;
    };
    return {
      ...domain,
      at,
      actor,
      start,
      outbox: start(),
      async channel(behaviour: Behaviour = 200) {
        const end = await farEnd(behaviour);
        ends.push(end);
        const input = { name: `c${ends.length}`, channel_type: 'webhook' as const, config: { url: end.url } };
        return { ...end, ...(await createChannel(context, actor, rule, input)), config: input.config };
      },
      happen: async (...summaries: string[]) =>
        consume(
          domain,
          consumer,
          summaries.map((summary) => placedEvent(domain, ++place, { summary })),
        ),
      left: async (id: string) => {
        clock.jump(3_600_000);
        const sending = await nextToSend(context, id, 1000);
        clock.jump(-3_600_000);
        return (sending?.messages ?? []).map(({ message }) => message.event.summary);
      },
      events: async () =>
        (await listAudit(context, { category: 'channel' })).events
          .map(({ event_type, target }) => `${event_type} ${target.name}`)
          .filter((text) => !text.startsWith('channel.created'))
          .reverse(),
    };
  };
  const summaries = ({ arrived }: Pick<FarEnd, 'arrived'>) => arrived.map(({ body }) => JSON.parse(body).event.summary);
  const ids = ({ arrived }: Pick<FarEnd, 'arrived'>) => arrived.map(({ headers }) => headers['idempotency-key']);

  test('delivers messages in order, and exactly once if no attempt fails', async () => {
    const { outbox, channel, happen, left } = await open();
    const one = await channel();
    const two = await channel(204);
    const all = Array.from({ length: 45 }, (_, at) => `event ${at}`);
    await happen(...all);
    await outbox.turn();
    await outbox.turn();
    expect(summaries(one)).toEqual(all);
    expect(summaries(two)).toEqual(all);
    expect(new Set([...ids(one), ...ids(two)]).size).toBe(90);
    expect(one.arrived[0]?.headers['x-muster-delivery']).toBe(JSON.parse(one.arrived[0]?.body ?? '').delivery_id);
    expect(await left(one.id)).toEqual([]);
  });

  test('sends due messages when its timer fires and when a hint arrives', async () => {
    const { channel, happen, clock, context } = await open();
    const one = await channel();
    await happen('1');
    clock.advance(1_000);
    await one.seen(1);
    await happen('2');
    context.bus.publish({ type: 'deliveries_due' });
    await one.seen(2);
  });

  test('backs off and retries in order with the same ID until the server recovers', async ({ onTestFinished }) => {
    const { outbox, channel, happen, clock, left, events, start } = await open();
    const one = await channel(500);
    await happen('1', '2');
    await outbox.turn();
    await outbox.turn();
    expect(summaries(one)).toEqual(['1']);
    clock.advance(999);
    await outbox.turn();
    expect(one.arrived).toHaveLength(1);
    one.behave((_, __, socket) => socket.resetAndDestroy());
    clock.advance(1);
    await outbox.turn();
    expect(one.arrived).toHaveLength(2);
    one.behave(() => {});
    clock.advance(2_000);
    await outbox.stop();
    // The timeout expires only after the request has arrived.
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const impatient = start({ timeoutMs: 100 });
    const turn = impatient.turn();
    await one.seen(3);
    vi.advanceTimersByTime(100);
    vi.useRealTimers();
    await turn;
    await impatient.stop();
    expect(one.arrived).toHaveLength(3);
    expect(await left(one.id)).toEqual(['1', '2']);
    one.behave(200);
    clock.advance(4_000);
    const restarted = start();
    await restarted.turn();
    expect(summaries(one)).toEqual(['1', '1', '1', '1', '2']);
    expect(new Set(ids(one)).size).toBe(2);
    expect(await left(one.id)).toEqual([]);
    // The channel failed too briefly for an event to be recorded.
    expect(await events()).toEqual([]);
    one.behave(500);
    await happen('3');
    await restarted.turn();
    clock.advance(1_000);
    await restarted.turn();
    expect(one.arrived).toHaveLength(7);
  });

  test('retries without a long delay even if the clock was hours ahead when the attempt failed', async () => {
    const { outbox, channel, happen, clock } = await open();
    const one = await channel(500);
    await happen('1');
    clock.jump(36_000_000);
    await outbox.turn();
    one.behave(200);
    clock.jump(-36_000_000);
    await outbox.turn();
    await outbox.turn();
    expect(one.arrived).toHaveLength(2);
  });

  test('waits for the delay that the server requests', async () => {
    const { outbox, channel, happen, clock } = await open();
    const one = await channel((response) => response.writeHead(429, { 'retry-after': '300' }).end());
    await happen('1');
    await outbox.turn();
    one.behave(200);
    clock.advance(299_000);
    await outbox.turn();
    expect(one.arrived).toHaveLength(1);
    clock.advance(1_000);
    await outbox.turn();
    expect(one.arrived).toHaveLength(2);
  });

  test('records once that a channel failed and recovered, and notifies only other channels', async () => {
    const { context, outbox, channel, happen, clock, events } = await open();
    const one = await channel(500);
    await happen('1');
    for (let attempt = 0; attempt < 12; attempt++) {
      clock.advance(600_000);
      await outbox.turn();
    }
    expect(one.arrived).toHaveLength(12);
    expect(await events()).toEqual([`channel.failing ${one.name}`]);
    const delivery = async () => (await getChannel(context, one.id)).delivery;
    expect(await delivery()).toMatchObject({
      ...{ last_delivered_at: null, last_error: 'the receiver answered 500', failures: 12 },
      ...{ failing_since: expect.any(Number), next_attempt_at: Math.floor(clock.now() / 1000) + 300 },
    });
    clock.advance(600_000);
    expect(await delivery()).toMatchObject({ failures: 12, next_attempt_at: null });
    one.behave(200);
    await outbox.turn();
    await outbox.turn();
    expect(await delivery()).toEqual({
      ...{ last_delivered_at: Math.floor(clock.now() / 1000), last_error: null, failures: 0 },
      ...{ failing_since: null, next_attempt_at: null },
    });
    expect(await events()).toEqual([`channel.failing ${one.name}`, `channel.recovered ${one.name}`]);
  });

  test('records a recovery and sends waiting messages after a successful test', async () => {
    const { actor, context, outbox, channel, happen, clock, events } = await open();
    const one = await channel(500);
    await happen('1');
    for (let attempt = 0; attempt < 5; attempt++) {
      clock.advance(600_000);
      await outbox.turn();
    }
    one.behave(200);
    const deliver: Deliver = async () => ({ status: 200, retryAfterMs: null });
    await testChannel(context, actor, deliver, one.id);
    expect((await getChannel(context, one.id)).delivery).toEqual({
      ...{ last_delivered_at: Math.floor(clock.now() / 1000), last_error: null, failures: 0 },
      ...{ failing_since: null, next_attempt_at: null },
    });
    await one.seen(6);
    expect(summaries(one)).toEqual(Array(6).fill('1'));
    expect(await events()).toEqual(['failing', 'recovered', 'tested'].map((event) => `channel.${event} ${one.name}`));
  });

  test('sends subsequent messages after a refused message', async () => {
    const { outbox, channel, happen, clock, left, events } = await open();
    const one = await channel((response, { body }) =>
      response.writeHead(JSON.parse(body).event.summary === 'bad' ? 400 : 200).end(),
    );
    await happen('bad', 'good');
    for (let attempt = 0; attempt < 4; attempt++) {
      await outbox.turn();
      clock.advance(600_000);
    }
    expect(summaries(one)).toEqual(['bad', 'bad', 'bad', 'good']);
    expect(await left(one.id)).toEqual([]);
    expect(await events()).toEqual([`channel.dropped ${one.name}`]);
  });

  test('drops an undelivered message after a day', async () => {
    const { outbox, channel, happen, clock, left, events } = await open();
    const one = await channel(500);
    await happen('1', '2');
    await outbox.turn();
    clock.advance(86_399_000);
    await happen('3');
    await outbox.turn();
    expect(await left(one.id)).toEqual(['1', '2', '3']);
    clock.advance(60_000);
    await outbox.turn();
    expect(await left(one.id)).toEqual(['3']);
    expect(await events()).toEqual([`channel.dropped ${one.name}`]);
  });

  test('delivers messages to channels while other channels hang', async () => {
    const { outbox, channel, happen, clock } = await open();
    const hanging = [];
    for (let count = 0; count < 8; count++) hanging.push(await channel(() => {}));
    const slow = await channel((response) => void setTimeout(() => response.writeHead(200).end(), 100));
    const well = await channel();
    await happen(...Array.from({ length: 10 }, (_, at) => `${at}`));
    const turn = outbox.turn();
    // All other channels receive all messages while each unresponsive channel still waits for its first response.
    await Promise.all([well.seen(10), slow.seen(10)]);
    for (const end of hanging) {
      await end.seen(1);
      expect(end.arrived).toHaveLength(1);
    }
    const stopping = outbox.stop();
    clock.advance(5_000);
    await Promise.all([stopping, turn]);
  });

  test('limits the number of messages in flight, and sends to each channel in turn', async () => {
    let underWay = 0;
    let maxConcurrent = 0;
    const served = new Map<string, number>();
    const full = Promise.withResolvers<void>();
    const deliver: Deliver = async (_, { channel }) => {
      maxConcurrent = Math.max(maxConcurrent, ++underWay);
      if (underWay === 16) full.resolve();
      await full.promise;
      // Gives the outbox time to exceed the limit.
      await new Promise((resolve) => setTimeout(resolve, 25));
      underWay--;
      served.set(channel.id, (served.get(channel.id) ?? 0) + 1);
      return { status: 200, retryAfterMs: null };
    };
    const { outbox, happen, context, actor } = await open({ deliver });
    for (let count = 0; count < 40; count++)
      await createChannel(context, actor, rule, { name: 'n', channel_type: 'ntfy', config: { topic: 't' } });
    await happen('1', '2', '3');
    const turn = outbox.turn();
    await vi.waitFor(() => expect(maxConcurrent).toBeGreaterThanOrEqual(16));
    await turn;
    expect(maxConcurrent).toBe(16);
    expect([...served.values()]).toEqual(Array.from({ length: 40 }, () => 3));
  });

  test('uses a channel’s new configuration, and drops messages to a removed channel', async () => {
    const { outbox, channel, happen, context, actor, clock } = await open();
    const broken = await channel(500);
    const mended = await channel();
    await removeChannel(context, actor, mended.id);
    await happen('1');
    for (let attempt = 0; attempt < 3; attempt++) {
      await outbox.turn();
      clock.advance(60_000);
    }
    await outbox.turn();
    // The new configuration is used immediately, despite the backoff.
    await updateChannel(context, actor, rule, broken.id, { config: { url: mended.url } });
    await outbox.turn();
    expect(summaries(mended)).toEqual(['1']);
    await happen('2');
    await removeChannel(context, actor, broken.id);
    await outbox.turn();
    expect(mended.arrived).toHaveLength(1);
  });

  test('stops within its grace period even if servers hang, and continues after a restart', async () => {
    const { outbox, channel, happen, clock, start, left } = await open();
    const one = await channel(() => {});
    await happen('1', '2');
    void outbox.turn();
    await one.seen(1);
    const stopping = outbox.stop();
    clock.advance(5_000);
    await stopping;
    expect(await left(one.id)).toEqual(['1', '2']);
    one.behave(200);
    await start().turn();
    expect(summaries(one)).toEqual(['1', '1', '2']);
    expect(new Set(ids(one)).size).toBe(2);
  });

  test('sends from one process at a time, and from another process after the lease is free', async () => {
    const { outbox, channel, happen, start, context } = await open();
    await joined(context, context.incarnation);
    const one = await channel();
    await happen('1');
    await outbox.turn();
    const other = start({ lease: createLease({ ...context, incarnation: 'other' }, 'outbox') });
    await happen('2');
    await other.turn();
    expect(summaries(one)).toEqual(['1']);
    await outbox.stop();
    await other.turn();
    expect(summaries(one)).toEqual(['1', '2']);
  });

  test('records no outcome after another process has acquired the lease', async () => {
    let lost = false;
    const { outbox, channel, happen, left, events, context, clock } = await open({
      lease: { hold: async () => (lost ? null : mine.hold()), release: async () => {} },
    });
    const mine = createLease(context, 'outbox');
    let answer = () => {};
    const one = await channel((response) => {
      answer = () => response.writeHead(500).end();
    });
    await happen('1');
    let over = false;
    const turn = outbox.turn().then(() => {
      over = true;
    });
    await one.seen(1);
    expect(await createLease({ ...context, incarnation: 'other' }, 'outbox').hold()).not.toBeNull();
    lost = true;
    answer();
    while (!over) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    await turn;
    expect(await getChannel(context, one.id)).toMatchObject({ delivery: { failures: 0, last_error: null } });
    expect(await left(one.id)).toEqual(['1']);
    expect(await events()).toEqual([]);
  });

  test('redelivers a message with the same ID if the process is killed after delivering it but before recording the delivery', async () => {
    const { outbox, channel, happen, at, db } = await open({
      lease: { hold: async () => null, release: async () => {} },
    });
    let kill = () => {};
    let answered = 0;
    const one = await channel((response) => {
      // The third message has arrived. The process is killed before the response arrives.
      if (++answered === 3) kill();
      else response.writeHead(200).end();
    });
    const all = Array.from({ length: 6 }, (_, index) => `event ${index}`);
    await happen(...all);
    await outbox.stop();
    await db.close();
    const run = () => spawn(process.execPath, [killed, fixture.kind, at], { stdio: ['ignore', 'pipe', 'inherit'] });
    const first = run();
    kill = () => void first.kill('SIGKILL');
    const [, signal] = await once(first, 'exit');
    expect(signal).toBe('SIGKILL');
    expect(one.arrived).toHaveLength(3);
    const second = run();
    await one.seen(3 + 4);
    let said = '';
    for await (const piece of second.stdout.setEncoding('utf8')) {
      said += piece;
      if (said.includes('empty')) break;
    }
    second.kill('SIGKILL');
    await once(second, 'exit');
    const seen = summaries(one);
    expect(new Set(seen)).toEqual(new Set(all));
    expect(seen.slice(-4)).toEqual(all.slice(2));
    const byId = new Map(
      one.arrived.map(({ headers, body }) => [headers['idempotency-key'], JSON.parse(body).event.summary]),
    );
    expect(byId.size).toBe(6);
  });
});
