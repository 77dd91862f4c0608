import { expect, test, vi } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import {
  connect,
  type Domain,
  type Key,
  newAdmin,
  newAgent,
  openDomain,
  reportsOf,
  resultOf,
} from '../../test/domain.ts';
import { operationById } from '../store/queries/operations/operations.ts';
import { setStatus } from './agents/agents.ts';
import { listAudit } from './audit/audit.ts';
import { latestDrift, submitDriftCheck } from './drift/drift.ts';
import { acceptDrift } from './drift/drift-acceptance.ts';
import { uploadModule } from './modules/modules.ts';
import { cancelOperation } from './operation-end/cancellation.ts';
import { endLost } from './operation-end/operation-expiry.ts';
import { submitOperation } from './operations/operations.ts';

/**
 * Tests decisions based on rows that were read before the transaction. A transaction that conflicts with another
 * transaction is retried with the same statements. Each test commits a conflicting transaction between the read and the
 * write, as in such a retry.
 */

const module = 'name: m\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /f } } }]\n';
const driftOf = (identity: string) =>
  resultOf({ identity, status: 'would_change', changes: [{ field: 'mode', from: '0600', to: '0644' }] });

describeDatabases('decisions on rows that change before the write', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { context, links } = domain;
    const { actor } = await newAdmin(domain);
    await uploadModule(context, actor, 'm', module);
    const agent = await newAgent(domain, actor, 'a');
    let seq = 0;
    const submit = () => submitOperation(context, actor, agent.id, { kind: 'apply', modules: ['m'], queue: true });
    const sent = async () => (await links.nextOperation(agent.id))?.operation.operation_id ?? null;
    const report = async (id: string, results = [resultOf({ identity: '/f' })], status?: 'failed') => {
      const reports = reportsOf(id, results, { now: domain.now(), ...(status ? { status } : {}) }).map((one) =>
        one.type === 'finished' ? { ...one, plan_digest: 'ab'.repeat(32) } : one,
      );
      expect(await links.reported(agent.id, '01'.repeat(16), ++seq, reports)).toBe(null);
    };
    const statusOf = async (id: string) => (await domain.db.get(operationById, { operation_id: id }))?.status;
    const events = async (type: string) =>
      (await listAudit(context, { limit: 100 })).events.filter(({ event_type }) => event_type === type);
    return { domain, context, actor, agent, submit, sent, report, statusOf, events };
  };
  /** Calls `action` immediately before the first transaction with this name. */
  const before = ({ context }: Domain, name: string, action: () => Promise<unknown>) => {
    const write = context.db.write.bind(context.db);
    let done = false;
    vi.spyOn(context.db, 'write').mockImplementation(async (unit) => {
      if (unit.name === name && !done) {
        done = true;
        await action();
      }
      return write(unit);
    });
    return () => expect(done, `a unit ${name} was written`).toBe(true);
  };
  const back = (domain: Domain, agent: Key, ...held: string[]) =>
    connect(domain, agent, { open_operations: held.map((operation_id) => ({ operation_id })) as never });

  test('cancels an operation that is concurrently marked as not dispatched', async () => {
    const { domain, context, actor, agent, submit, sent, statusOf } = await open();
    const id = await submit();
    expect(await sent()).toBe(id);
    const met = before(domain, 'operations/request cancel', () => back(domain, agent));
    await cancelOperation(context, actor, id);
    met();
    expect(await statusOf(id)).toBe('cancelled');
    const next = await submit();
    expect(await sent()).toBe(next);
  });

  test('ends an operation that is canceled while it is marked as not dispatched', async () => {
    const { domain, context, actor, agent, submit, sent, statusOf } = await open();
    const id = await submit();
    expect(await sent()).toBe(id);
    const met = before(domain, 'operations/undispatch', () => cancelOperation(context, actor, id));
    await back(domain, agent);
    met();
    expect(await statusOf(id)).toBe('cancelled');
    const next = await submit();
    expect(await sent()).toBe(next);
  });

  test('accepts only drift that still exists', async () => {
    const { domain, context, actor, submit, sent, report, events } = await open();
    await submit();
    await report((await sent())!);
    const check = async (...identities: string[]) => {
      await submitDriftCheck(context, actor, 'a', 'watch');
      await report((await sent())!, identities.map(driftOf));
      return (await latestDrift(context, 'a'))!;
    };
    const record = await check('/f', '/g');
    const met = before(domain, 'drift/accept', async () => {
      const id = await submit();
      await sent();
      await report(id, [resultOf({ identity: '/f', status: 'failed' }), resultOf({ identity: '/g' })], 'failed');
    });
    await acceptDrift(context, actor, record.drift_id, 'known');
    met();
    // The apply corrected /g, so the current drift of /g is new and not accepted.
    expect((await check('/f', '/g')).accepted).toBe(null);
    expect((await events('drift.unaccepted')).length).toBe(1);
  });

  test('records only the operations that ended because their agent was rejected', async () => {
    const { domain, context, actor, agent, submit, sent, report, statusOf, events } = await open();
    const [done, queued] = [await submit(), await submit()];
    expect(await sent()).toBe(done);
    let late = '';
    const met = before(domain, 'agents/set status', async () => {
      await report(done);
      late = await submit();
    });
    await setStatus(context, actor, agent.id, { status: 'rejected' });
    met();
    expect(await Promise.all([done, queued, late].map(statusOf))).toEqual(['succeeded', 'cancelled', 'cancelled']);
    const cancelledIds = (await events('state.cancelled')).map(({ metadata }) => metadata.operation_id);
    expect(cancelledIds.sort()).toEqual([queued, late].sort());
  });

  test('does not end an operation whose agent reconnects concurrently', async () => {
    const { domain, context, agent, submit, sent, report, statusOf } = await open();
    const id = await submit();
    expect(await sent()).toBe(id);
    await domain.links.closed(agent.id, 'gone', domain.now());
    domain.connected.delete(agent.id);
    domain.clock.advance(3 * 86_400_000);
    const met = before(domain, 'operations/interrupted', () => back(domain, agent, id));
    await endLost(context);
    met();
    expect(await statusOf(id)).toBe('queued');
    await report(id);
    expect(await statusOf(id)).toBe('succeeded');
  });

  test('does not end an operation as stale after it was dispatched concurrently', async () => {
    const { domain, context, actor, agent, sent, report, statusOf } = await open();
    const change = (content: string) =>
      uploadModule(context, actor, 'm', module.replace('/f }', `/f, content: ${content} }`));
    const submit = (kind: 'plan' | 'apply', plan_id?: string) =>
      submitOperation(context, actor, agent.id, {
        kind,
        modules: plan_id === undefined ? ['m'] : [],
        queue: true,
        ...(plan_id === undefined ? {} : { plan_id }),
      });
    await change('a');
    const plan = await submit('plan');
    expect(await sent()).toBe(plan);
    await report(plan);
    const id = await submit('apply', plan);
    await change('b');
    const met = before(domain, 'operations/unresolved', async () => {
      await change('a');
      expect(await sent()).toBe(id);
    });
    await sent();
    met();
    expect(await statusOf(id)).toBe('queued');
    await report(id);
    expect(await statusOf(id)).toBe('succeeded');
  });
});
