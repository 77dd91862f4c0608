import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { happen } from '../../test/audit.ts';
import { type DatabaseFixture, describeDatabases } from '../../test/databases/databases.ts';
import { type Domain, newAdmin, openDomain } from '../../test/domain.ts';
import { close, joined } from '../../test/replicas.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { createVerifier } from '../domain/audit/audit-verification.ts';
import { createSequencer, readChainEnds } from '../domain/audit/event-sequencer.ts';
import type { EventConsumer } from '../domain/audit/placed-event.ts';
import { createLiveEvents, type LiveStream } from '../domain/live/events.ts';
import { listNotifications, notificationsOf } from '../domain/notifications/notifications.ts';
import { createLease } from '../domain/shared/leases.ts';
import { migrations } from '../store/migrations/index.ts';
import { type AuditKeeping, startAuditKeeping } from './audit-keeping.ts';

const dayMs = 86_400_000;
const keepings: AuditKeeping[] = [];
interface Started {
  retentionDays?: number;
  consumers?: readonly EventConsumer[];
}

function start(domain: Domain, { retentionDays = 0, consumers = [] }: Started = {}): AuditKeeping {
  const sequencer = createSequencer(domain.context, { consumers });
  const lease = createLease(domain.context, 'audit');
  const keeping = startAuditKeeping(domain.context, domain.clock, { sequencer, lease, retentionDays });
  keepings.push(keeping);
  return keeping;
}

const head = async (domain: Domain) => (await readChainEnds(domain.context)).head.place;
/** Waits for the timer's work without advancing the test's clock. */
const untilPlaced = (domain: Domain, place: number) => expect.poll(() => head(domain)).toBe(place);
/** Waits until the next round is due in `ms` milliseconds. A round schedules the next one when it ends. */
const untilScheduled = (domain: Domain, ms: number) => expect.poll(() => domain.clock.next).toBe(ms);
/** Waits, so that an unexpected round could have an effect. */
const idle = () => sleep(150);

