import { notifyingEvents } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { type Domain, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { consume, placedEvent } from '../../../test/placed-events.ts';
import { putOneTag } from '../agents/tags.ts';
import { createWindow } from '../modules/windows.ts';
import { createChannel, removeChannel } from './channels.ts';
import {
  listNotifications,
  notificationsOf,
  pruneNotifications,
  readAllNotifications,
  readNotification,
} from './notifications.ts';
import { channelsToSend, nextToSend } from './outbox.ts';

const asActor = (id: string) => ({ type: 'operator', id, name: '' }) as const;
const rule = { denyPrivate: false };
const hook = (name: string) => ({
  name,
  channel_type: 'discord' as const,
  config: { webhook_url: 'https://d.example/x' },
});

describeAnyDatabase('notifications', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor, key } = await newAdmin(domain);
    let place = 0;
    const consumer = notificationsOf(domain.context);
    const happen = async (...events: Parameters<typeof placedEvent>[2][]) => {
      const placed = events.map((event) => placedEvent(domain, ++place, event));
      await consume(domain, consumer, placed);
      return placed;
    };
    const waiting = async (channelId: string) =>
      ((await nextToSend(domain.context, channelId, 100))?.messages ?? []).map(({ message }) => message.event.summary);
    const all = async (operator = key.id) =>
      (await listNotifications(domain.context, operator, { limit: 500 })).notifications;
    return { ...domain, domain: domain as Domain, actor, me: key.id, happen, waiting, all };
  };

  test('creates notifications only for notifying event types', async () => {
    const { happen, all } = await open();
    await happen(
      ...[...notifyingEvents, 'agent.connected', 'auth.signed_in', 'channel.dropped'].map((event_type) => ({
        event_type,
      })),
    );
    expect((await all()).map(({ event_type }) => event_type)).toEqual([...notifyingEvents].reverse());
  });

  test('lists notifications newest first', async () => {
    const { happen, context, me } = await open();
    const [first] = await happen({ summary: 'one', severity: 'critical' }, { summary: 'two' });
    const page = await listNotifications(context, me, { limit: 1, offset: 1 });
    expect(page).toEqual({
      notifications: [
        {
          id: expect.stringMatching(/^[0-9A-Z]{26}$/),
          event_id: first?.id,
          event_type: 'agent.lost',
          severity: 'critical',
          summary: 'one',
          timestamp_ms: first?.timestamp_ms,
          read: false,
          suppressed: false,
        },
      ],
      unread_count: 2,
    });
    expect((await listNotifications(context, me, { limit: 0 })).notifications).toEqual([]);
  });

  test('tracks read notifications for each operator', async () => {
    const { happen, context, me, all } = await open();
    const other = (await newKey()).id;
    await happen({ summary: '1' }, { summary: '2' }, { summary: '3' });
    const [three, two, one] = await all();
    await readNotification(context, asActor(me), two?.id ?? '');
    await readNotification(context, asActor(me), two?.id ?? '');
    expect((await all()).map(({ read }) => read)).toEqual([false, true, false]);
    const unread = await listNotifications(context, me, { unread: true });
    expect(unread.notifications.map(({ id }) => id)).toEqual([three?.id, one?.id]);
    expect(unread.unread_count).toBe(2);
    expect((await listNotifications(context, other, {})).unread_count).toBe(3);
    await readAllNotifications(context, asActor(me));
    await happen({ summary: '4' });
    expect((await all()).map(({ read }) => read)).toEqual([false, true, true, true]);
    expect((await listNotifications(context, me, {})).unread_count).toBe(1);
    expect((await listNotifications(context, other, {})).unread_count).toBe(4);
    await expect(readNotification(context, asActor(me), 'x')).rejects.toMatchObject({ code: 'notification_not_found' });
  });

  test('treats notifications from before an operator was added as read', async () => {
    const { happen, context } = await open();
    const later = (await newKey()).id;
    await happen(
      { summary: 'old' },
      { event_type: 'operator.added', target_type: 'operator', target_id: later },
      { summary: 'new' },
    );
    const { notifications, unread_count } = await listNotifications(context, later, {});
    expect(notifications.map(({ summary, read }) => [summary, read])).toEqual([
      ['new', false],
      ['event 2', true],
      ['old', true],
    ]);
    expect(unread_count).toBe(1);
    // Chaining the event for the added operator preserves earlier read marks.
    await readAllNotifications(context, asActor(later));
    await happen({ event_type: 'operator.removed', target_type: 'operator', target_id: later });
    expect((await listNotifications(context, later, {})).unread_count).toBe(4);
  });

  test('counts unread notifications up to a thousand', async () => {
    const { happen, context, me } = await open();
    await happen(...Array.from({ length: 1_005 }, () => ({})));
    expect((await listNotifications(context, me, { limit: 1 })).unread_count).toBe(1000);
  });

  test('sends notifications to every channel, oldest first, and reports a failing channel to the other channels', async () => {
    const { happen, context, actor, waiting } = await open();
    const one = await createChannel(context, actor, rule, hook('one'));
    await happen({ summary: 'first' });
    const two = await createChannel(context, actor, rule, hook('two'));
    await happen(
      { summary: 'second' },
      { summary: 'one fails', event_type: 'channel.failing', target_type: 'channel', target_id: one.id },
    );
    expect(await waiting(one.id)).toEqual(['first', 'second']);
    expect(await waiting(two.id)).toEqual(['second', 'one fails']);
    expect((await channelsToSend(context)).sort()).toEqual([one.id, two.id].sort());
    await removeChannel(context, actor, two.id);
    expect(await channelsToSend(context)).toEqual([one.id]);
  });

  test('adds events to the chain while a channel is removed concurrently', async () => {
    const { context, actor, domain, db, all } = await open();
    const { id } = await createChannel(context, actor, rule, hook('one'));
    const statements = await notificationsOf(context)([placedEvent(domain, 1)]);
    await removeChannel(context, actor, id);
    await db.write({ name: 'test/place', statements });
    expect(await all()).toHaveLength(1);
  });

  test('never sends notifications from a maintenance window, even after the window ends', async () => {
    const { happen, context, actor, domain, clock, waiting, all, now } = await open();
    const channel = await createChannel(context, actor, rule, hook('one'));
    const agent = await newAgent(domain, actor, 'web-1');
    const other = await newAgent(domain, actor, 'db-1');
    await putOneTag(context, actor, 'web-1', 'site', 'paris');
    await createWindow(context, actor, {
      starts_at: now() + 10,
      ends_at: now() + 20,
      reason: 'x',
      selector: 'site=paris',
    });
    const of = (target_id: string, event_type: string, afterSecs: number) => ({
      event_type,
      target_id,
      summary: `${event_type} ${target_id === agent.id ? 'web' : 'db'} ${afterSecs}`,
      timestamp_ms: (now() + afterSecs) * 1000,
    });
    // A window mutes events that happened in it, even if they are chained afterward.
    const events = [
      of(agent.id, 'agent.lost', 9),
      of(agent.id, 'agent.lost', 10),
      of(agent.id, 'drift.detected', 15),
      of(agent.id, 'state.failed', 15),
      of(other.id, 'agent.lost', 15),
      of('cd'.repeat(16), 'agent.pending', 15),
      of(agent.id, 'agent.returned', 20),
    ];
    clock.advance(60_000);
    await happen(...events);
    const suppressed = (await all()).filter((one) => one.suppressed).map(({ summary }) => summary);
    expect(suppressed).toEqual(['drift.detected web 15', 'agent.lost web 10']);
    expect(await waiting(channel.id)).toEqual([
      'agent.lost web 9',
      'state.failed web 15',
      'agent.lost db 15',
      'agent.pending db 15',
      'agent.returned web 20',
    ]);
  });

  test.each(['agent.cloned', 'agent.key_rotated', 'agent.pending', 'agent.refused'])(
    'never mutes a security notification: %s',
    async (event_type) => {
      const { happen, context, actor, domain, waiting, all, now } = await open();
      const channel = await createChannel(context, actor, rule, hook('one'));
      const agent = await newAgent(domain, actor, 'web-1');
      await createWindow(context, actor, { starts_at: now(), ends_at: now() + 20, reason: 'x' });
      await happen({ target_id: agent.id, event_type, summary: 'told' });
      expect((await all()).map(({ suppressed }) => suppressed)).toEqual([false]);
      expect(await waiting(channel.id)).toEqual(['told']);
    },
  );

  test.each(['agent.refused', 'agent.key_rotated'])(
    'limits %s notifications to ten per hour for each group of senders',
    async (event_type) => {
      const { happen, context, actor, waiting, all, clock } = await open();
      const channel = await createChannel(context, actor, rule, hook('one'));
      const start = clock.now();
      const flood = (from: number, count: number, target: object) =>
        Array.from({ length: count }, (_, at) => ({
          event_type,
          summary: `${from + at}`,
          timestamp_ms: start + (from + at) * 1000,
          ...target,
        }));
      const strangers = { target_type: '', target_id: '' };
      await happen(...flood(0, 7, strangers));
      await happen(...flood(7, 500, strangers), { summary: 'lost' });
      // Known agents have a separate limit.
      await happen(...flood(600, 15, { target_id: 'cd'.repeat(16) }));
      const summaries = (await all()).map(({ summary }) => summary).reverse();
      expect(summaries).toHaveLength(21);
      expect(summaries.slice(0, 9)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
      expect(summaries[9]).toBe(
        `9; further ones within the hour are only in the audit log: muster audit list --type ${event_type}`,
      );
      expect(summaries.slice(10, 12)).toEqual(['lost', '600']);
      expect((await waiting(channel.id)).toSorted()).toEqual(summaries.toSorted());
      await happen({ event_type, summary: 'an hour later', timestamp_ms: start + 2 * 3_600_000, ...strangers });
      expect((await all())[0]?.summary).toBe('an hour later');
    },
  );

  test('mutes notifications about a removed agent in a window for all agents', async () => {
    const { happen, context, actor, all, now } = await open();
    await createWindow(context, actor, { starts_at: now(), ends_at: now() + 20, reason: 'x' });
    await happen({ target_id: 'cd'.repeat(16) });
    expect((await all()).map(({ suppressed }) => suppressed)).toEqual([true]);
  });

  test('deletes old notifications without outstanding deliveries', async () => {
    const { happen, context, actor, clock, all, me } = await open();
    await happen({ summary: 'old' });
    const channel = await createChannel(context, actor, rule, hook('one'));
    await happen({ summary: 'old, not delivered' });
    clock.advance(40 * 86_400_000);
    await happen({ summary: 'new' });
    for (const { id } of await all()) await readNotification(context, asActor(me), id);
    await pruneNotifications(context, [], 0);
    expect(await all()).toHaveLength(3);
    await pruneNotifications(context, [], 30);
    expect((await all()).map(({ summary }) => summary)).toEqual(['new', 'old, not delivered']);
    await removeChannel(context, actor, channel.id);
    await pruneNotifications(context, [], 30);
    expect((await all()).map(({ summary }) => summary)).toEqual(['new']);
  });
});
