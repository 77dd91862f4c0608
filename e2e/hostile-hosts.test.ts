import { applyAgent, getOperationOutput, type Operation, uploadModule } from '@muster/protocol/http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import type { HostAgent } from './hosts/agent.ts';
import { Fleet } from './hosts/fleet.ts';
import { noHosts } from './hosts/test.ts';

/**
 * Verifies that a machine's faults fail only the affected resources, with a clear message, and that the agent survives.
 */

const reason = noHosts();
/** System call number of renameat2, which can exchange two paths atomically. */
const renameat2 = process.arch === 'arm64' ? 276 : 316;
/** Maximum resident memory of the agent, in MiB. */
const memoryLimit = 400;

const file = (path: string, content = 'ours\n') => ({ 'file-unix': { path, content } });
const script = (manages: string, apply: string) => ({ script: { program: 'sh', manages, apply } });

// A Perl program that holds apt's lock for three seconds. The agent must wait for the lock.
const holdLock = `
  use Fcntl; open(my $f, ">>", "/var/lib/dpkg/lock-frontend") or die $!;
  my $lock = pack("s s l! l! i", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die $!;
  open(my $locked, ">", "/run/locked"); sleep 3;
  open($f, ">", "/run/released");
`;

interface Hostile {
  id: string;
  resource: object;
  /** Expected failure message; null if the resource must succeed. */
  says: RegExp | null;
}

