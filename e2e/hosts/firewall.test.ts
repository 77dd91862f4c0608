import { applyAgent, type Operation, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ended, eventually } from '../eventually.ts';
import { HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

/** Milliseconds within which a rule that cuts the agent's link is undone. */
const undoMs = 30_000;

describe.skipIf(reason !== null)(`firewall-rule${reason === null ? '' : ` (${reason})`}`, () => {
  test("undoes a rule that cuts the agent's link, even if the agent is killed", async ({ hosts, stage }) => {
    const [machine, orchestrator, repository] = await Promise.all([
      hosts.start('web'),
      stage.orchestrator(),
      AptRepository.open(hosts),
    ]);
    await repository.use(machine);
    await machine.sh('apt-get -qq install --no-install-recommends nftables > /dev/null 2>&1');
    await repository.end();
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
    const order = { params: { node_id: 'web' }, body: { modules: ['firewall'] } };
    const listed = () => machine.sh('nft list ruleset');
    const expectUndone = ({ status, resources }: Operation) => {
      expect(status).toBe('failed');
      expect(resources.map(({ message }) => message)).toContainEqual(expect.stringContaining("cut the agent's link"));
    };
    const cut = { name: 'cut', direction: 'out', action: 'drop', destination: [hosts.bridge.address] };
    const ssh = { name: 'ssh', ports: ['22'] };

    await declare(ssh);
    expect(await orchestrator.call(applyAgent, order)).toMatchObject({ status: 'succeeded' });
    const before = await listed();
    expect(before).toContain('tcp dport 22 accept comment "ssh"');

    await declare(ssh, cut);
    const started = Date.now();
    expectUndone(await orchestrator.call(applyAgent, order));
    expect(Date.now() - started).toBeLessThan(undoMs);
    expect(await listed()).toBe(before);

    // Without the agent, only the timer can undo the rule.
    await machine.sh(
      "mkdir /run/systemd/system/muster-agent.service.d; printf '[Service]\\nRestart=no\\n' > /run/systemd/system/muster-agent.service.d/no.conf; systemctl daemon-reload",
    );
    const { operation_id } = await orchestrator.call(applyAgent, { ...order, respondAsync: true });
    await eventually('the rule is loaded', async () => ((await listed()).includes('"cut"') ? true : null));
    await agent.kill9();
    const killed = Date.now();
    expect(await listed()).toContain('"cut"');
    await eventually('the timer has undone the rule', async () => ((await listed()) === before ? true : null));
    expect(Date.now() - killed).toBeLessThan(undoMs);

    // The agent resumes the operation and reports the same result.
    await agent.start();
    expectUndone(await ended(orchestrator.call, operation_id));
    expect(await listed()).toBe(before);

    // The rules survive a reboot. The last removal leaves nothing behind.
    expect(await machine.sh('systemctl restart muster-firewall; nft list ruleset')).toBe(before);
    await declare();
    expect(await orchestrator.call(applyAgent, order)).toMatchObject({ status: 'succeeded' });
    expect(
      await machine.sh('nft list ruleset; ls /etc/*muster-firewall* /etc/systemd/system | grep firewall || true'),
    ).toBe('');
  });
});
