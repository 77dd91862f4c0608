import { expect, test } from 'vitest';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { type Database, withOverrides } from '../../store/database.ts';
import { agentsByIds } from '../../store/queries/agents/agents.ts';
import { putTag } from '../../store/queries/agents/tags.ts';
import { statement } from '../../store/transaction.ts';
import { AgentRecords } from '../shared/agent-records.ts';
import type { Context } from '../shared/context.ts';
import { agentsInTurns, getAgent, getAgentJson, listAgentPage, removeAgent, setStatus } from './agents.ts';
import { deleteOneTag, putOneTag, putTags } from './tags.ts';

/** Milliseconds within which writes by other processes must become visible. */
const cacheMs = 20;

/** Opens a domain whose process has the database to itself and may therefore cache rows. */
async function openAlone(fixture: DatabaseFixture, rows = 60_000) {
  const at: { database: Database | null; statements: number } = { database: null, statements: 0 };
  const fail = (error: Error) => {
    throw error;
  };
  const domain = await openDomain({
    ...fixture,
    open: async () => {
      const database = await fixture.open({ lock: { replica: null, onTaken: fail }, cacheMs: rows });
      at.database = database;
      const counted = <T>(work: T): T => {
        at.statements++;
        return work;
      };
      return withOverrides(database, {
        get: (query, params) => counted(database.get(query, params)),
        all: (query, params) => counted(database.all(query, params)),
      });
    },
  });
  return { domain, at };
}

const read = async (context: Context, idOrName: string) => JSON.parse(String(await getAgentJson(context, idOrName)));

async function listed(context: Context) {
  const { items } = await listAgentPage(context, {}, { limit: 100, offset: 0 });
  const all: unknown[] = [];
  for await (const part of agentsInTurns(context, {})) all.push(...part.map((json) => JSON.parse(String(json))));
  return { page: items.map((json) => JSON.parse(String(json))), all };
}