describeDatabases('keeping the audit log', (fixture) => {
  afterEach(async () => {
    for (const keeping of keepings.splice(0)) await keeping.stop();
  });

  /** Opens the domain at a path. Two domains with the same path act as two processes that share a database. */
  const openAt = async (at: string): Promise<Domain> => {
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) } as DatabaseFixture);
    await joined(domain.context, domain.context.incarnation);
    return domain;
  };

  test('chains announced events within 25 ms, and all other events within two seconds', async () => {
    const domain = await openAt(await fixture.newAddress());
    await happen(domain, 1);
    start(domain);
    domain.clock.advance(0);
    await untilPlaced(domain, 1);
    await untilScheduled(domain, 2_000);
    await happen(domain, 3);
    domain.context.bus.publish({ type: 'audited' });
    await untilScheduled(domain, 25);
    domain.clock.advance(24);
    await idle();
    expect(await head(domain)).toBe(1);
    domain.clock.advance(1);
    await untilPlaced(domain, 4);
    await untilScheduled(domain, 2_000);
    await happen(domain, 2);
    domain.clock.advance(1_999);
    await idle();
    expect(await head(domain)).toBe(4);
    domain.clock.advance(1);
    await untilPlaced(domain, 6);
  });

  test('retries a failed round after one second', async () => {
    const domain = await openAt(await fixture.newAddress());
    const write = domain.db.write;
    domain.db.write = () => Promise.reject(new Error('away'));
    await happen(
      { ...domain, context: { ...domain.context, db: { ...domain.db, write: write.bind(domain.db) } } } as Domain,
      2,
    );
    start(domain);
    domain.clock.advance(0);
    await untilScheduled(domain, 1_000);
    domain.db.write = write;
    domain.clock.advance(999);
    await idle();
    expect(await head(domain)).toBe(0);
    domain.clock.advance(1);
    await untilPlaced(domain, 2);
  });

  test('finishes the current round on stop, and starts no further round', async () => {
    const domain = await openAt(await fixture.newAddress());
    await happen(domain, 2);
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const keeping = start(domain, {
      consumers: [
        async () => {
          begun.resolve();
          await gate.promise;
          return [];
        },
      ],
    });
    domain.clock.advance(0);
    await begun.promise;
    let stopped = false;
    const stopping = keeping.stop().then(() => {
      stopped = true;
    });
    await idle();
    expect(stopped).toBe(false);
    gate.resolve();
    await stopping;
    expect(await head(domain)).toBe(2);
    await happen(domain, 1);
    domain.context.bus.publish({ type: 'audited' });
    await idle();
    domain.clock.advance(60_000);
    await idle();
    expect(await head(domain)).toBe(2);
  });

  test('removes expired events every five minutes while it holds the lease', async () => {
    const at = await fixture.newAddress();
    const one = await openAt(at);
    const two = await openAt(at);
    await happen(one, 5);
    // The round also searches for expired events, in the background.
    const searched = Promise.withResolvers<void>();
    const all = one.db.all.bind(one.db);
    one.db.all = (query, params) => {
      if (query.name === 'audit/placed') searched.resolve();
      return all(query, params);
    };
    start(one, { retentionDays: 10 });
    one.clock.advance(0);
    await untilPlaced(one, 5);
    await untilScheduled(one, 2_000);
    await searched.promise;
    one.clock.jump(12 * dayMs);
    two.clock.jump(12 * dayMs);
    const other = start(two, { retentionDays: 10 });
    one.clock.advance(2_000);
    await untilScheduled(one, 2_000);
    await other.round();
    await idle();
    const pruned = async () => (await listAudit(one.context, { event_type: 'audit.pruned' })).events.length;
    expect(await pruned()).toBe(0);
    one.clock.advance(297_999);
    await untilScheduled(one, 2_000);
    await idle();
    expect(await pruned()).toBe(0);
    for (let passed = 0; passed < 4_000; passed += 2_000) {
      one.clock.advance(2_000);
      await untilScheduled(one, 2_000);
    }
    // A prune records its event before it deletes expired events.
    await expect.poll(async () => (await readChainEnds(one.context)).anchor.place).toBe(5);
    expect(await pruned()).toBe(1);
  });

  test('stops even if the database does not respond', async () => {
    const domain = await openAt(await fixture.newAddress());
    const keeping = start(domain);
    await keeping.round();
    domain.db.write = () => Promise.reject(new Error('away'));
    await keeping.stop();
  });

  // Only one process can use an SQLite file.
  if (fixture.kind === 'postgres')
    test('maintains the audit log in only one process at a time, and in another process after the holder is closed or releases the lease', async () => {
      const at = await fixture.newAddress();
      const one = await openAt(at);
      const two = await openAt(at);
      const first = start(one);
      await first.round();
      const second = start(two);
      await happen(one, 3);
      await second.round();
      expect(await head(two)).toBe(0);
      await first.round();
      expect(await head(two)).toBe(3);
      // From here on, the first process is suspended.
      await happen(one, 2);
      two.clock.advance(60_000);
      await second.round();
      expect(await head(two)).toBe(3);
      await close(two.context, one.context.incarnation);
      await second.round();
      expect(await head(two)).toBe(5);
      // The first process resumes, but the second process holds the lease.
      await happen(one, 1);
      one.clock.advance(5_000);
      await first.round();
      expect(await head(two)).toBe(5);
      await second.stop();
      await first.round();
      expect(await head(one)).toBe(6);
      expect((await createVerifier(one.context).verify(new AbortController().signal)).ok).toBe(true);
    });

  test('chains all events in a database without a chain, and sends no notifications about them', async () => {
    const at = await fixture.newAddress();
    await (await fixture.open({ at, migrations: migrations.slice(0, 1) })).close();
    // Creates a database as the first release did.
    const old = await fixture.open({ at, migrations: migrations.slice(0, 1) });
    const before = await openDomain({ ...fixture, open: async () => old } as DatabaseFixture);
    await happen(before, 1_100, 'agent.lost');
    await old.close();

    const domain = await openAt(at);
    const { key } = await newAdmin(domain);
    await happen(domain, 1, 'agent.cloned');
    const keeping = start(domain, { consumers: [notificationsOf(domain.context)] });
    await keeping.round();
    expect(await head(domain)).toBe(1_102);
    const { notifications } = await listNotifications(domain.context, key.id, { limit: 100 });
    expect(notifications.map(({ event_type }) => event_type)).toEqual(['agent.cloned', 'operator.added']);
    const verdict = await createVerifier(domain.context).verify(new AbortController().signal);
    expect(verdict).toMatchObject({ ok: true, verified: 1_102, unchained: 0 });
  });

  if (fixture.kind === 'postgres')
    test('chains and streams an event once, even if it is committed after later events were chained', async () => {
      const at = await fixture.newAddress();
      const domain = await openAt(at);
      const keeping = start(domain);
      const live = createLiveEvents(domain.context, domain.clock, { find: () => ({}) });
      const stream = await live.follow({
        session: { operator_id: '', token_hash: '' },
        filter: { category: undefined, node_id: undefined } as never,
        after: null,
      });
      const seen = idsOf(stream);
      const slow = new Client({ connectionString: at });
      await slow.connect();
      await slow.query('begin');
      await slow.query(
        `insert into audit_events (id, event_type, category, severity, timestamp_ms, actor_type, actor_id, actor_name,
         target_type, target_id, target_name, summary, metadata)
         values ('slow', 'test.slow', 'test', 'info', 5, '', '', '', '', '', '', 'slow', '{}')`,
      );
      await happen(domain, 5);
      await keeping.round();
      expect(await head(domain)).toBe(5);
      await slow.query('commit');
      await slow.end();
      await happen(domain, 2);
      await keeping.round();
      expect(await head(domain)).toBe(8);
      await vi.waitFor(() => expect(seen.places.length).toBeGreaterThanOrEqual(8));
      await idle();
      live.close();
      expect(seen.places).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      expect(seen.ids.filter((id) => id === 'slow')).toHaveLength(1);
      const verdict = await createVerifier(domain.context).verify(new AbortController().signal);
      expect(verdict).toMatchObject({ ok: true, verified: 8, unchained: 0 });
    });
});

function idsOf(stream: LiveStream) {
  const seen = { ids: [] as string[], places: [] as number[] };
  void (async () => {
    for await (const text of stream)
      for (const [, json] of text.matchAll(/^data: (\{.*"place".*\})$/gm)) {
        const { id, place } = JSON.parse(json as string) as { id?: string; place: number };
        if (id === undefined) continue;
        seen.ids.push(id);
        seen.places.push(place);
      }
  })();
  return seen;
}
