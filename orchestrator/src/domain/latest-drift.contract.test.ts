import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { type Domain, type Key, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../test/domain.ts';
import { removeAgent, setStatus } from './agents/agents.ts';
import { putOneTag } from './agents/tags.ts';
import { listLatestDrift, submitDriftCheck } from './drift/drift.ts';
import { uploadModule } from './modules/modules.ts';
import { submitOperation } from './operations/operations.ts';

const module = 'name: m\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /f } } }]\n';

describeAnyDatabase('the latest drift of each agent', (fixture) => {
  let seq = 0;
  const report = ({ links, now }: Domain, agent: Key, id: string, drifted: boolean) =>
    links.reported(
      agent.id,
      '01'.repeat(16),
      ++seq,
      reportsOf(id, drifted ? [resultOf({ status: 'would_change' })] : [], { now: now() }),
    );
  const open = async (names: string[]) => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    await uploadModule(context, actor, 'm', module);
    const agents = new Map<string, Key>();
    for (const name of names) {
      const agent = await newAgent(domain, actor, name);
      agents.set(name, agent);
      await putOneTag(context, actor, name, 'group', name[0] as string);
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      const operation = await submitOperation(context, actor, name, request);
      await domain.links.nextOperation(agent.id);
      await report(domain, agent, operation, false);
    }
    const check = async (name: string, drifted: boolean) => {
      const agent = agents.get(name) as Key;
      const id = await submitDriftCheck(context, actor, name, 'schedule');
      await domain.links.nextOperation(agent.id);
      await report(domain, agent, id, drifted);
    };
    const nameOf = new Map([...agents].map(([name, { id }]) => [id, name]));
    const listed = async (filter: Partial<Parameters<typeof listLatestDrift>[1]> = {}) => {
      const { items, more } = await listLatestDrift(context, { limit: 50, offset: 0, ...filter });
      return [items.map(({ node_id, status }) => `${nameOf.get(node_id)} ${status}`), more];
    };
    return { domain, context, actor, agents, check, listed };
  };

  test('lists each agent’s latest record, newest first, filtered by status and selector', async () => {
    const { check, listed } = await open(['a1', 'a2', 'b1']);
    expect(await listed()).toEqual([[], false]);
    await check('a1', true);
    await check('a2', true);
    await check('b1', false);
    await check('a1', false);
    expect(await listed()).toEqual([['a1 in_sync', 'b1 in_sync', 'a2 drifted'], false]);
    expect(await listed({ status: 'drifted' })).toEqual([['a2 drifted'], false]);
    expect(await listed({ filter: 'group=a' })).toEqual([['a1 in_sync', 'a2 drifted'], false]);
    expect(await listed({ filter: 'group=a', status: 'in_sync' })).toEqual([['a1 in_sync'], false]);
    expect(await listed({ filter: '' })).toEqual(await listed());
    expect(await listed({ limit: 2 })).toEqual([['a1 in_sync', 'b1 in_sync'], true]);
    expect(await listed({ limit: 2, offset: 2 })).toEqual([['a2 drifted'], false]);
    expect(await listed({ filter: 'group=a', limit: 1 })).toEqual([['a1 in_sync'], true]);
    expect(await listed({ filter: 'group=a', limit: 1, offset: 1 })).toEqual([['a2 drifted'], false]);
    expect(await listed({ limit: 0 })).toEqual([[], false]);
    await expect(listed({ filter: '=' })).rejects.toMatchObject({ code: 'selector_invalid' });
  });

  test('deletes records together with their agent', async () => {
    const { context, actor, agents, check, listed } = await open(['a1', 'a2']);
    await check('a1', true);
    await check('a2', true);
    const { id } = agents.get('a1') as Key;
    await setStatus(context, actor, id, { status: 'rejected' });
    await removeAgent(context, actor, id);
    expect(await listed()).toEqual([['a2 drifted'], false]);
  });
});