describeAnyDatabase('agents in memory', (fixture) => {
  test('shows every change to an agent once the write has returned', async () => {
    const { domain } = await openAlone(fixture);
    const { context, links } = domain;
    const { actor } = await newAdmin(domain);
    const key = await newAgent(domain, actor, 'web-1');
    const { id } = key;
    const changes: [string, () => unknown][] = [
      ['tag', () => putOneTag(context, actor, id, 'role', 'wéb')],
      ['tags', () => putTags(context, actor, 'web-1', { site: 'paris', role: 'db' })],
      ['removed tag', () => deleteOneTag(context, actor, id, 'site')],
      ['attributes', () => links.attributesChanged(id, { kernel: '6.18', hostname: 'wéb-1' })],
      ['last contact', () => domain.clock.advance(5_000)],
      ['disconnection', () => domain.connected.delete(id)],
      ['recorded disconnection', () => links.closed(id, 'gone', domain.now())],
      ['connection of a newer agent', () => connect(domain, key, { agent_version: '9.9.9', pin_source: 'first_use' })],
      ['rejection', () => setStatus(context, actor, id, { status: 'rejected' })],
      ['approval', () => setStatus(context, actor, id, { status: 'approved' })],
    ];
    await read(context, id);
    for (const [name, change] of changes) {
      const before = await read(context, id);
      expect(context.agentRecords.find(id), name).toBeDefined();
      await listed(context);
      await change();
      const after = await getAgent(context, id);
      if (name !== 'recorded disconnection') expect(after, name).not.toEqual(before);
      expect(await read(context, id), name).toEqual(after);
      expect(await listed(context), name).toEqual({ page: [after], all: [after] });
      if (after.status === 'approved') expect(await read(context, 'web-1'), name).toEqual(after);
      else await expect(read(context, 'web-1')).rejects.toMatchObject({ code: 'agent_not_found' });
    }
    const second = await newAgent(domain, actor, 'web-2');
    expect((await listed(context)).page.map(({ node_id }) => node_id)).toEqual([id, second.id].sort());
    await setStatus(context, actor, id, { status: 'rejected' });
    await read(context, id);
    await removeAgent(context, actor, id);
    await expect(read(context, id)).rejects.toMatchObject({ code: 'agent_not_found' });
    expect((await listed(context)).page).toMatchObject([{ name: 'web-2' }]);
  });

  test('reads unchanged agents without executing a statement', async () => {
    const { domain, at } = await openAlone(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { id } = await newAgent(domain, actor, 'web-1');
    await newAgent(domain, actor, 'web-2');
    const page = () => listAgentPage(context, {}, { limit: 1, offset: 1 });
    await listed(context);
    await page();
    at.statements = 0;
    await Promise.all([read(context, id), read(context, 'web-1'), page()]);
    expect(at.statements).toBe(0);
    await putOneTag(context, actor, id, 'role', 'web');
    at.statements = 0;
    await page();
    await read(context, id);
    await read(context, id);
    expect(at.statements).toBe(1);
  });

  test('does not cache a record that was read before a change', async () => {
    const { domain } = await openAlone(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { id } = await newAgent(domain, actor, 'web-1');
    let done = () => {};
    const slow = new Promise<void>((resolve) => {
      done = resolve;
    });
    // The rows arrive after the write has returned.
    const old = context.agentRecords.read(async () => {
      const rows = await domain.db.all(agentsByIds, { ids: [id] });
      await slow;
      return rows;
    });
    await putOneTag(context, actor, id, 'role', 'web');
    done();
    await old;
    expect((await read(context, id)).tags).toEqual({ role: 'web' });
  });

  test('shows writes by another process', async () => {
    const location = await fixture.newAddress();
    const { domain } = await openAlone(
      { ...fixture, open: (options) => fixture.open({ ...options, at: location }) },
      cacheMs,
    );
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { id } = await newAgent(domain, actor, 'web-1');
    const other = await fixture.open({ at: location });
    const tags = async () => [(await read(context, id)).tags, (await listed(context)).page[0].tags];
    const put = (value: string) =>
      other.write({ name: 'tags/other', statements: [statement(putTag, { node_id: id, key: 'by', value })] });
    expect(await tags()).toEqual([{}, {}]);
    await put('other');
    await expect.poll(tags).toEqual([{ by: 'other' }, { by: 'other' }]);
    // A write by this process does not hide a write by another process.
    await put('again');
    await putOneTag(context, actor, id, 'role', 'web');
    await expect.poll(tags).toEqual([
      { by: 'again', role: 'web' },
      { by: 'again', role: 'web' },
    ]);
  });

  test('limits the size of all cached records in bytes', async () => {
    const { domain } = await openAlone(fixture);
    const { actor } = await newAdmin(domain);
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push((await newAgent(domain, actor, `web-${n}`)).id);
    const one = (await domain.context.agentRecords.load(ids))[0]!.bytes;
    const records = new AgentRecords(domain.db, Math.floor(2.5 * one));
    expect((await records.load(ids)).map(({ nodeId }) => nodeId)).toEqual(ids);
    expect(ids.filter((id) => records.find(id) !== undefined)).toHaveLength(2);
    // The page includes changes to agents whose records were evicted.
    const page = async () =>
      (await records.page('all', () => domain.db.all(agentsByIds, { ids }))).map((record) =>
        JSON.parse(String(record.json(null))),
      );
    await page();
    for (const node_id of ids)
      await records.db.write({
        name: 'tags/one',
        statements: [statement(putTag, { node_id, key: 'role', value: 'web' })],
      });
    expect((await page()).map(({ tags }) => tags)).toEqual(ids.map(() => ({ role: 'web' })));
  });

  test('caches one record of an agent for all pages that contain it', async () => {
    const { domain } = await openAlone(fixture);
    const { actor } = await newAdmin(domain);
    const { id } = await newAgent(domain, actor, 'web-1');
    const records = new AgentRecords(domain.db);
    const page = (key: string) => records.page(key, () => domain.db.all(agentsByIds, { ids: [id] }));
    await page('first');
    await page('second');
    for (const key of ['first', 'second']) expect((await page(key))[0]).toBe(records.find(id));
  });
});
