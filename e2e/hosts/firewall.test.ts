import { applyAgent, type Operation, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { isSampling, sampled, seededRandom } from '../../lib/test/sampled.ts';
import { FairTime } from '../../tools/suite/fair-time.ts';
import { ended, eventually } from '../eventually.ts';
import type { Orchestrator } from '../harness.ts';
import { HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import { firewallsRoot } from './firewalls/firewalls-root.ts';
import type { Machine } from './machine.ts';
import { noHosts, test } from './test.ts';
import { TestHosts } from './test-hosts.ts';

const reason = noHosts();

/** Maximum milliseconds until a rule that cuts the agent's link is undone. */
const undoMs = 30_000;

/** `npm test` tests one firewall, selected at random. */
const firewalls = sampled(['nftables', 'ufw'] as const, 1, !isSampling(), seededRandom('firewall'));

describe.skipIf(reason !== null)(`firewall-rule${reason === null ? '' : ` (${reason})`}`, () => {
  if (firewalls.includes('nftables'))
    test("undoes a rule that cuts the agent's link, even if the agent is killed", async ({ hosts, stage }) => {
      const [machine, orchestrator, repository] = await Promise.all([
        hosts.start('web'),
        stage.orchestrator(),
        AptRepository.open(hosts),
      ]);
      await repository.use(machine);
      await machine.sh('apt-get -qq install --no-install-recommends nftables > /dev/null 2>&1');
      await repository.end();
      const listed = () => machine.sh('nft list ruleset');
      const { declare, order, before } = await expectUndone({ machine, orchestrator, hosts, listed });
      expect(before).toContain('tcp dport 22 accept comment "ssh"');

      // The rules survive a reboot. The last removal leaves nothing behind.
      expect(await machine.sh('systemctl restart muster-firewall; nft list ruleset')).toBe(before);
      await declare();
      expect(await orchestrator.call(applyAgent, order)).toMatchObject({ status: 'succeeded' });
      expect(
        await machine.sh('nft list ruleset; ls /etc/*muster-firewall* /etc/systemd/system | grep firewall || true'),
      ).toBe('');
    });

  if (firewalls.includes('ufw'))
    test("undoes a rule of ufw that cuts the agent's link, and moves rules when ufw is activated", async ({
      stage,
    }) => {
      const hosts = await TestHosts.open({ base: await firewallsRoot() });
      try {
        const [machine, orchestrator] = await Promise.all([hosts.start('ufw'), stage.orchestrator()]);
        await machine.sh('ufw --force enable; cp /etc/ufw/*.rules /run');
        const listed = () => machine.sh('iptables -S; ip6tables -S; cat /etc/ufw/user*.rules; ufw status numbered');
        const { declare, order, before } = await expectUndone({ machine, orchestrator, hosts, listed });
        expect(before).toMatch(/22\/tcp +ALLOW IN +Anywhere +# muster: ssh/);

        // ufw itself writes the same file, and loads the same rules.
        await machine.sh('ufw allow 1/tcp > /dev/null; ufw delete allow 1/tcp > /dev/null; ufw reload > /dev/null');
        expect(await listed()).toBe(before);

        await machine.sh('ufw disable > /dev/null');
        expect(await orchestrator.call(applyAgent, order)).toMatchObject({
          resources: [{ changes: [{ field: 'firewall', from: 'ufw', to: 'nftables' }] }],
        });
        expect(await machine.sh('nft list table inet muster')).toContain('tcp dport 22 accept comment "ssh"');
        await machine.sh('cmp /etc/ufw/user.rules /run/user.rules; ufw --force enable > /dev/null');
        expect(await orchestrator.call(applyAgent, order)).toMatchObject({
          resources: [{ changes: [{ field: 'firewall', from: 'nftables', to: 'ufw' }] }],
        });
        expect(await listed()).toBe(before);
        expect(await machine.sh('nft list tables')).not.toContain('muster');

        await declare();
        expect(await orchestrator.call(applyAgent, order)).toMatchObject({ status: 'succeeded' });
        await machine.sh('for f in user user6; do cmp /etc/ufw/$f.rules /run/$f.rules; done');
      } finally {
        await hosts.end();
      }
    });
});

interface Trial {
  machine: Machine;
  orchestrator: Orchestrator;
  hosts: TestHosts;
  /** Prints the rules in effect, with the names of their resources. */
  listed(): Promise<string>;
}

/** Installs an agent, applies a rule, and then twice a rule that cuts the agent's link. Returns the remaining rules. */
async function expectUndone({ machine, orchestrator, hosts, listed }: Trial) {
  const agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address);
  const declare = (...rules: object[]) =>
    orchestrator.call(uploadModule, {
      body: {
        name: 'firewall',
        content: JSON.stringify({
          name: 'firewall',
          supports: [{ platform: 'linux' }],
          resources: rules.map((rule) => ({ resource: { 'firewall-rule': rule } })),
        }),
      },
    });
  const order = { params: { node_id: machine.name }, body: { modules: ['firewall'] } };
  const isUndone = ({ status, resources }: Operation) => {
    expect(status).toBe('failed');
    expect(resources.map(({ message }) => message)).toContainEqual(expect.stringContaining("cut the agent's link"));
  };
  const cut = { name: 'cut', direction: 'out', action: 'drop', destination: [hosts.bridge.address] };
  const ssh = { name: 'ssh', ports: ['22'] };

  await declare(ssh);
  expect(await orchestrator.call(applyAgent, order)).toMatchObject({ status: 'succeeded' });
  const before = await listed();

  await declare(ssh, cut);
  const time = new FairTime();
  isUndone(await orchestrator.call(applyAgent, order));
  expect(time.elapsedMs()).toBeLessThan(undoMs);
  expect(await listed()).toBe(before);

  // Without the agent, only the timer can undo the rule.
  await machine.sh(
    "mkdir /run/systemd/system/muster-agent.service.d; printf '[Service]\\nRestart=no\\n' > /run/systemd/system/muster-agent.service.d/no.conf; systemctl daemon-reload",
  );
  const { operation_id } = await orchestrator.call(applyAgent, { ...order, respondAsync: true });
  await eventually('the rule is loaded', async () => ((await listed()) === before ? null : true));
  await agent.kill9();
  expect(await listed()).not.toBe(before);
  await eventually('the timer has undone the rule', async () => ((await listed()) === before ? true : null), undoMs);

  // The agent resumes the operation and reports the same result.
  await agent.start();
  isUndone(await ended(orchestrator.call, operation_id));
  expect(await listed()).toBe(before);
  await declare(ssh);
  return { declare, order, before };
}
