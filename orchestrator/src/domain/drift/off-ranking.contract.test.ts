import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { type Key, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { withOverrides } from '../../store/database.ts';
import { setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { announcingEvents } from '../audit/announce-events.ts';
import { uploadModule } from '../modules/modules.ts';
import { submitOperation } from '../operations/operations.ts';
import type { Context } from '../shared/context.ts';
import { createOffRanking } from './off-ranking.ts';
import { listReconcile } from './reconcile.ts';

const module = 'name: m\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /f } } }]\n';
const names = ['a1', 'a2', 'a3', 'a4'] as const;

describeAnyDatabase('the pages of a walk over the agents that need attention', (fixture) => {
  /** Opens four agents whose last apply failed, and counts the queries that read all agents or match a selector. */
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    await uploadModule(domain.context, actor, 'm', module);
    const agents = new Map<string, Key>();
    const fail = async (name: string, status: 'failed' | 'succeeded' = 'failed') => {
      const agent = agents.get(name) as Key;
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      const id = await submitOperation(domain.context, actor, name, request);
      await domain.links.nextOperation(agent.id);
      const results = [resultOf({ status: status === 'failed' ? 'failed' : 'changed' })];
      const reports = reportsOf(id, results, { now: domain.now(), status });
      await domain.links.reported(agent.id, '01'.repeat(16), ++seq, reports);
      await domain.context.bus.delivered();
    };
    let seq = 0;
    for (const name of names) {
      agents.set(name, await newAgent(domain, actor, name));
      await putOneTag(domain.context, actor, name, 'group', 'a');
      await fail(name);
    }
    const counts = { ranked: 0, matched: 0 };
    const db = withOverrides(domain.context.db, {
      all: (query, params) => {
        if (query.name === 'reconcile/outdated') counts.ranked += 1;
        if (query.name === 'agents/for selectors') counts.matched += 1;
        return domain.context.db.all(query, params);
      },
      // On PostgreSQL, each elapsed second of real time would count as a change by another process.
      outsideChanges: () => 0,
    });
    const context: Context = { ...domain.context, db };
    const ranking = createOffRanking(context);
    const page = async (offset: number, request: { filter?: string; limit?: number } = {}) =>
      (await listReconcile(context, { limit: 1, ...request, offset }, ranking)).items.map(({ name }) => name);
    return { domain, actor, fail, counts, page, db };
  };

  test('shares one computation between pages while nothing changes', async () => {
    const { domain, counts, page } = await open();
    expect((await Promise.all([0, 1, 2, 3].map((offset) => page(offset)))).flat()).toEqual([...names]);
    domain.clock.advance(20_000);
    expect(await page(3)).toEqual(['a4']);
    expect(counts).toEqual({ ranked: 1, matched: 0 });
  });

  test('matches each agent against the selector once', async () => {
    const { counts, page } = await open();
    const walked = [];
    for (const offset of [0, 1, 2, 3]) walked.push(...(await page(offset, { filter: 'group=a' })));
    expect(walked).toEqual([...names]);
    expect(counts).toEqual({ ranked: 1, matched: 1 });
    expect(await page(1, { filter: 'group=b' })).toEqual([]);
    expect(counts).toEqual({ ranked: 1, matched: 2 });
  });

  test('returns a current first page, and later pages that are at most a second behind', async () => {
    const { domain, fail, counts, page } = await open();
    await page(0);
    await fail('a1', 'succeeded');
    expect(await page(3)).toEqual(['a4']);
    expect(counts.ranked).toBe(1);
    expect(await page(0)).toEqual(['a2']);
    expect(await page(2)).toEqual(['a4']);
    expect(counts.ranked).toBe(2);
    await fail('a2', 'succeeded');
    domain.clock.advance(1_000);
    expect(await page(1)).toEqual(['a4']);
    expect(counts.ranked).toBe(3);
  });

  test('updates the ranking after an upload, a tag, and the rejection of an agent', async () => {
    const { domain, actor, counts, page } = await open();
    const { clock, context: quiet } = domain;
    const context = { ...quiet, db: announcingEvents(quiet.db, quiet.bus) };
    await page(0);
    const changes = [
      () => uploadModule(context, actor, 'm', `# Newer.\n${module}`),
      () => putOneTag(context, actor, 'a1', 'group', 'b'),
      () => setStatus(context, actor, 'a4', { status: 'rejected' }),
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      await context.bus.delivered();
      clock.advance(1_000);
      await page(1);
      expect(counts.ranked).toBe(index + 2);
    }
    expect(await page(3)).toEqual([]);
  });

  test('starts a new computation after 30 seconds, and after another process may have written', async () => {
    const { domain, counts, page, db } = await open();
    await page(0);
    domain.clock.advance(30_000);
    await page(1);
    expect(counts.ranked).toBe(2);
    let outside = 0;
    const context = { ...domain.context, db: withOverrides(db, { outsideChanges: () => outside }) };
    const ranking = createOffRanking(context);
    const read = (offset: number) => listReconcile(context, { limit: 1, offset }, ranking);
    await read(0);
    domain.clock.advance(1_000);
    await read(1);
    expect(counts.ranked).toBe(3);
    outside = 1;
    await read(2);
    expect(counts.ranked).toBe(4);
  });

  test('starts a new computation after a failure', async () => {
    const { domain, page, db } = await open();
    let isDown = true;
    const context = {
      ...domain.context,
      db: withOverrides(db, {
        all: (query, params) => (isDown ? Promise.reject(new Error('the disk is gone')) : db.all(query, params)),
      }),
    };
    const ranking = createOffRanking(context);
    const read = (offset: number) => listReconcile(context, { limit: 1, offset }, ranking);
    await expect(read(0)).rejects.toThrow('the disk is gone');
    isDown = false;
    expect((await read(1)).items.map(({ name }) => name)).toEqual(await page(1));
  });
});
