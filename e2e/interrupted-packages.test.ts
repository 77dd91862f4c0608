import { applyAgent, listAgentOperations, uploadModule } from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { ended, eventually } from './eventually.ts';
import type { HostAgent } from './hosts/agent.ts';
import { Fleet } from './hosts/fleet.ts';
import { noHosts } from './hosts/test.ts';

/**
 * Tests that a package transaction completes even if the agent exits in the meantime, so that no package remains half
 * configured.
 */

const reason = noHosts();

/**
 * Ways to interrupt the agent while a package is being configured. The agent is running again afterwards, and the package
 * may finish.
 */
const ends: Record<string, (agent: HostAgent) => Promise<void>> = {
  async restarted(agent) {
    await agent.machine.exec('systemctl', 'restart', 'muster-agent');
    expect(await configuring(agent)).toBe(true);
    await finish(agent);
  },
  async stopped(agent) {
    await agent.stop();
    expect(await configuring(agent)).toBe(true);
    await finish(agent);
    await eventually('the package is configured although the agent is stopped', async () =>
      (await configuring(agent)) ? null : true,
    );
    expect(await agent.machine.exec('cat', '/var/lib/sample-slow')).toBe('configured\n');
    await agent.start();
  },
  async killed(agent) {
    await agent.kill9();
    expect(await configuring(agent)).toBe(true);
    await finish(agent);
  },
};

/** `npm test` selects one way at random; `npm run soak -- kill-steps` tests all. */
const ways = sampled(Object.keys(ends), 1);

/** Lets the slow package finish its configuration. */
const finish = ({ machine }: HostAgent) => machine.sh('rm /etc/sample-hold');

/** Reports whether the slow package is being configured. */
async function configuring({ machine }: HostAgent): Promise<boolean> {
  const status = await machine.run(['pgrep', '--full', 'sample-slow.postinst']);
  return status.code === 0;
}

describe.skipIf(reason !== null)(`package transactions${reason === null ? '' : ` (${reason})`}`, () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const machines = Object.fromEntries(ways.map((name) => [name, {}]));
    fleet = await Fleet.open({ machines, packages: true });
    const packages = ['sample-plain', 'sample-slow', 'sample-dependent'];
    const resources = packages.map((name) => ({ id: name, resource: { 'package-apt': { name, hold: true } } }));
    const content = JSON.stringify({ name: 'slow', supports: [{ platform: 'linux' }], resources });
    await fleet.orchestrator.call(uploadModule, { body: { name: 'slow', content } });
  });
  afterAll(() => fleet?.end());

  test.concurrent.for(ways)(
    'a package transaction completes when the agent is %s, and the agent reports its result',
    async (end, { onTestFailed, expect }) => {
      onTestFailed(async () => console.error(await fleet.report()));
      const { call } = fleet.orchestrator;
      const agent = fleet.agent(end);
      const { machine, nodeId: node_id } = agent;
      const params = { node_id };
      const before = machine.changes();
      await machine.sh('echo 0 > /etc/sample-slow; touch /etc/sample-hold');
      const accepted = await call(applyAgent, { params, body: { modules: ['slow'] }, respondAsync: true });
      await eventually('the slow package is being configured', async () => ((await configuring(agent)) ? true : null));
      await ends[end]?.(agent);
      const operation = await ended(call, accepted.operation_id);
      expect(operation, JSON.stringify(operation)).toMatchObject({
        status: 'succeeded',
        summary: { total: 3, changed: 3 },
      });
      const { operations } = await call(listAgentOperations, { params, query: {} });
      expect(operations).toHaveLength(1);
      expect(await machine.sh('dpkg --audit; cat /var/lib/sample-slow')).toBe('configured\n');
      expect(await machine.sh('apt-mark showhold')).toBe('sample-dependent\nsample-plain\nsample-slow\n');

      const again = await call(applyAgent, { params, body: { modules: ['slow'] } });
      expect(again).toMatchObject({ status: 'succeeded', summary: { total: 3, unchanged: 3 } });
      await machine.sh('rm /etc/sample-slow');
      const removed = await call(applyAgent, { params, body: { modules: [] } });
      expect(removed, JSON.stringify(removed)).toMatchObject({
        status: 'succeeded',
        summary: { total: 3, removed: 3 },
      });
      expect(machine.changes()).toEqual(before);
    },
  );
});
