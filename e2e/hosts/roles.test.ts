import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyAgent,
  checkDrift,
  createAssignment,
  createSecret,
  planAgent,
  removeAssignment,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { sampled } from '../../lib/test/sampled.ts';
import { blocksOf } from '../../tools/docs/markdown.ts';
import { root } from '../../tools/suite/cli.ts';
import { type Orchestrator, Stage } from '../harness.ts';
import { HostAgent } from './agent.ts';
import type { PoolName } from './apt/pool.ts';
import { AptRepository } from './apt-repository.ts';
import { expectPlan } from './expect-plan.ts';
import { recipesRoot } from './recipes-root.ts';
import { roles, staysAlways } from './roles.ts';
import { noHosts } from './test.ts';
import { TestHosts } from './test-hosts.ts';

const reason = noHosts();
const folder = join(root, 'examples/roles');
/** Test hosts share the swap of the machine that runs the tests. The kind `swap` is tested with stand-ins for its programs. */
const notApplied = ['swapfile'];

test('a machine can apply every module in examples/roles except swapfile', () => {
  const files = readdirSync(folder).flatMap((file) => (file.endsWith('.yml') ? [file.replace('.yml', '')] : []));
  expect([...roles.map(({ name }) => name), ...notApplied].sort()).toEqual(files.sort());
});

describe.skipIf(reason !== null)(`the modules of examples/roles${reason === null ? '' : ` (${reason})`}`, () => {
  const stage = new Stage();
  let hosts: TestHosts;
  let orchestrator: Orchestrator;
  const repositories: AptRepository[] = [];
  const started = new Map<string, Promise<HostAgent>>();

  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await recipesRoot() });
    orchestrator = await stage.orchestrator();
  });

  afterAll(async () => {
    for (const repository of repositories) await repository.end();
    await hosts?.end();
    await stage.end();
  });

  async function start(name: string, pool: PoolName): Promise<HostAgent> {
    const [machine, repository] = await Promise.all([hosts.start(name), AptRepository.open(hosts, pool)]);
    repositories.push(repository);
    await repository.use(machine);
    await machine.sh(`echo 127.0.0.1 localhost ${name} > /etc/hosts`);
    return await HostAgent.install(machine, orchestrator, hosts.bridge.address, { tags: { role: name } });
  }

  /** Returns the machine with this name and its agent. Starts it at the first call. */
  const host = (name: string, pool: PoolName): Promise<HostAgent> => {
    const agent = started.get(name) ?? start(name, pool);
    started.set(name, agent);
    return agent;
  };

  test.each(sampled(roles, 1, process.env.MUSTER_EVERY_ROLE !== undefined))(
    'a machine applies $name as planned, and its removal leaves nothing behind',
    async ({ name, pool, prepare = '', parameters, secrets = {}, shows, expected, stays = [] }) => {
      // A large service keeps its data, so it does not share its machine with other modules.
      const hostname = pool === undefined ? 'roles' : name;
      const agent = await host(hostname, pool ?? 'roles');
      const { machine } = agent;
      onTestFailed(async () => {
        console.error(stage.report(), await agent.log(), await machine.sh('journalctl --no-pager --lines 100'));
        // The next module is applied without this one.
        await orchestrator.call(removeAssignment, { params: { name } }).catch(() => {});
        await apply().catch(() => {});
      });
      const params = { node_id: agent.nodeId };
      const apply = () => orchestrator.call(applyAgent, { params, body: { modules: [] } });
      await machine.sh(prepare);
      const before = machine.changes();
      for (const [secret, value] of Object.entries(secrets))
        await orchestrator.call(createSecret, { body: { name: secret, value } });
      const content = readFileSync(join(folder, `${name}.yml`), 'utf8');
      await orchestrator.call(uploadModule, { body: { name, content } });
      const body = { name, modules: [name], selector: `role=${hostname}`, parameters: { [name]: parameters } };
      await orchestrator.call(createAssignment, { body });
      const planned = await orchestrator.call(planAgent, { params, body: { modules: [] } });
      expect(planned).toMatchObject({ status: 'succeeded', error: null });
      expect(await apply()).toMatchObject({ status: 'succeeded', error: null });
      expect(await machine.sh(shows)).toBe(expected);
      expect((await apply()).summary).toMatchObject({ changed: 0, removed: 0, failed: 0 });
      expect(await orchestrator.call(checkDrift, { params })).toMatchObject({ status: 'in_sync' });

      await orchestrator.call(removeAssignment, { params: { name } });
      const removed = await apply();
      expect(removed).toMatchObject({ status: 'succeeded', error: null });
      const after = machine.changes();
      const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])];
      const left = paths.filter((path) => after[path] !== before[path]);
      const reports = removed.resources.map(({ identity, message }) => `${identity}: ${message ?? ''}`).join('\n');
      const unexpected = left.filter((path) => ![...staysAlways, ...stays].some((pattern) => pattern.test(path)));
      expect(unexpected, reports).toEqual([]);
      if (pool !== undefined) await machine.end();
    },
  );

  test('a machine plans every module in docs/rewriting-a-role.md', async () => {
    const agent = await host('roles', 'roles');
    onTestFailed(async () => console.error(stage.report(), await agent.log()));
    for (const { source } of blocksOf(readFileSync(join(root, 'docs/rewriting-a-role.md'), 'utf8'))) {
      const name = /^name: (.*)$/m.exec(source)?.[1];
      if (name === undefined) continue;
      await orchestrator.call(uploadModule, { body: { name, content: source } });
      await expectPlan(orchestrator, agent.nodeId, name);
    }
  });
});
