import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { helloOf, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { getOperation } from '../../../test/reading.ts';
import { withOverrides } from '../../store/database.ts';
import { fromJson } from '../../store/json-text.ts';
import { agentById } from '../../store/queries/agents/agents.ts';
import { uploadModule } from '../modules/modules.ts';
import { cancelOperation } from '../operation-end/cancellation.ts';
import { submitOperation } from '../operations/operations.ts';
import { createAgentLinks } from './agent-link-service.ts';

const motd = `name: motd
supports: [{ platform: linux }]
resources:
  - id: motd
    resource: { file-unix: { path: /etc/motd, content: "hi" } }
`;
const instance = '01'.repeat(16);
const attributes = { platform: 'linux', hostname: 'moved' };

const processes = 3;
const process = fc.nat({ max: processes - 1 });
const does = fc.constantFrom('admit', 'submit', 'dispatch', 'report', 'describe');
const action = fc.record({ does, process });

async function open(fixture: Parameters<Parameters<typeof describeDatabases>[1]>[0]) {
  const domain = await openDomain(fixture);
  const { context, refusals, pending, liveOutput, rules } = domain;
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await uploadModule(context, actor, 'motd', motd);
  const linksOf = (incarnation: string, db = context.db) =>
    createAgentLinks({ ...context, db, incarnation }, refusals, pending, async () => {}, liveOutput, rules);
  const admit = (links: ReturnType<typeof linksOf>, open_operations: string[] = []) =>
    links.admit(
      helloOf(agent, { open_operations: open_operations.map((operation_id) => ({ operation_id, state: 'running' })) }),
      { node_id: agent.id, valid_until: null, succession: null, remote_ip: '192.0.2.7', now: domain.now() },
    );
  const submit = () =>
    submitOperation(context, actor, 'web-1', { kind: 'apply', modules: ['motd'], queue: true, ttl: undefined });
  const statusOf = async (id: string) => (await getOperation(context, id)).status;
  return { domain, context, actor, agent, linksOf, admit, submit, statusOf };
}

describeDatabases('links of several processes', (fixture) => {
  test('dispatches operations and accepts reports only in the process that admitted the agent last', async () => {
    const { context, actor, agent, linksOf, admit, submit, statusOf, domain } = await open(fixture);
    let seq = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
        const all = Array.from({ length: processes }, (_, index) => linksOf(`process-${index}`));
        let owner = 0;
        let waits: string | null = null;
        let dispatched: string | null = null;
        await admit(all[owner]!);
        for (const { does, process } of actions) {
          const links = all[process]!;
          if (does === 'admit') {
            await admit(links, dispatched === null ? [] : [dispatched]);
            owner = process;
          } else if (does === 'submit') {
            if (waits === null && dispatched === null) waits = await submit();
          } else if (does === 'dispatch') {
            const next = await links.nextOperation(agent.id);
            if (waits === null || dispatched !== null) continue;
            expect(next?.operation.operation_id).toBe(process === owner ? waits : undefined);
            if (process === owner) [dispatched, waits] = [waits, null];
          } else if (does === 'report') {
            if (dispatched === null) continue;
            const reports = reportsOf(dispatched, [resultOf()], { now: domain.now() });
            const refusal = await links.reported(agent.id, instance, ++seq, reports);
            expect(refusal === null).toBe(process === owner);
            expect(await statusOf(dispatched)).toBe(process === owner ? 'succeeded' : 'queued');
            if (process === owner) dispatched = null;
          } else await links.attributesChanged(agent.id, attributes);
        }
        for (const id of [waits, dispatched]) if (id !== null) await cancelOperation(context, actor, id);
        await admit(all[owner]!);
      }),
      { numRuns: 12 },
    );
  });

  test('keeps the state recorded by the last process that admitted the agent', async () => {
    const { context, agent, linksOf, admit, submit, statusOf } = await open(fixture);
    const [former, next] = [linksOf('former'), linksOf('next')];
    await admit(former);
    const id = await submit();
    await former.nextOperation(agent.id);
    await former.reported(agent.id, instance, 1, [{ type: 'accepted', operation_id: id }]);
    let passes = true;
    const db = withOverrides(context.db, {
      async all(query, params) {
        const rows = await context.db.all(query, params);
        if (query.name === 'operations/open' && passes) {
          passes = false;
          await admit(next, [id]);
        }
        return rows;
      },
    });
    // This hello does not list the open operation. It would end the operation if no other process had admitted the
    // agent.
    await admit(linksOf('former', db), []);
    expect(await statusOf(id)).toBe('running');
    await former.attributesChanged(agent.id, attributes);
    const row = await context.db.get(agentById, { node_id: agent.id });
    expect(fromJson(row!.attributes)).not.toEqual(attributes);
  });
});
