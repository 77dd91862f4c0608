import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { withOverrides } from '../../store/database.ts';
import { uploadModule } from '../modules/modules.ts';
import { cancelOperation } from '../operation-end/cancellation.ts';
import type { Context } from '../shared/context.ts';
import { createIds } from '../shared/ids.ts';
import { submitOperation } from './operations.ts';

const motd = `name: motd
supports: [{ platform: linux }]
resources:
  - id: motd
    resource: { file-unix: { path: /etc/motd, content: "hi" } }
`;

describeDatabases('operations of processes whose clocks differ', (fixture) => {
  async function open() {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    await uploadModule(context, actor, 'motd', motd);
    const processAhead = (ms: number): Context => ({ ...context, ...createIds(() => context.now() + ms) });
    const submit = (at: Context) =>
      submitOperation(at, actor, 'web-1', { kind: 'plan', modules: ['motd'], queue: true, ttl: undefined });
    return { domain, actor, agent, processAhead, submit };
  }

  const inRequestedOrder = async () => {
    const { domain, actor, processAhead, submit } = await open();
    const aheads = fc.array(fc.integer({ min: -3_600_000, max: 3_600_000 }), { minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(aheads, async (ahead) => {
        const processes = ahead.map(processAhead);
        const ids: string[] = [];
        for (const at of [...processes, ...processes]) ids.push(await submit(at));
        expect(ids).toEqual([...ids].sort());
        for (const id of ids) await cancelOperation(domain.context, actor, id);
      }),
      { numRuns: 5 },
    );
  };
  // Several processes never share a SQLite database.
  if (fixture.kind === 'postgres') test('runs operations in the order in which they were requested', inRequestedOrder);

  test('runs operations one at a time, even if the newer of two concurrent operations is dispatched first', async () => {
    const { domain, agent, processAhead, submit } = await open();
    const { links, db } = domain;
    const newer = await submit(processAhead(60_000));
    const next = async () => (await links.nextOperation(agent.id))?.operation.operation_id;
    expect(await next()).toBe(newer);
    // Does not see the other operation, as if both were queued at the same time.
    const older = await submit({ ...processAhead(0), db: withOverrides(db, { kind: 'sqlite' }) });
    expect(older < newer).toBe(true);
    expect(await next()).toBeUndefined();
    const instance = '01'.repeat(16);
    const [accepted, ...rest] = reportsOf(newer, [resultOf()], { now: domain.now() });
    await links.reported(agent.id, instance, 1, [accepted!]);
    expect(await next()).toBeUndefined();
    await links.reported(agent.id, instance, 2, rest);
    expect(await next()).toBe(older);
  });

  test('runs operations in the order of their requests if the dispatch of the newer one was lost', async () => {
    const { domain, agent, processAhead, submit } = await open();
    const { links, db } = domain;
    const newer = await submit(processAhead(60_000));
    await links.nextOperation(agent.id);
    const older = await submit({ ...processAhead(0), db: withOverrides(db, { kind: 'sqlite' }) });
    // The agent reconnects, and has no record of the operation.
    await connect(domain, agent);
    expect((await links.nextOperation(agent.id))?.operation.operation_id).toBe(older);
    expect(newer > older).toBe(true);
  });
});
