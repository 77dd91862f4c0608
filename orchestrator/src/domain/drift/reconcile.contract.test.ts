import type { ResourceResult } from '@muster/protocol';
import type { OffReason } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { describe, expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import {
  connect,
  type Key,
  newAdmin,
  newAgent,
  newKey,
  openDomain,
  reportsOf,
  resultOf,
} from '../../../test/domain.ts';
import { neverAppliedMatching, requireSelector, setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { getOverview } from '../fleet/overview.ts';
import { pruneHistory } from '../fleet/retention.ts';
import { createAssignment, removeAssignment, updateAssignment } from '../modules/assignments.ts';
import { uploadModule } from '../modules/modules.ts';
import { expireQueued } from '../operation-end/operation-expiry.ts';
import { submitOperation } from '../operations/operations.ts';
import { startRun } from '../runs/runs.ts';
import { createSecret } from '../secrets/secrets.ts';
import { getDrift, submitDriftCheck } from './drift.ts';
import { acceptDrift, unacceptDrift } from './drift-acceptance.ts';
import { createOffRanking } from './off-ranking.ts';
import { listReconcile } from './reconcile.ts';

const module = 'name: m\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /f } } }]\n';
const moved = (from: string, more: Partial<ResourceResult> = {}) =>
  resultOf({ status: 'would_change', action: 'update', changes: [{ field: 'content', from, to: 'x' }], ...more });
const other = (from: string) => moved(from, { identity: '/other' });

describeAnyDatabase('agents that are not in their desired state', (fixture) => {
  const open = async (...names: string[]) => {
    const domain = await openDomain(fixture);
    const { context, links } = domain;
    const { actor } = await newAdmin(domain);
    await uploadModule(context, actor, 'm', module);
    const agents = new Map<string, Key>();
    for (const name of names) {
      agents.set(name, await newAgent(domain, actor, name));
      await putOneTag(context, actor, name, 'group', name[0] as string);
    }
    let seq = 0;
    type Status = 'succeeded' | 'failed' | 'cancelled';
    const report = async (name: string, id: string, results: ResourceResult[], status: Status) => {
      const agent = agents.get(name) as Key;
      await links.nextOperation(agent.id);
      await links.reported(agent.id, '01'.repeat(16), ++seq, reportsOf(id, results, { now: domain.now(), status }));
      return id;
    };
    const apply = async (name: string, results: ResourceResult[] = [resultOf()], status: Status = 'succeeded') => {
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      const id = await submitOperation(context, actor, name, request);
      return report(name, id, results, status);
    };
    const check = async (name: string, results: ResourceResult[], status: Status = 'succeeded') =>
      report(name, await submitDriftCheck(context, actor, name, 'schedule'), results, status);
    /** Starts a run that plans an audit assignment for all agents. */
    const audit = async (
      name: string,
      assignment: string,
      results: ResourceResult[],
      meanwhile: () => Promise<unknown> = async () => {},
    ) => {
      const node_id = (agents.get(name) as Key).id;
      await startRun(context, domain.conductor, actor, assignment, { kind: 'plan' });
      await domain.conductor.sweep();
      const next = await links.nextOperation(node_id);
      const id = next?.operation.operation_id as string;
      await meanwhile();
      await links.reported(node_id, '01'.repeat(16), ++seq, reportsOf(id, results, { now: domain.now() }));
      return id;
    };
    const listed = async (options: Partial<Parameters<typeof listReconcile>[1]> = {}) => {
      const { items, more } = await listReconcile(
        context,
        { limit: 50, offset: 0, ...options },
        createOffRanking(context),
      );
      return {
        all: items,
        more,
        reasons: Object.fromEntries(items.map(({ name, reasons }) => [name, reasons])) as Record<string, OffReason[]>,
        names: items.map(({ name }) => name),
      };
    };
    const events = async (type: string) =>
      (await listAudit(context, { event_type: type, limit: 50 })).events.map(({ metadata }) => metadata).reverse();
    return { domain, context, actor, agents, report, apply, check, audit, listed, events };
  };

  describe('reconcile list', () => {
    test('lists each reason until it is resolved, and omits healthy agents', async () => {
      const { domain, context, actor, agents, apply, check, listed } = await open('a1', 'a2', 'b1', 'b2');
      for (const name of agents.keys()) await apply(name);
      expect((await listed()).all).toEqual([]);

      const failed = await apply('b1', [resultOf({ status: 'failed', module: 'm' })], 'failed');
      const drifted = await check('a2', [moved('a'), other('b')]);
      const failedCheck = await check('a1', [], 'failed');
      expect((await listed()).names).toEqual(['b1', 'a2', 'a1']);
      expect((await listed()).all).toMatchObject([
        {
          connected: true,
          reasons: ['apply_failed', 'unapplied'],
          failed_operation: { operation_id: failed, status: 'failed', error: 'it failed', summary: { failed: 1 } },
          drift: [],
          unapplied: 1,
          unfinished: [{ state: 'unapplied', type: 'file-unix', identity: '/f' }],
          modules: ['m'],
        },
        {
          reasons: ['drifted'],
          drift: [
            {
              ...{ drift_id: drifted, assignment: null, resources: 2, summary: { changed: 2 }, accepted: null },
              examples: [
                { identity: '/etc/motd', action: 'update', changes: [{ field: 'content', from: 'a', to: 'x' }] },
                { identity: '/other', changes: [{ field: 'content', from: 'b', to: 'x' }] },
              ],
            },
          ],
          unfinished: [],
          failed_operation: null,
          modules: ['m'],
        },
        { reasons: ['drift_failed'], failed_check: { drift_id: failedCheck, error: 'it failed' }, drift: [] },
      ]);
      expect((await listed({ reason: 'drifted' })).names).toEqual(['a2']);
      expect((await listed({ agent: 'a2' })).names).toEqual(['a2']);
      expect((await listed({ agent: agents.get('a1')?.id })).names).toEqual(['a1']);
      expect((await listed({ agent: 'b2' })).names).toEqual([]);
      expect((await listed({ filter: 'group=a' })).names).toEqual(['a2', 'a1']);
      expect((await listed({ filter: '', limit: 2 })).names).toEqual(['b1', 'a2']);
      expect(await listed({ filter: 'group=a', limit: 1 })).toMatchObject({ names: ['a2'], more: true });
      expect(await listed({ filter: 'group=a', limit: 1, offset: 1 })).toMatchObject({ names: ['a1'], more: false });
      await expect(listed({ filter: '=' })).rejects.toMatchObject({ code: 'selector_invalid' });

      domain.connected.delete(agents.get('b1')?.id as string);
      expect((await listed()).all[0]).toMatchObject({ connected: false });
      domain.connected.add(agents.get('b1')?.id as string);
      await apply('b1', [resultOf({ module: 'm' })]);
      await apply('a2', [resultOf(), resultOf({ identity: '/other' })]);
      await check('a1', []);
      expect((await listed()).all).toEqual([]);

      await apply('a1', [], 'failed');
      await setStatus(context, actor, 'a1', { status: 'rejected' });
      expect((await listed()).all).toEqual([]);
    });

    test('names only fields if the drift record is large, and at most three resources of each state', async () => {
      const { context, actor, apply, check, listed } = await open('a1');
      const identities = ['/a', '/b', '/c', '/d'];
      const files = identities.map((path) => `{ resource: { file-unix: { path: ${path} } } }`).join(', ');
      await uploadModule(context, actor, 'm', `name: m\nsupports: [{ platform: linux }]\nresources: [${files}]\n`);
      await apply(
        'a1',
        identities.map((identity) => resultOf({ identity })),
      );
      await check(
        'a1',
        identities.map((identity) => moved('y'.repeat(4_000), { identity })),
      );
      const [drift] = (await listed()).all[0]?.drift ?? [];
      expect(drift).toMatchObject({ resources: 4 });
      expect(drift?.examples.map(({ identity, changes }) => [identity, changes])).toEqual(
        ['/a', '/b', '/c'].map((identity) => [identity, [{ field: 'content', from: null, to: null }]]),
      );
      await apply(
        'a1',
        identities.map((identity) => resultOf({ identity, status: 'failed' })),
        'failed',
      );
      const [agent] = (await listed()).all;
      expect(agent).toMatchObject({ unapplied: 4 });
      expect(agent?.unfinished).toHaveLength(3);
    });

    test('names only resources that an apply has not corrected since the check', async () => {
      const { context, actor, apply, check, listed } = await open('a1');
      const identities = ['/f', '/b', '/c', '/d'];
      const files = identities.map((path) => `{ resource: { file-unix: { path: ${path} } } }`).join(', ');
      await uploadModule(context, actor, 'm', `name: m\nsupports: [{ platform: linux }]\nresources: [${files}]\n`);
      await apply(
        'a1',
        identities.map((identity) => resultOf({ identity })),
      );
      await check(
        'a1',
        identities.map((identity) => moved('a', { identity })),
      );
      await apply(
        'a1',
        identities.map((identity) => resultOf({ identity, status: identity === '/d' ? 'failed' : 'changed' })),
        'failed',
      );
      expect((await listed()).all[0]?.drift).toMatchObject([
        { resources: 1, examples: [{ identity: '/d', changes: [{ field: 'content', from: 'a', to: 'x' }] }] },
      ]);
    });

    test('lists an apply that the agent never accepted, but not a canceled one', async () => {
      const { domain, context, actor, apply, listed } = await open('a1', 'a2');
      await apply('a1', [], 'cancelled');
      expect((await listed()).all).toEqual([]);
      const request = { kind: 'apply', modules: ['m'], queue: true, ttl: 60 } as const;
      await submitOperation(context, actor, 'a2', request);
      domain.clock.advance(61_000);
      await expireQueued(context);
      expect((await listed()).all).toMatchObject([
        { name: 'a2', reasons: ['apply_failed'], failed_operation: { status: 'expired' }, modules: ['m'] },
      ]);
      await apply('a2');
      expect((await listed()).all).toEqual([]);
    });

    test('removes a reason after a repeated apply that skips the comparison with applied state', async () => {
      const { domain, context, actor, apply, listed } = await open('a1');
      const unchanged = [resultOf({ status: 'unchanged', action: 'none' })];
      await apply('a1', unchanged);
      await apply('a1', unchanged);
      const request = { kind: 'apply', modules: ['m'], queue: true, ttl: 60 } as const;
      await submitOperation(context, actor, 'a1', request);
      domain.clock.advance(61_000);
      await expireQueued(context);
      expect((await listed()).reasons).toEqual({ a1: ['apply_failed'] });
      await apply('a1', unchanged);
      expect((await listed()).all).toEqual([]);
    });
  });

  describe('outdated agents', () => {
    const newer = `# Newer.\n${module}`;
    const outdated = { include_outdated: true };
    const unchanged = [resultOf({ status: 'unchanged', action: 'none' })];

    test('lists an agent from the upload of a newer revision to its next successful apply', async () => {
      const { context, actor, apply, listed } = await open('a1', 'a2');
      for (const name of ['a1', 'a2']) await apply(name);
      expect((await listed(outdated)).all).toEqual([]);
      await uploadModule(context, actor, 'm', newer);
      expect((await listed()).all).toEqual([]);
      expect((await listed({ include_accepted: true })).all).toEqual([]);
      expect((await listed(outdated)).all).toMatchObject(
        ['a1', 'a2'].map((name) => ({
          ...{ name, reasons: [], drift: [], modules: ['m'] },
          outdated: { modules: 1, examples: [{ module: 'm', revision: 1, newest: 2 }] },
        })),
      );
      expect((await getOverview(context, actor.id)).desired_state).toEqual({
        ...{ in_sync: 2, outdated: 2, accepted: 0, out_of_sync: 0, never_applied: 0 },
      });
      await apply('a1');
      expect((await listed(outdated)).names).toEqual(['a2']);
      await apply('a2', [resultOf({ status: 'failed' })], 'failed');
      expect((await listed()).all).toMatchObject([
        { name: 'a2', reasons: ['apply_failed', 'unapplied'], outdated: { modules: 1 } },
      ]);
      await setStatus(context, actor, 'a2', { status: 'rejected' });
      expect((await listed(outdated)).all).toEqual([]);
    });

    test('counts an agent with accepted drift and an outdated module as outdated, as the list does', async () => {
      const { context, actor, apply, check, listed } = await open('a1', 'a2');
      for (const name of ['a1', 'a2']) await apply(name);
      await acceptDrift(context, actor, await check('a1', [moved('a')]), 'known');
      expect((await getOverview(context, actor.id)).desired_state).toMatchObject({ in_sync: 1, accepted: 1 });
      await uploadModule(context, actor, 'm', newer);
      await apply('a2');
      const [off] = (await listed({ ...outdated, include_accepted: true })).all;
      expect(syncStateOf(off ?? null, true)).toBe('outdated');
      expect((await getOverview(context, actor.id)).desired_state).toEqual({
        ...{ in_sync: 2, outdated: 1, accepted: 0, out_of_sync: 0, never_applied: 0 },
      });
    });

    test('determines outdated modules by the resolved revision, not by the time of the apply', async () => {
      const { context, actor, report, listed } = await open('a1');
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      const id = await submitOperation(context, actor, 'a1', request);
      await uploadModule(context, actor, 'm', newer);
      await report('a1', id, [resultOf()], 'succeeded');
      expect((await listed(outdated)).names).toEqual(['a1']);
    });

    test('updates the revision after an apply whose desired state is the same', async () => {
      const { context, actor, apply, listed } = await open('a1');
      for (let count = 0; count < 2; count++) await apply('a1', unchanged);
      await uploadModule(context, actor, 'm', newer);
      expect((await listed(outdated)).names).toEqual(['a1']);
      await apply('a1', unchanged);
      expect((await listed(outdated)).all).toEqual([]);
    });

    test('counts applies from runs, and ignores modules that are no longer applied', async () => {
      const { domain, context, actor, agents, report, listed } = await open('a1');
      await createAssignment(context, actor, { name: 'base', modules: ['m'], selector: 'group=a' });
      await startRun(context, domain.conductor, actor, 'base', { kind: 'apply' });
      await domain.conductor.sweep();
      const next = await domain.links.nextOperation((agents.get('a1') as Key).id);
      await report('a1', next?.operation.operation_id as string, [resultOf()], 'succeeded');
      await uploadModule(context, actor, 'm', newer);
      expect((await listed(outdated)).names).toEqual(['a1']);
      await removeAssignment(context, actor, 'base');
      const id = await submitOperation(context, actor, 'a1', { kind: 'apply', modules: [], queue: true });
      await report('a1', id, [], 'succeeded');
      expect((await listed(outdated)).all).toEqual([]);
    });

    test('ignores plans', async () => {
      const { context, actor, apply, report, listed } = await open('a1');
      await apply('a1');
      await uploadModule(context, actor, 'm', newer);
      const id = await submitOperation(context, actor, 'a1', { kind: 'plan', modules: ['m'], queue: true });
      await report('a1', id, [moved('a')], 'succeeded');
      expect((await listed(outdated)).names).toEqual(['a1']);
    });
  });

  describe('accepted drift', () => {
    test('keeps an acceptance and records no event while checks find the same drift or less', async () => {
      const { context, actor, apply, check, listed, events } = await open('a1');
      await apply('a1');
      const first = await check('a1', [moved('a'), other('b')]);
      const accepted = { by: actor.id, at: expect.any(Number), reason: 'known' };
      expect(await acceptDrift(context, actor, first, 'known')).toMatchObject({ drift_id: first, accepted });
      expect(await getDrift(context, first)).toMatchObject({ accepted });
      expect((await listed()).all).toEqual([]);
      expect((await listed({ include_accepted: true })).all).toMatchObject([
        { name: 'a1', reasons: [], drift: [{ drift_id: first, accepted }] },
      ]);
      const second = await check('a1', [moved('a'), other('b')]);
      expect(await getDrift(context, second)).toMatchObject({ status: 'drifted', accepted });
      const third = await check('a1', [moved('a')]);
      expect(await getDrift(context, third)).toMatchObject({ accepted });
      expect((await listed()).all).toEqual([]);
      expect(await events('drift.accepted')).toEqual([
        expect.objectContaining({ drift_id: first, reason: 'known', count: 2, assignment: null }),
      ]);
      expect(await events('drift.detected')).toHaveLength(1);
      // Drift that recurs after a correction is new drift.
      await check('a1', [moved('a'), other('b')]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      expect(await events('drift.detected')).toHaveLength(2);
    });

    test.each([
      ['another value', [moved('tampered')]],
      ['another resource', [moved('a'), other('b')]],
    ])('revokes an acceptance with an event when a check finds %s', async (_, results) => {
      const { context, actor, apply, check, listed, events } = await open('a1');
      await apply('a1');
      await acceptDrift(context, actor, await check('a1', [moved('a')]), 'known');
      const later = await check('a1', results);
      expect((await listed()).all).toMatchObject([{ drift: [{ drift_id: later, accepted: null }] }]);
      expect(await getDrift(context, later)).toMatchObject({ accepted: null });
      expect(await events('drift.unaccepted')).toEqual([
        { drift_id: later, because: 'another deviation', assignment: null },
      ]);
      expect((await events('drift.detected')).at(-1)).toMatchObject({ drift_id: later, count: 1 });
      await check('a1', results);
      expect(await events('drift.detected')).toHaveLength(2);
    });

    test('revokes an acceptance after a check without drift or a successful apply, but not after a failed apply', async () => {
      const { context, actor, apply, check, listed, events } = await open('a1');
      await apply('a1');
      await acceptDrift(context, actor, await check('a1', [moved('a')]), 'known');
      await apply('a1', [resultOf({ status: 'failed' })], 'failed');
      expect((await listed()).all).toMatchObject([
        { reasons: ['apply_failed', 'unapplied'], drift: [{ accepted: {} }] },
      ]);
      await apply('a1');
      await check('a1', [moved('a')]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      await acceptDrift(context, actor, await check('a1', [moved('a')]), 'known');
      await check('a1', []);
      await check('a1', [moved('a')]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      await acceptDrift(context, actor, await check('a1', [moved('a')]), 'known');
      // The apply succeeds, but its results do not contain the drifted resources.
      const operation_id = await apply('a1', [resultOf({ identity: '/elsewhere' })]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      expect((await events('drift.unaccepted')).at(-1)).toEqual({ operation_id, because: 'apply', assignment: null });
    });

    test('keeps an acceptance if a check is incomplete, and lists the incomplete check', async () => {
      const { context, actor, apply, check, listed } = await open('a1');
      await apply('a1');
      const first = await check('a1', [moved('a'), other('b')]);
      await acceptDrift(context, actor, first, 'known');
      const cut = await check('a1', [moved('a'), other('b'), resultOf({ identity: '/x', status: 'failed' })], 'failed');
      expect((await listed()).all).toMatchObject([
        { reasons: ['drift_failed'], failed_check: { drift_id: cut }, drift: [{ drift_id: first, accepted: {} }] },
      ]);
      await check('a1', [moved('a'), other('b')]);
      expect((await listed()).all).toEqual([]);
    });

    test('allows each acceptance to be revoked once, and refuses to accept or revoke drift in a superseded record', async () => {
      const { context, actor, apply, check, listed, events } = await open('a1');
      await apply('a1');
      const old = await check('a1', [moved('a')]);
      const now = await check('a1', [moved('a')]);
      await expect(acceptDrift(context, actor, old, 'x')).rejects.toMatchObject({ code: 'drift_superseded' });
      await acceptDrift(context, actor, now, 'x');
      await acceptDrift(context, actor, now, 'said better');
      expect((await listed({ include_accepted: true })).all).toMatchObject([
        { drift: [{ accepted: { reason: 'said better' } }] },
      ]);
      expect(await unacceptDrift(context, actor, now)).toMatchObject({ accepted: null });
      expect(await unacceptDrift(context, actor, now)).toMatchObject({ accepted: null });
      expect(await events('drift.unaccepted')).toEqual([{ drift_id: now, because: 'operator', assignment: null }]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      await acceptDrift(context, actor, now, 'x');
      const inSync = await check('a1', []);
      await expect(acceptDrift(context, actor, inSync, 'x')).rejects.toMatchObject({ code: 'not_drifted' });
      await expect(unacceptDrift(context, actor, now)).rejects.toMatchObject({ code: 'drift_superseded' });
      expect(await unacceptDrift(context, actor, inSync)).toMatchObject({ accepted: null });
      await expect(acceptDrift(context, actor, 'x', 'x')).rejects.toMatchObject({ code: 'drift_not_found' });
    });

    test('keeps accepted drift from applies separate from accepted drift from audit assignments', async () => {
      const { context, actor, apply, check, audit, listed } = await open('a1');
      await createAssignment(context, actor, { name: 'hard', modules: ['m'], selector: 'group=a', mode: 'audit' });
      await apply('a1');
      const applied = await check('a1', [moved('a')]);
      const audited = await audit('a1', 'hard', [moved('a', { module: 'm', identity: '/f' })]);
      expect((await listed()).all).toMatchObject([
        {
          reasons: ['drifted'],
          drift: [
            { drift_id: applied, assignment: null },
            { drift_id: audited, assignment: 'hard' },
          ],
        },
      ]);
      await acceptDrift(context, actor, applied, 'known');
      expect((await listed()).all).toMatchObject([{ drift: [{ accepted: {} }, { accepted: null }] }]);
      await acceptDrift(context, actor, audited, 'known');
      expect((await listed()).all).toEqual([]);
      await unacceptDrift(context, actor, audited);
      await updateAssignment(context, actor, 'hard', { selector: 'group=b' });
      expect((await listed()).all).toEqual([]);
      await removeAssignment(context, actor, 'hard');
    });

    test('detects an acceptance or revocation that is committed while a check ends', async () => {
      const { context, actor, apply, check, listed, events } = await open('a1');
      await apply('a1');
      const first = await check('a1', [moved('a'), other('b')]);
      const write = context.db.write.bind(context.db);
      /** Calls `judge` after a report's rows are read but before the report is written. */
      const meanwhile = (judge: () => Promise<unknown>) => {
        context.db.write = async (unit) => {
          if (unit.name !== 'operations/report') return write(unit);
          context.db.write = write;
          await judge();
          return write(unit);
        };
      };
      meanwhile(() => acceptDrift(context, actor, first, 'known'));
      const second = await check('a1', [moved('a')]);
      expect(await getDrift(context, second)).toMatchObject({ status: 'drifted', accepted: { reason: 'known' } });
      expect((await listed()).all).toEqual([]);
      meanwhile(() => unacceptDrift(context, actor, second));
      const third = await check('a1', [moved('a')]);
      expect(await getDrift(context, third)).toMatchObject({ accepted: null });
      expect((await listed()).all).toMatchObject([{ drift: [{ drift_id: third, accepted: null }] }]);
      meanwhile(() => acceptDrift(context, actor, third, 'known'));
      await apply('a1', [resultOf({ identity: '/elsewhere' })]);
      expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
      expect((await events('drift.unaccepted')).map(({ because }) => because)).toEqual(['operator', 'apply']);
      expect(await getDrift(context, third)).toMatchObject({ accepted: null });
    });

    test('keeps an accepted record regardless of its age, and deletes other old records', async () => {
      const { domain, context, actor, apply, check, listed } = await open('a1');
      await apply('a1');
      const former = await check('a1', [moved('a')]);
      const newest = await check('a1', [moved('a')]);
      domain.clock.advance(100 * 86_400_000);
      await pruneHistory(context, { driftDays: 90, operationDays: 0 });
      await expect(getDrift(context, former)).rejects.toMatchObject({ code: 'drift_not_found' });
      expect((await listed()).all).toMatchObject([{ reasons: ['drifted'], drift: [{ drift_id: newest }] }]);
      await acceptDrift(context, actor, newest, 'known');
      expect((await listed()).all).toEqual([]);
    });
  });

  test('drops findings from an assignment that no longer audits the agent', async () => {
    const { context, actor, apply, audit, listed } = await open('a1', 'a2');
    const hard = { name: 'hard', modules: ['m'], selector: 'group=a', mode: 'audit' as const };
    const results = [moved('a', { module: 'm', identity: '/f' })];
    for (const name of ['a1', 'a2']) await apply(name);
    for (const meanwhile of [
      () => updateAssignment(context, actor, 'hard', { selector: 'group=b' }),
      () => updateAssignment(context, actor, 'hard', { mode: 'enforce' }),
      () => removeAssignment(context, actor, 'hard'),
    ]) {
      await createAssignment(context, actor, hard);
      const id = await audit('a1', 'hard', results, meanwhile);
      expect(await getDrift(context, id)).toMatchObject({ status: 'drifted', trigger: 'audit' });
      expect((await listed({ include_accepted: true })).all).toEqual([]);
      await removeAssignment(context, actor, 'hard').catch(() => {});
    }
    // After its tags change, the assignment no longer matches this agent.
    await createAssignment(context, actor, hard);
    await audit('a1', 'hard', results);
    expect((await listed()).reasons).toEqual({ a1: ['drifted'] });
    await putOneTag(context, actor, 'a1', 'group', 'b');
    await audit('a2', 'hard', results);
    expect((await listed()).reasons).toEqual({ a2: ['drifted'] });
    // The drift remains when a module is added, and is cleared when the drifted module is removed.
    await uploadModule(context, actor, 'n', module.replace('name: m', 'name: n'));
    await updateAssignment(context, actor, 'hard', { modules: ['m', 'n'] });
    expect((await listed()).reasons).toEqual({ a2: ['drifted'] });
    await updateAssignment(context, actor, 'hard', { modules: ['n'] });
    expect((await listed()).all).toEqual([]);
  });

  test('counts an agent as in sync after an apply, before its first check', async () => {
    const { context, actor, apply } = await open('a1', 'a2');
    expect((await getOverview(context, actor.id)).desired_state).toMatchObject({ in_sync: 0, never_applied: 2 });
    const neverApplied = async (selector: string) =>
      (await neverAppliedMatching(context, requireSelector(selector, '/selector'))).length;
    expect([await neverApplied(''), await neverApplied('group=a'), await neverApplied('group=b')]).toEqual([2, 2, 0]);
    await apply('a1');
    expect([await neverApplied(''), await neverApplied('group=a')]).toEqual([1, 1]);
    await apply('a2', [resultOf({ status: 'failed' })], 'failed');
    expect((await getOverview(context, actor.id)).desired_state).toEqual({
      ...{ in_sync: 1, outdated: 0, accepted: 0, out_of_sync: 1, never_applied: 0 },
    });
  });

  test('summarizes drift in the overview', async () => {
    const { domain, context, actor, agents, apply, check } = await open('a1', 'a2', 'b1', 'b2', 'c1');
    await connect(domain, await newKey(), { hostname: 'new' });
    const rejected = await newAgent(domain, actor, 'gone');
    await setStatus(context, actor, rejected.id, { status: 'rejected' });
    domain.connected.delete(rejected.id);
    for (const name of ['a1', 'a2', 'b1', 'b2']) await apply(name);
    await check('a1', []);
    await check('a2', [moved('a')]);
    await acceptDrift(context, actor, await check('b1', [moved('a')]), 'known');
    await check('b2', [], 'failed');
    await apply('b2', [resultOf({ status: 'failed' })], 'failed');
    domain.connected.delete(agents.get('a1')?.id as string);
    const request = { kind: 'apply', modules: ['m'], queue: true } as const;
    await submitOperation(context, actor, 'c1', request);
    const at = (days: number) => new Date(domain.clock.now() + days * 86_400_000).toISOString();
    const secret = (name: string, expires?: string) =>
      createSecret(context, actor, {
        name,
        value: 'hunter22',
        ...(expires === undefined ? {} : { expires_at: Date.parse(expires) }),
      });
    await secret('past', at(1));
    domain.clock.advance(2 * 86_400_000);
    await secret('late', at(20));
    await secret('far', at(31));
    await secret('forever');
    expect(await getOverview(context, actor.id)).toEqual({
      as_of: domain.now(),
      agents: { pending: 1, rejected: 1, approved: 5, connected: 4, lost: 0 },
      drift: { in_sync: 1, drifted: 1, accepted: 1, failed: 1, unchecked: 1 },
      desired_state: { in_sync: 1, outdated: 0, accepted: 1, out_of_sync: 2, never_applied: 1 },
      off: { agents: 2, drifted: 1, drift_failed: 1, apply_failed: 1, unapplied: 1, pending_removals: 0 },
      runs_running: 0,
      operations: { queued: 1, running: 0 },
      secrets_expiring: [
        { name: 'past', expires_at: at(-1) },
        { name: 'late', expires_at: at(20) },
      ],
      unread_notifications: 0,
    });
  });
});
