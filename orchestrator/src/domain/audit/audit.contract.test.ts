import { createHash } from 'node:crypto';
import type { ChainedEvent } from '@muster/protocol/http';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { happen, placeAll } from '../../../test/audit.ts';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { type Domain, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { close, joined } from '../../../test/replicas.ts';
import { chainRows } from '../../store/queries/audit.ts';
import { defineQuery } from '../../store/query.ts';
import { statement } from '../../store/transaction.ts';
import { putOneTag } from '../agents/tags.ts';
import { addOperator } from '../operators/operators.ts';
import { type Actor, systemActor } from '../shared/context.ts';
import { createLease } from '../shared/leases.ts';
import { listAudit } from './audit.ts';
import { canonicalJson, genesis } from './audit-chain.ts';
import { exportAudit } from './audit-export.ts';
import {
  auditRetention,
  countPrunable,
  finishPruning,
  pruneAudit,
  pruneBySchedule,
  setAuditRetention,
} from './audit-retention.ts';
import { createVerifier } from './audit-verification.ts';
import { createSequencer, readChainEnds } from './event-sequencer.ts';

const never = new AbortController().signal;
const verdictOf = ({ context }: Domain) => createVerifier(context).verify(never);
const run = ({ db }: Domain, text: string) =>
  db.write({
    name: 'test/tamper',
    statements: [
      statement(
        defineQuery('test', () => sql.raw(text)),
        {},
      ),
    ],
  });
const linesOf = async ({ context }: Domain, filter = {}): Promise<ChainedEvent[]> => {
  let text = '';
  for await (const piece of await exportAudit(context, filter)) text += piece;
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ChainedEvent);
};

async function newOperator({ context }: Domain, actor: Actor, username: string): Promise<Actor> {
  const { hex, id } = await newKey();
  await addOperator(context, actor, { public_key: hex, username, role: 'operator' });
  return { type: 'operator', id, name: username };
}

async function openWith(fixture: DatabaseFixture, events: number): Promise<Domain> {
  const domain = await openDomain(fixture);
  await happen(domain, events);
  await placeAll(domain);
  return domain;
}