describe.skipIf(reason !== null)(`a hostile machine${reason === null ? '' : ` (${reason})`}`, () => {
  let fleet: Fleet;
  let agent: HostAgent;
  const sh = (text: string) => agent.machine.sh(text);

  beforeAll(async () => {
    const config = '/etc/muster/agent.yml';
    const victim = { files: { [config]: 'scripts: { time_limit: 60 }' }, agent: { flags: ['--config', config] } };
    fleet = await Fleet.open({ machines: { victim }, packages: true });
    agent = fleet.agent('victim');
  });
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') console.error(await fleet.report());
  });
  afterAll(() => fleet?.end());

  async function apply(hostile: readonly Hostile[]): Promise<Operation> {
    const { call } = fleet.orchestrator;
    const resources = hostile.map(({ id, resource }) => ({ id, resource }));
    const content = JSON.stringify({ name: 'hostile', supports: [{ platform: 'linux' }], resources });
    await call(uploadModule, { body: { name: 'hostile', content } });
    const operation = await call(applyAgent, { params: { node_id: agent.nodeId }, body: { modules: ['hostile'] } });
    // The last results are removals of resources from earlier tests.
    const reported = operation.resources
      .slice(0, hostile.length)
      .map(({ id, status, message }) => ({ id, status, message }));
    expect(reported).toEqual(
      hostile.map(({ id, says }) =>
        says === null
          ? expect.objectContaining({ id, status: 'changed' })
          : { id, status: 'failed', message: expect.stringMatching(says) },
      ),
    );
    return operation;
  }

  async function lives(): Promise<void> {
    await agent.connected();
    expect(await agent.restarts()).toBe(0);
    const peak = await sh('grep VmHWM "/proc/$(systemctl show --property=MainPID --value muster-agent)/status"');
    expect(Number(/\d+/.exec(peak)?.[0]) / 1024).toBeLessThan(memoryLimit);
  }

  test('an apply reports each impossible resource as failed with its reason, and applies the others', async () => {
    await sh(`
      mkfifo /srv/fifo
      mknod /srv/device c 1 3
      mkdir /srv/directory /srv/small /srv/read-only
      echo theirs > /srv/immutable
      chattr +i /srv/immutable
      mount -t tmpfs -o size=64k tmpfs /srv/small
      mount -t tmpfs -o ro tmpfs /srv/read-only
      touch /etc/sample-broken
      systemd-run --quiet --unit=other-apt perl -e '${holdLock}'
      until [ -e /run/locked ]; do sleep 0.05; done
    `);
    const operation = await apply([
      { id: 'first', resource: file('/srv/first'), says: null },
      { id: 'broken', resource: { 'package-apt': { name: 'sample-broken' } }, says: /sample-broken/ },
      { id: 'missing', resource: { 'package-apt': { name: 'no-such-package' } }, says: /no-such-package/ },
      { id: 'plain', resource: { 'package-apt': { name: 'sample-plain' } }, says: null },
      { id: 'fifo', resource: file('/srv/fifo'), says: /\/srv\/fifo is a FIFO/ },
      { id: 'device', resource: file('/srv/device'), says: /\/srv\/device is a character device/ },
      { id: 'directory', resource: file('/srv/directory'), says: /\/srv\/directory is a directory/ },
      { id: 'immutable', resource: file('/srv/immutable'), says: /immutable/ },
      { id: 'full', resource: file('/srv/small/f', 'x'.repeat(200_000)), says: /no space|full/i },
      { id: 'read-only', resource: file('/srv/read-only/f'), says: /read-only/i },
      { id: 'loud', resource: script('loud', 'yes | head -c 100000000'), says: null },
      {
        id: 'unit',
        resource: { 'service-systemd': { name: 'never', exec_start: '/bin/false', type: 'oneshot', running: true } },
        says: /never.service did not start: .*exit/,
      },
      { id: 'last', resource: file('/srv/last'), says: null },
    ]);
    expect(operation.status).toBe('failed');
    const { operation_id } = operation;
    const { output } = await fleet.orchestrator.call(getOperationOutput, {
      params: { node_id: agent.nodeId, operation_id },
    });
    for (const { stdout } of Object.values(output)) expect(stdout.length).toBeLessThan(1_000_000);
    expect(await sh('cat /srv/first /srv/last /srv/immutable; ls /srv/small')).toBe('ours\nours\ntheirs\n');
    expect(await sh('find /var/lib/dpkg/info/sample-plain.list -newer /run/released')).not.toBe('');
    await lives();
  });

  test('the agent kills a hanging script and its child processes at the configured time limit', async () => {
    await sh(`
      echo 'scripts: { time_limit: 1 }' > /etc/muster/agent.new
      mv /etc/muster/agent.new /etc/muster/agent.yml
    `);
    await eventually('the agent has reloaded the time limit', async () =>
      (await agent.log()).includes('time_limit: 60 → 1') ? true : null,
    );
    await apply([
      { id: 'hanging', resource: script('hanging', 'echo begun; sleep 1000 & sleep 1000'), says: /longer than 1 s/ },
      { id: 'last', resource: file('/srv/last', 'after\n'), says: null },
    ]);
    // systemd may not have reaped the killed child process yet.
    await eventually('no process remains', async () => ((await sh('pgrep -xc sleep || true')) === '0\n' ? true : null));
    expect(await sh('cat /srv/last')).toBe('after\n');
    await lives();
  });

  test('the agent follows no symbolic link that repeatedly replaces a parent directory of a file during a write', async () => {
    // The swap is atomic: `way` is always either a directory or a link to a directory that the agent must not write to.
    const swap = `
      $SIG{TERM} = sub { print "$n\\n"; exit }; chdir "/srv/mallory" or die;
      while (1) { syscall(${renameat2}, -100, my $a = "way", -100, my $b = "link", 2) == 0 or die $!; $n++ }
    `;
    await sh(`
      mkdir -p /srv/mallory/way /srv/target
      ln -s /srv/target /srv/mallory/link
      chown -hR nobody /srv/mallory
      systemd-run --quiet --unit=mallory --uid=nobody perl -e '${swap}'
    `);
    const count = 200;
    const content = JSON.stringify({
      name: 'hostile',
      supports: [{ platform: 'linux' }],
      resources: Array.from({ length: count }, (_, i) => ({ resource: file(`/srv/mallory/way/f${i}`) })),
    });
    const { call } = fleet.orchestrator;
    await call(uploadModule, { body: { name: 'hostile', content } });
    const { resources } = await call(applyAgent, { params: { node_id: agent.nodeId }, body: { modules: ['hostile'] } });
    const written = resources.slice(0, count);
    const refused = written.filter(({ status }) => status === 'failed');
    // If the link appears between the check and the traversal, the error is `ENOTDIR`.
    for (const { message } of refused) expect(message).toMatch(/symbolic link|is not a directory/);
    expect(written.filter(({ status }) => status === 'changed').length).toBe(count - refused.length);
    expect(await sh('systemctl is-active mallory; ls /srv/target')).toBe('active\n');
    // The number of failed writes is random. Once `way` remains a directory, all writes succeed.
    await sh(`
      systemctl stop mallory
      cd /srv/mallory
      if [ -L way ]; then rm way && mv link way; fi
    `);
    const after = await call(applyAgent, { params: { node_id: agent.nodeId }, body: { modules: ['hostile'] } });
    expect(after.resources.slice(0, count).filter(({ status }) => status === 'failed')).toEqual([]);
    await lives();
  });

  test('an apply reports a read-only root, and succeeds on writable mounts', async () => {
    // The drop-in contains the settings of a hardened systemd unit.
    const dropIn = '/run/systemd/system/muster-agent.service.d/read-only.conf';
    await sh(`
      mkdir -p "$(dirname ${dropIn})"
      printf '[Service]\\nProtectSystem=strict\\nReadWritePaths=/var/lib/muster-agent /tmp\\n' > ${dropIn}
      systemctl daemon-reload
      systemctl restart muster-agent
    `);
    await agent.connected();
    await apply([
      { id: 'root', resource: file('/etc/motd'), says: /read-only/i },
      { id: 'elsewhere', resource: file('/tmp/elsewhere'), says: null },
    ]);
    await lives();
  });
});
