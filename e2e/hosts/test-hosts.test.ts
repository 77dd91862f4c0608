import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { applyAgent, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { root } from '../../tools/suite/cli.ts';
import { eventually } from '../eventually.ts';
import { HostAgent } from './agent.ts';
import { mirrorOf } from './base-root.ts';
import { processesOf } from './control-groups.ts';
import { machineName } from './leftovers.ts';
import { Bridge } from './network.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

test('test hosts use this machine’s Debian mirror, or deb.debian.org by default', () => {
  expect(mirrorOf('deb [arch=amd64] https://mirror.example/debian/ bookworm main\n')).toBe(
    'https://mirror.example/debian',
  );
  expect(mirrorOf('Types: deb\nURIs: http://a.example/debian-security\nURIs: http://b.example/debian\n')).toBe(
    'http://b.example/debian',
  );
  expect(mirrorOf('')).toBe('http://deb.debian.org/debian');
});

test.skipIf(reason !== null)(
  'a new bridge can reuse the number of a removed bridge while a process in the old network is running',
  async () => {
    const first = new Bridge();
    first.join('a');
    const process = spawn('ip', ['netns', 'exec', machineName('a'), 'sh', '-c', 'echo ready; exec sleep 3600']);
    try {
      await once(process.stdout, 'data');
      first.end();
      const second = new Bridge();
      second.join('a');
      second.end();
      expect(second.address).toBe(first.address);
    } finally {
      process.kill();
    }
  },
);

describe.skipIf(reason !== null)(`test hosts${reason === null ? '' : ` (${reason})`}`, () => {
  test('test hosts run systemd in their own namespaces, and keep data across a power failure', async ({ hosts }) => {
    const [a, b] = await Promise.all([hosts.start('a'), hosts.start('b')]);
    expect(await a.sh('ps -p 1 -o comm=; systemctl is-system-running; hostname')).toBe('systemd\nrunning\na\n');
    expect(b.changes()).toMatchObject({ '/etc/hostname': '0:0 100644 b\n' });
    const knock = `exec 3<> /dev/tcp/${b.address}/22`;
    expect((await a.run(['bash', '-c', knock])).stderr).toContain('Connection refused');
    expect((await a.run(['bash', '-c', 'exec 3<> /dev/tcp/192.0.2.1/22'])).stderr).toContain('unreachable');
    const clean = a.changes();
    await a.sh('echo ours > /etc/motd; rm /etc/issue; rm -r /etc/skel; mkdir -m 700 /etc/skel; chmod 711 /opt');
    // A file that is rewritten with the same content does not count as a difference.
    await a.sh('cp -a /etc/fstab /etc/copy; mv /etc/copy /etc/fstab; echo x > /run/x; echo x > /etc/passwd-');
    const changed = a.changes();
    expect(changed).toEqual({
      ...clean,
      '/etc/motd': '0:0 100644 ours\n',
      '/etc/issue': 'absent',
      '/etc/skel': '0:0 40700',
      '/etc/skel/.bashrc': 'absent',
      '/etc/skel/.bash_logout': 'absent',
      '/etc/skel/.profile': 'absent',
      '/opt': '0:0 40711',
    });
    expect(b.changes()['/etc/motd']).toBeUndefined();
    await a.powerCut();
    await a.start();
    expect(a.changes()).toEqual(changed);
    await a.reboot();
    expect(a.boots).toBe(3);
    await a.stop();
    await a.start();
    expect(a.changes()).toEqual(changed);
    await a.wipe();
    await a.start();
    expect(Object.keys(a.changes())).toEqual(Object.keys(clean));
    await Promise.all([a.end(), b.end()]);
  });

  test('test hosts run the real agent as a service, which restarts after it is killed and after a reboot', async ({
    hosts,
    stage,
  }) => {
    const [machine, orchestrator] = await Promise.all([hosts.start('web'), stage.orchestrator()]);
    const agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address);
    const params = { node_id: agent.nodeId };
    const content = JSON.stringify({
      name: 'site',
      supports: [{ platform: 'linux', distro: 'debian', init_system: 'systemd' }],
      resources: [{ id: 'motd', resource: { 'file-unix': { path: '/etc/motd', content: 'managed\n' } } }],
    });
    await orchestrator.call(uploadModule, { body: { name: 'site', content } });
    const apply = () => orchestrator.call(applyAgent, { params, body: { modules: ['site'] } });
    expect(await apply()).toMatchObject({ status: 'succeeded', summary: { changed: 1 } });
    expect(await machine.sh('cat /etc/motd')).toBe('managed\n');
    await agent.kill9();
    // Retries, because the orchestrator may not have detected the lost link yet.
    expect(await eventually('an apply succeeds', apply)).toMatchObject({
      status: 'succeeded',
      summary: { unchanged: 1 },
    });
    expect(await agent.restarts()).toBe(1);
    await machine.reboot();
    await agent.connected();
    expect(await apply()).toMatchObject({ status: 'succeeded', summary: { unchanged: 1 } });
  });

  test('a test run removes the test hosts that a killed test run left behind', async ({ hosts }) => {
    const script = `
      const { TestHosts } = await import('./e2e/hosts/test-hosts.ts');
      const hosts = await TestHosts.open();
      const machine = await hosts.start('orphan');
      await machine.sh('touch /etc/immutable; chattr +i /etc/immutable');
      console.log(machine.leader);
      setInterval(() => {}, 1000);
    `;
    const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [leader] = (await once(run.stdout, 'data')).map(Number);
    // The root of a zombie process is not accessible, so a zombie counts as exited.
    const lives = () => existsSync(`/proc/${leader}/root/etc`);
    expect(lives()).toBe(true);
    run.kill('SIGKILL');
    await once(run, 'close');
    await eventually('the machine of the killed test run has ended', async () => (lives() ? null : true));
    const theirs = (names: string[]) => names.filter((name) => name.includes(`muster-hosts-${run.pid}-`));
    const left = () => ({
      namespaces: theirs(readdirSync('/run/netns')).length,
      disks: theirs([...readdirSync('/dev/shm'), ...readdirSync('/var/tmp')]).length,
      links: theirs(execFileSync('ip', ['link', 'show'], { encoding: 'utf8' }).split('\n')).length,
      controlGroups: processesOf((name) => name.includes(`muster-hosts-${run.pid}-`)).length,
    });
    expect(left()).toMatchObject({ namespaces: 1, disks: 1 });
    const { TestHosts } = await import('./test-hosts.ts');
    const mine = hosts.machine('mine');
    await mine.start();
    const others = await TestHosts.open();
    await others.end();
    expect(left()).toEqual({ namespaces: 0, disks: 0, links: 0, controlGroups: 0 });
    // The machine of the current test run still works.
    expect(await mine.sh('echo here')).toBe('here\n');
  });
});