describeAnyDatabase('the audit log', (fixture) => {
  describe('the chain', () => {
    test('chains all events without gaps, so that the export can be verified', async () => {
      const domain = await openWith(fixture, 1203);
      await happen(domain, 5);
      await placeAll(domain);
      const lines = await linesOf(domain);
      expect(lines.map(({ place }) => place)).toEqual(Array.from({ length: 1208 }, (_, at) => at + 1));
      let previous = genesis;
      for (const { hash, ...event } of lines) {
        expect(createHash('sha256').update(previous).update(canonicalJson(event)).digest('hex')).toBe(hash);
        previous = hash;
      }
      expect(await verdictOf(domain)).toEqual({
        ok: true,
        verified: 1208,
        anchor: { place: 0, hash: genesis },
        head: { place: 1208, hash: previous },
        unchained: 0,
        fault: null,
      });
    });

    test('counts events that are not yet in the chain', async () => {
      const domain = await openWith(fixture, 3);
      await happen(domain, 2);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 3, unchained: 2 });
      expect((await listAudit(domain.context, {})).events).toHaveLength(5);
    });

    test('chains an event whose number is lower than that of the last chained event', async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 4);
      await run(domain, 'update audit_events set seq = seq + 100 where seq > 2');
      await run(domain, 'update audit_events set seq = 1000 where seq = 2');
      await placeAll(domain);
      await run(
        domain,
        `insert into audit_events (seq, id, event_type, category, severity, timestamp_ms, actor_type,
        actor_id, actor_name, target_type, target_id, target_name, summary, metadata)
        values (50, 'late', 'test.late', 'test', 'info', 5, '', '', '', '', '', '', 'late', '{}')`,
      );
      await placeAll(domain);
      const lines = await linesOf(domain);
      expect(lines.map(({ place }) => place)).toEqual([1, 2, 3, 4, 5]);
      expect(lines[4]?.id).toBe('late');
      expect((await verdictOf(domain)).ok).toBe(true);
    });

    test('writes each consumer’s results once, in the transaction that chains the events', async () => {
      const domain = await openDomain(fixture);
      const put = defineQuery('test/follow', (db, p: { key: string }) =>
        db.insertInto('settings').values({ key: p.key, value: '' }),
      );
      const seen: number[] = [];
      const consumer = async (events: readonly { place: number }[]) => {
        seen.push(...events.map(({ place }) => place));
        return events.map(({ place }) => statement(put, { key: `event ${place}` }));
      };
      await happen(domain, 3);
      await placeAll(domain, [consumer]);
      await placeAll(domain, [consumer]);
      expect(seen).toEqual([1, 2, 3]);
      const rows = defineQuery('test/rows', (db) =>
        db.selectFrom('settings').selectAll().where('key', 'like', 'event %'),
      );
      expect(await domain.db.all(rows, {})).toHaveLength(3);
    });

    test('skips a consumer that keeps failing, but not after a database failure', async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 2);
      const failing = async () => {
        throw new Error('mine');
      };
      const sequencer = createSequencer(domain.context, { consumers: [failing] });
      for (let attempt = 0; attempt < 5; attempt++) await expect(sequencer.place([])).rejects.toThrow('mine');
      await sequencer.place([]);
      expect((await verdictOf(domain)).verified).toBe(2);

      await happen(domain, 1);
      let away = 0;
      const fence = statement(
        defineQuery('test/none', (db) => db.selectFrom('settings').select('key').where('key', '=', 'none')),
        {},
        { expect: 'row', else: 'storage_unavailable' },
      );
      const counting = createSequencer(domain.context, {
        consumers: [
          async () => {
            away++;
            return [];
          },
        ],
      });
      for (let attempt = 0; attempt < 7; attempt++)
        await expect(counting.place([fence])).rejects.toMatchObject({ code: 'storage_unavailable' });
      await counting.place([]);
      expect(away).toBe(8);
    });

    test("drops only the consumer's results for the event on which it fails", async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 4);
      const followed: number[] = [];
      const consumer = async (events: readonly { place: number }[]) => {
        if (events.some(({ place }) => place === 2)) throw new Error('poison');
        followed.push(...events.map(({ place }) => place));
        return [];
      };
      const sequencer = createSequencer(domain.context, { consumers: [consumer] });
      for (let attempt = 0; attempt < 5; attempt++) await expect(sequencer.place([])).rejects.toThrow('poison');
      await sequencer.place([]);
      expect(followed).toEqual([1, 3, 4]);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 4, unchained: 0 });
      await happen(domain, 2);
      await sequencer.place([]);
      expect(followed).toEqual([1, 3, 4, 5, 6]);
    });

    test('skips a row that is not a valid event', async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 4);
      await run(domain, `update audit_events set metadata = '{' where seq = 1`);
      await run(domain, 'update audit_events set timestamp_ms = 9000000000000000 where seq = 3');
      await placeAll(domain);
      await placeAll(domain);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 2, unchained: 2 });
    });

    test('adds no event to the chain without the lease', async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 2);
      const first = createLease(await joined(domain.context, 'one'), 'audit');
      const second = createLease(await joined(domain.context, 'two'), 'audit');
      const fence = await first.hold();
      expect(await second.hold()).toBeNull();
      await close(domain.context, 'one');
      const taken = await second.hold();
      expect(taken).not.toBeNull();
      const sequencer = createSequencer(domain.context, { consumers: [] });
      await expect(sequencer.place(fence!)).rejects.toMatchObject({ code: 'storage_unavailable' });
      domain.clock.advance(5_000);
      expect(await first.hold()).toBeNull();
      await sequencer.place(taken!);
      expect((await verdictOf(domain)).verified).toBe(2);
      await second.release();
      expect(await first.hold()).not.toBeNull();
    });

    test('fences the previous holder of a lease when the lease is created and acquired again', async () => {
      const domain = await openDomain(fixture);
      await happen(domain, 1);
      const before = await createLease(domain.context, 'audit').hold();
      const after = await createLease(domain.context, 'audit').hold();
      const sequencer = createSequencer(domain.context, { consumers: [] });
      await expect(sequencer.place(before!)).rejects.toMatchObject({ code: 'storage_unavailable' });
      await sequencer.place(after!);
    });

    test('uses a lease repeatedly without writing to the database', async () => {
      const domain = await openDomain(fixture);
      const lease = createLease(await joined(domain.context, 'one'), 'audit');
      await lease.hold();
      const { unitsCommitted } = domain.db.stats();
      await lease.hold();
      for (let at = 0; at < 6; at++) {
        domain.clock.advance(6_000);
        expect(await lease.hold()).not.toBeNull();
      }
      expect(domain.db.stats().unitsCommitted).toBe(unitsCommitted);
      expect(await createLease(domain.context, 'audit').hold()).toBeNull();
    });
  });

  describe('verifying a tampered log', () => {
    const copy = `insert into audit_events (id, event_type, category, severity, timestamp_ms, actor_type, actor_id,
      actor_name, target_type, target_id, target_name, summary, metadata, place, hash)
      select 'forged', event_type, category, severity, timestamp_ms, actor_type, actor_id, actor_name, target_type,
      target_id, target_name, summary, metadata`;
    test.each<[string, string, number, string]>([
      ['a changed summary', `update audit_events set summary = 'nothing' where place = 130`, 130, 'hash'],
      ['changed metadata', `update audit_events set metadata = '{"at":7}' where place = 130`, 130, 'hash'],
      ['metadata that is no JSON', `update audit_events set metadata = '{' where place = 130`, 130, 'format'],
      ['a changed category', `update audit_events set category = 'x' where place = 130`, 130, 'category'],
      ['a changed time', 'update audit_events set timestamp_ms = timestamp_ms + 1 where place = 130', 130, 'hash'],
      ['a changed hash', `update audit_events set hash = 'ab' where place = 130`, 130, 'hash'],
      ['a removed event', 'delete from audit_events where place = 130', 130, 'missing'],
      ['removed oldest events', 'delete from audit_events where place < 10', 1, 'missing'],
      ['an event without its place', 'update audit_events set place = null where place = 130', 130, 'missing'],
      [
        'two swapped events',
        'update audit_events set place = case when place = 130 then 131 else 130 end where place in (130, 131)',
        130,
        'hash',
      ],
      ['an inserted event', `${copy}, 130, hash from audit_events where place = 130`, 130, 'second'],
      [
        'an inserted event at the end of a page',
        `${copy}, 250, hash from audit_events where place = 250`,
        250,
        'second',
      ],
      ['an appended event', `${copy}, 271, hash from audit_events where place = 270`, 271, 'hash'],
      ['an event before the beginning', `${copy}, 0, hash from audit_events where place = 270`, 0, 'before'],
      ['removed newest events', 'delete from audit_events where place > 258', 259, 'missing'],
      ['removed newest events at the end of a page', 'delete from audit_events where place > 250', 251, 'missing'],
      ['a removal of all events', 'delete from audit_events', 1, 'missing'],
      ['a changed hash of the head', `update audit_chain set hash = 'ab' where name = 'head'`, 270, 'newest'],
      ['a head that was set back', `update audit_chain set place = 260 where name = 'head'`, 261, 'after'],
      ['a changed hash of the anchor', `update audit_chain set hash = 'ab' where name = 'anchor'`, 1, 'hash'],
    ])('detects %s when it verifies the log', async (_, tampering, place, message) => {
      const domain = await openWith(fixture, 270);
      await run(domain, tampering);
      const verdict = await verdictOf(domain);
      expect(verdict.fault).toMatchObject({ place, message: expect.stringContaining(message) });
      const fitting = /after/.test(message) ? 270 : /second|newest/.test(message) ? place : place - 1;
      expect(verdict).toMatchObject({ ok: false, verified: Math.max(0, fitting) });
    });

    test('detects a forged event that fits the chain but not the recorded head', async () => {
      const domain = await openWith(fixture, 5);
      const { head } = await readChainEnds(domain.context);
      await happen(domain, 1);
      await placeAll(domain);
      await run(domain, `update audit_chain set place = ${head.place}, hash = '${head.hash}' where name = 'head'`);
      expect((await verdictOf(domain)).fault).toMatchObject({ place: 6, message: expect.stringContaining('after') });
    });

    test('detects a change even if the chain continues after it', async () => {
      const domain = await openWith(fixture, 5);
      await run(domain, `${copy}, 6, hash from audit_events where place = 5`);
      await happen(domain, 2);
      await placeAll(domain);
      expect((await verdictOf(domain)).fault?.place).toBe(6);
    });
  });

  test('runs one verification at a time, and starts another verification for requests that arrive during a verification', async () => {
    const domain = await openWith(fixture, 270);
    const verifier = createVerifier(domain.context);
    const first = verifier.verify(never);
    const second = verifier.verify(never);
    await run(domain, `update audit_events set summary = 'nothing' where place = 2`);
    const third = verifier.verify(never);
    const fourth = verifier.verify(never);
    const [, , late, latest] = await Promise.all([first, second, third, fourth]);
    expect(late.fault?.place).toBe(2);
    expect(latest).toBe(late);
    const aborted = new AbortController();
    aborted.abort();
    await expect(verifier.verify(aborted.signal)).rejects.toThrow();
    expect((await verifier.verify(never)).ok).toBe(false);
  });

  describe('pruning', () => {
    const hour = 3_600_000;
    async function threeHours(): Promise<{ domain: Domain; times: number[] }> {
      const domain = await openDomain(fixture);
      const times: number[] = [];
      for (let at = 0; at < 3; at++) {
        times.push(domain.clock.now());
        await happen(domain, 10);
        await placeAll(domain);
        domain.clock.advance(hour);
      }
      return { domain, times };
    }
    const iso = (ms: number) => new Date(ms).toISOString();

    test('removes old events, records the prune, and leaves a verifiable log', async () => {
      const { domain, times } = await threeHours();
      expect(await countPrunable(domain.context, iso(times[1]!))).toBe(10);
      expect(await pruneAudit(domain.context, systemActor, iso(times[1]!))).toBe(10);
      expect(await countPrunable(domain.context, iso(times[1]!))).toBe(0);
      expect(await countPrunable(domain.context, iso(times[2]!))).toBe(10);
      const verdict = await verdictOf(domain);
      expect(verdict).toMatchObject({ ok: true, verified: 20, anchor: { place: 10 }, unchained: 1 });
      const { events } = await listAudit(domain.context, { category: 'audit' });
      expect(events).toMatchObject([
        { event_type: 'audit.pruned', metadata: { deleted: 10, place: 10, hash: verdict.anchor.hash } },
      ]);
      // A second prune removes nothing and records no event.
      expect(await pruneAudit(domain.context, systemActor, iso(times[1]!))).toBe(0);
      await placeAll(domain);
      expect((await linesOf(domain)).map(({ place }) => place)[0]).toBe(11);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 21 });
      await run(domain, 'delete from audit_events where place = 11');
      expect((await verdictOf(domain)).fault?.place).toBe(11);
    });

    test('does not prune events that are not yet in the chain', async () => {
      const domain = await openWith(fixture, 3);
      await happen(domain, 4);
      domain.clock.advance(hour);
      expect(await pruneAudit(domain.context, systemActor, iso(domain.clock.now()))).toBe(3);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 0, unchained: 5 });
      await placeAll(domain);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 5 });
    });

    test('removes many events in several transactions and resumes after an interruption', async () => {
      const domain = await openWith(fixture, 1700);
      domain.clock.advance(hour);
      const interrupted = new AbortController();
      interrupted.abort();
      const before = iso(domain.clock.now());
      expect(await pruneAudit(domain.context, systemActor, before, interrupted.signal)).toBe(1700);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 1700 });
      await finishPruning(domain.context, { fence: [] });
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 0, anchor: { place: 1700 } });
      expect((await listAudit(domain.context, { event_type: 'audit.pruned' })).events).toHaveLength(1);
    });

    test('prunes concurrently with another prune and with a verification', async () => {
      const domain = await openWith(fixture, 1700);
      domain.clock.advance(hour);
      const before = iso(domain.clock.now());
      const [verdict, ...deleted] = await Promise.all([
        verdictOf(domain),
        pruneAudit(domain.context, systemActor, before),
        pruneAudit(domain.context, systemActor, before),
        happen(domain, 50).then(() => placeAll(domain)),
      ]);
      expect(verdict.fault).toBeNull();
      expect((deleted[0] as number) + (deleted[1] as number)).toBe(1700);
      await placeAll(domain);
      expect(await verdictOf(domain)).toMatchObject({ ok: true, verified: 51, anchor: { place: 1700 } });
    });

    test('verifies the log without an error if events are pruned between two reads', async () => {
      const domain = await openWith(fixture, 1700);
      domain.clock.advance(hour);
      const interrupted = AbortSignal.abort();
      expect(await pruneAudit(domain.context, systemActor, iso(domain.clock.now()), interrupted)).toBe(1700);
      const oneStep = () => {
        let steps = 1;
        return finishPruning(domain.context, {
          fence: [],
          signal: {
            get aborted() {
              return steps-- === 0;
            },
          } as AbortSignal,
        });
      };
      let pages = 0;
      const db = Object.assign(Object.create(domain.db) as typeof domain.db, {
        all: async (...[query, params]: Parameters<typeof domain.db.all>) => {
          const between = query === chainRows && ++pages === 2;
          if (between) await oneStep();
          const rows = await domain.db.all(query, params);
          if (between) await oneStep();
          return rows;
        },
        get: (...[query, params]: Parameters<typeof domain.db.get>) => domain.db.get(query, params),
      });
      const verdict = await createVerifier({ ...domain.context, db }).verify(never);
      expect(pages).toBeGreaterThan(2);
      expect(verdict).toMatchObject({ ok: true, fault: null, anchor: { place: 1000 }, verified: 950 });
    });

    test.each(['', 'yesterday', '2026-02-31T00:00:00Z', '2026-01-01'])('refuses to prune before %j', async (before) => {
      const domain = await openDomain(fixture);
      await expect(pruneAudit(domain.context, systemActor, before)).rejects.toMatchObject({
        code: 'invalid_input',
        errors: [{ path: '/before' }],
      });
    });

    test('prunes by schedule once events are a day past their retention', async () => {
      const { domain } = await threeHours();
      const { context, clock } = domain;
      const { actor } = await newAdmin(domain);
      const day = 24 * hour;
      const prune = (configured: number) => pruneBySchedule(context, configured, { fence: [] });
      clock.advance(2 * day - 4 * hour);
      expect(await prune(1)).toBe(0);
      clock.advance(2 * hour);
      expect(await prune(0)).toBe(0);
      await setAuditRetention(context, actor, 3);
      expect(await prune(1)).toBe(0);
      await setAuditRetention(context, actor, 1_000_000);
      expect(await prune(1)).toBe(0);
      await setAuditRetention(context, actor, null);
      expect(await prune(1)).toBe(30);
      expect((await listAudit(context, { event_type: 'audit.pruned' })).events).toMatchObject([
        { actor: { type: 'system' }, metadata: { deleted: 30 } },
      ]);
    });
  });

  test('does not prune by schedule without the lease', async () => {
    const domain = await openWith(fixture, 5);
    const fence = await createLease(domain.context, 'audit').hold();
    domain.clock.advance(12 * 86_400_000);
    await createLease(domain.context, 'audit').hold();
    await expect(pruneBySchedule(domain.context, 10, { fence: fence!, signal: never })).rejects.toMatchObject({
      code: 'storage_unavailable',
    });
    expect((await listAudit(domain.context, {})).events).toHaveLength(5);
  });

  test('stores a retention override, and records an event for each change', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const { context } = domain;
    expect(await auditRetention(context)).toBeNull();
    await setAuditRetention(context, actor, 30);
    await setAuditRetention(context, actor, 30);
    expect(await auditRetention(context)).toBe(30);
    await setAuditRetention(context, actor, null);
    expect(await auditRetention(context)).toBeNull();
    const { events } = await listAudit(context, { category: 'audit' });
    expect(events.map(({ metadata }) => metadata)).toEqual([
      { from: 30, to: null },
      { from: null, to: 30 },
    ]);
  });

  describe('reading', () => {
    test('lists pages newest first, unaffected by new events', async () => {
      const domain = await openDomain(fixture);
      const all: string[] = [];
      for (let at = 0; at < 7; at++) {
        await happen(domain, 1);
        if (at % 3 === 0) domain.clock.advance(10);
      }
      const seen: string[] = [];
      let cursor: string | undefined;
      for (;;) {
        const page = await listAudit(domain.context, { limit: 2, cursor });
        seen.push(...page.events.map(({ id }) => id));
        await happen(domain, 1);
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      all.push(...(await listAudit(domain.context, { limit: 500 })).events.map(({ id }) => id));
      expect(seen).toEqual(all.slice(-7));
      expect(seen).toEqual([...seen].sort().reverse());
      expect(await listAudit(domain.context, { limit: 0 })).toMatchObject({ events: [] });
      for (const bad of ['x', '1', '1.', '1.2.3', '-1.2'])
        await expect(listAudit(domain.context, { cursor: bad })).rejects.toMatchObject({ code: 'invalid_input' });
    });

    test('applies each filter to the list and the export', async () => {
      const domain = await openDomain(fixture);
      const { actor } = await newAdmin(domain, 'ada');
      const bob = await newOperator(domain, actor, 'bob');
      const one = await newAgent(domain, actor, 'web-1');
      await newAgent(domain, bob, 'web-2');
      domain.clock.advance(1000);
      const middle = new Date(domain.clock.now()).toISOString();
      await putOneTag(domain.context, bob, 'web-1', 'role', 'web');
      domain.clock.advance(1000);
      await putOneTag(domain.context, actor, 'web-2', 'role', 'db');
      await placeAll(domain);
      const { events } = await listAudit(domain.context, { limit: 500 });
      const both = async (filter: object) => {
        const listed = (await listAudit(domain.context, { ...filter, limit: 500 })).events.map(({ id }) => id);
        const exported = (await linesOf(domain, filter)).map(({ id }) => id);
        expect(exported.sort()).toEqual([...listed].sort());
        return listed;
      };
      const idsOf = (keep: (event: (typeof events)[number]) => boolean) => events.filter(keep).map(({ id }) => id);
      expect(await both({ agent: 'web-1' })).toEqual(
        idsOf((event) => event.target.id === one.id || event.actor.id === one.id),
      );
      expect(idsOf((event) => event.target.id === one.id)).not.toEqual([]);
      expect(await both({ agent: one.id })).toEqual(await both({ agent: 'web-1' }));
      expect(await both({ operator: 'bob' })).toEqual(idsOf((event) => event.actor.name === 'bob'));
      expect(await both({ operator: 'bob', agent: 'web-1' })).toHaveLength(1);
      expect(await both({ event_type: 'agent.tagged' })).toHaveLength(2);
      expect(await both({ event_type: 'agent' })).toEqual([]);
      expect(await both({ category: 'agent' })).toEqual(idsOf((event) => event.event_type.startsWith('agent.')));
      expect(await both({ after: middle })).toHaveLength(2);
      expect(await both({ before: middle })).toHaveLength(events.length - 2);
      expect(await both({ after: middle, before: middle })).toEqual([]);
      expect(await both({ agent: 'nobody' })).toEqual([]);
    });
  });
});
