import { applyAgent, getAgent, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { HostAgent } from './agent.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

describe.skipIf(reason !== null)(`facts of a real machine${reason === null ? '' : ` (${reason})`}`, () => {
  test('facts match the machine’s tools and are updated over an open link, and `verify` checks them after an apply', async ({
    hosts,
    stage,
  }) => {
    const [machine, orchestrator] = await Promise.all([hosts.start('facts'), stage.orchestrator()]);
    const flags = ['--facts-dir', '/etc/muster/facts.d'];
    const agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address, { flags });
    const params = { node_id: agent.nodeId };
    const now = () => orchestrator.call(getAgent, { params });
    const said = async (command: string): Promise<string> => (await machine.sh(command)).trim();
    const { attributes, connected_at } = await now();
    const kib = Number(await said("awk '/^MemTotal/ {print $2}' /proc/meminfo"));
    expect(attributes).toMatchObject({
      platform: (await said('uname -s')).toLowerCase(),
      distro: await said('. /etc/os-release; echo "$ID"'),
      version: await said('. /etc/os-release; echo "$VERSION_ID"'),
      arch: await said('uname -m'),
      init_system: await said('ps -p 1 -o comm='),
      hostname: await said('hostnamectl hostname'),
      kernel: await said('uname -r'),
      cpus: await said('getconf _NPROCESSORS_ONLN'),
      memory_bytes: String(kib * 1024),
      virtualization: await said('systemd-detect-virt || true'),
      timezone: await said('timedatectl show --property=Timezone --value'),
      family: 'debian',
      major: await said('. /etc/os-release; echo "${VERSION_ID%%.*}"'),
      codename: await said('. /etc/os-release; echo "$VERSION_CODENAME"'),
      systemd_version: (await said('systemctl --version')).split(' ')[1],
      addresses: await said(`hostname -I | tr ' ' '\\n' | grep -v : | grep . | paste -sd,`),
      container: 'true',
    });

    const of = (key: string) => async () => (await now()).attributes[key];
    await machine.sh('mkdir -p /etc/muster/facts.d; echo "rack: { row: 4 }" > /etc/muster/facts.d/site.yaml');
    await expect.poll(of('rack.row')).toBe('4');
    // The agent sends facts at most every five seconds, so these changes are delayed.
    const program = '#!/bin/sh\\necho "motd: $(cat /etc/motd)"\\n';
    await machine.sh(`cd /etc/muster/facts.d; printf '${program}' > .p; chmod 755 .p; mv .p p; echo a > /etc/motd`);
    await machine.sh('echo "rack: { row: 5 }" > /etc/muster/facts.d/site.yaml');
    await machine.sh('timedatectl set-timezone Asia/Tokyo; hostnamectl set-hostname renamed');
    await expect
      .poll(async () => (await now()).attributes)
      .toMatchObject({ 'rack.row': '5', motd: 'a', timezone: 'Asia/Tokyo', hostname: 'renamed' });

    // No file in the facts directory changes, so only the apply can make the agent collect the facts again.
    const content = JSON.stringify({
      name: 'motd',
      supports: [{ platform: 'linux' }],
      resources: [{ resource: { 'file-unix': { path: '/etc/motd', content: 'ours' } } }],
      verify: [{ command: 'systemctl is-active muster-agent.service' }, { tcp: { port: 1, timeout: 1 } }],
    });
    await orchestrator.call(uploadModule, { body: { name: 'motd', content } });
    expect(await orchestrator.call(applyAgent, { params, body: { modules: ['motd'] } })).toMatchObject({
      status: 'failed',
      error:
        'verify: module motd: tcp port 1 does not accept connections: the connection was refused. All resources are in place.',
      summary: { changed: 1, failed: 0 },
    });
    await expect.poll(of('motd')).toBe('ours');
    expect(await now()).toMatchObject({ connected: true, connected_at });
    await machine.end();
  });
});
