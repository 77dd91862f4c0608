import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { built } from '../../packaging/built.ts';
import { eventually } from '../eventually.ts';
import { test as base } from '../harness.ts';
import { dpkgInstall, InstalledOrchestrator, openHosts } from './installed.ts';
import type { Machine } from './machine.ts';
import { volatilePaths } from './root-difference.ts';
import { noHosts } from './test.ts';
import type { TestHosts } from './test-hosts.ts';

const reason = noHosts();

const test = base.extend<{ $file: { hosts: TestHosts } }>({
  hosts: [
    // biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
    async ({}, use) => {
      const hosts = await openHosts();
      try {
        await use(hosts);
      } finally {
        await hosts.end();
      }
    },
    { scope: 'file' },
  ],
});

const property = async (machine: Machine, unit: string, name: string): Promise<string> =>
  (await machine.exec('systemctl', 'show', `--property=${name}`, '--value', unit)).trim();

/** Paths that the comparison ignores. Unlike the default, this does not exclude Muster's own files. */
const volatile = volatilePaths.filter((path) => !path.includes('muster'));
/** Files that may differ after a purge, because the system itself writes them. */
const written = ['/etc/machine-id', '/etc/hostname', '/var/lib/dbus/machine-id'];

const hello = `name: hello
supports: [{ platform: linux }]
resources:
  - id: file
    resource: { file-unix: { path: /srv/hello, content: "kept by muster\\n" } }
  - id: big
    resource:
      script:
        program: sh
        manages: what was counted
        apply: |
          cat /proc/self/cgroup > /var/tmp/where
          head -c 300M /dev/zero | tail -c 300M | wc -c > /var/tmp/counted
        check: test -e /var/tmp/counted
`;

describe.skipIf(reason !== null)(`installed from packages${reason === null ? '' : ` (${reason})`}`, () => {
  test('orchestrator and agent can be installed from Debian packages, enrolled, reloaded, upgraded, and removed', async ({
    hosts,
    onTestFailed,
  }) => {
    onTestFailed(() => console.error(hosts.report()));
    const { older, debs: newer } = await built();
    const web = hosts.machine('web', { repository: false });
    const [orchestrator] = await Promise.all([InstalledOrchestrator.start(hosts, 'orch', older), web.start()]);
    const { machine } = orchestrator;

    // The orchestrator runs in its hardened unit.
    expect(await property(machine, 'muster-orchestrator', 'ActiveState')).toBe('active');
    const exposure = /Overall exposure level for \S+: ([\d.]+)/.exec(
      await machine.sh('systemd-analyze security muster-orchestrator | tail -1'),
    );
    expect(Number(exposure?.[1])).toBeLessThan(2);
    const configMode = () => machine.sh('stat -c "%a %U:%G" /etc/muster/orchestrator.yml');
    expect(await configMode()).toBe('640 root:muster\n');
    expect(
      (await machine.run(['su', 'nobody', '-s', '/bin/sh', '-c', 'cat /etc/muster/orchestrator.yml'])).code,
    ).not.toBe(0);
    const pid = await property(machine, 'muster-orchestrator', 'MainPID');
    const status = await machine.exec('cat', `/proc/${pid}/status`);
    expect(status).toMatch(/^CapBnd:\t0{16}$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).not.toMatch(/^Uid:\t0\t/m);
    expect(await property(machine, 'muster-orchestrator', 'LimitNOFILE')).toBe('65536');
    expect(
      (await machine.run(['su', 'nobody', '-s', '/bin/sh', '-c', 'ls /var/lib/muster-orchestrator/'])).code,
    ).not.toBe(0);

    // The package contains the console.
    const get = (path: string) =>
      machine.sh(`curl --silent --insecure --compressed --include https://127.0.0.1:4748${path}`);
    const page = await get('/agents');
    expect(page).toMatch(/^HTTP\/1.1 200 OK\r/);
    expect(page).toMatch(/^content-security-policy: default-src 'none'; script-src 'self';/im);
    const script = / src="(\/assets\/index-[^"]+\.js)"/.exec(page)?.[1] as string;
    const sent = await get(script);
    expect(sent).toMatch(/^content-encoding: (br|gzip)\r$/im);
    expect(sent).toContain('createRoot');

    // The timer is disabled by default. Its service creates a backup.
    expect((await machine.run(['systemctl', 'is-enabled', 'muster-backup.timer'])).stdout.trim()).toBe('disabled');
    await machine.sh('systemctl enable --now muster-backup.timer; systemctl start muster-backup');
    expect(await machine.sh('muster backup verify /var/backups/muster/*.backup 2>&1')).toContain('valid backup of');
    expect(await machine.sh('stat -c %a /var/backups/muster /var/backups/muster/*')).toBe('700\n600\n');
    expect(await machine.sh('find /var/lib/muster-orchestrator/ -user root')).toBe('');
    await machine.sh('rm -r /var/backups/muster');

    // Runs the printed enrollment line on the other machine.
    const shown = await orchestrator.enroll(web, '--tag', 'role=web');
    expect(shown).toContain('the agent is connected');
    const { node_id } = await orchestrator.connected('web');
    expect(await property(web, 'muster-agent', 'MemoryMax')).toBe(String(512 * 1024 * 1024));
    // The agent creates no core dump, but its scripts may raise the limit.
    expect(await property(web, 'muster-agent', 'LimitCORESoft')).toBe('0');
    expect(await property(web, 'muster-agent', 'LimitCORE')).toBe('infinity');

    // Applies a file, and a script that uses more memory than the agent's unit allows.
    await web.sh(
      'mkdir -p /etc/systemd/system/muster-agent.service.d; printf "[Service]\\nMemoryMax=200M\\nWatchdogSec=6\\n" > /etc/systemd/system/muster-agent.service.d/test.conf; systemctl daemon-reload; systemctl restart muster-agent',
    );
    await orchestrator.connected('web');
    await machine.run(['sh', '-c', 'cat > /root/hello.yml'], { input: hello });
    await machine.sh('muster modules upload /root/hello.yml; muster apply web -m hello --yes');
    expect(await web.sh('cat /srv/hello /var/tmp/counted')).toBe(`kept by muster\n${300 * 1024 * 1024}\n`);
    const where = await web.exec('cat', '/var/tmp/where');
    expect(where).toMatch(/\/muster-script-[0-9a-f]+\.scope$/m);
    expect(where).not.toContain('muster-agent.service');
    // For a few milliseconds, the unit also contains the `systemd-notify` process that sends watchdog notifications.
    await eventually("the agent's unit contains only the agent", async () => {
      const inUnit = await web.sh(
        'cat /sys/fs/cgroup/*/system.slice/muster-agent.service/cgroup.procs /sys/fs/cgroup/system.slice/muster-agent.service/cgroup.procs 2> /dev/null | sort -u',
      );
      return inUnit.trim() === (await property(web, 'muster-agent', 'MainPID')) ? true : null;
    });

    // systemd's watchdog kills and restarts a hanging agent.
    const stopped = await property(web, 'muster-agent', 'MainPID');
    await web.exec('kill', '-STOP', stopped);
    await eventually('systemd has restarted the agent', async () =>
      ['', '0', stopped].includes(await property(web, 'muster-agent', 'MainPID')) ? null : true,
    );
    await eventually('the journal names the watchdog', async () =>
      (await web.sh('journalctl -u muster-agent -o cat')).includes('Watchdog timeout') ? true : null,
    );

    // Both programs reload their configuration without a restart.
    const running = await property(web, 'muster-agent', 'MainPID');
    await machine.exec('systemctl', 'reload', 'muster-orchestrator');
    await web.exec('systemctl', 'reload', 'muster-agent');
    await orchestrator.connected('web');
    expect(await property(machine, 'muster-orchestrator', 'MainPID')).toBe(pid);
    expect(await property(web, 'muster-agent', 'MainPID')).toBe(running);
    expect(await machine.sh('systemd-analyze verify muster-orchestrator.service 2>&1')).not.toMatch(/muster/);
    expect(await web.sh('systemd-analyze verify muster-agent.service 2>&1')).not.toMatch(/muster/);

    await Promise.all([machine.reboot(), web.reboot()]);
    expect((await orchestrator.connected('web')).node_id).toBe(node_id);

    // Restores the group and the permissions to those of version 0.1, to test the upgrade.
    await machine.sh('cd /etc/muster; chgrp root orchestrator.yml; chmod 644 orchestrator.yml; groupdel muster');

    // The upgrade keeps the data, the agent's identity, and the configuration.
    const former = await property(machine, 'muster-orchestrator', 'MainPID');
    await Promise.all([
      dpkgInstall(machine, [newer.muster, newer.orchestrator]),
      dpkgInstall(web, [newer.muster, newer.agent]),
    ]);
    expect(await property(machine, 'muster-orchestrator', 'MainPID')).not.toBe(former);
    expect((await orchestrator.connected('web')).node_id).toBe(node_id);
    expect(await machine.exec('cat', '/etc/muster/orchestrator.yml')).toContain('bootstrap_username: ada');
    expect(await configMode()).toBe('640 root:muster\n');
    await machine.sh(
      'chmod 440 /etc/muster/orchestrator.yml; /var/lib/dpkg/info/muster-orchestrator.postinst configure 0.1.0',
    );
    expect(await configMode()).toBe('440 root:muster\n');
    await orchestrator.connected('web');
    expect(await machine.exec('muster', 'modules', 'list')).toContain('hello');
    await machine.exec('muster', 'plan', 'web', '-m', 'hello', '--exit-code');

    // Removal keeps all data. A purge deletes the data.
    await Promise.all([
      machine.sh('dpkg --remove muster-orchestrator muster; test -s /var/lib/muster-orchestrator/muster.db'),
      web.sh(
        'rm /srv/hello /var/tmp/counted /var/tmp/where; dpkg --remove muster-agent muster; test -s /var/lib/muster-agent/agent.key',
      ),
    ]);
    await Promise.all([
      machine.sh('dpkg --purge muster-orchestrator muster; rm -rf /root/hello.yml /root/.config /root/.cache'),
      web.sh('dpkg --purge muster-agent muster'),
    ]);
    for (const each of [machine, web]) {
      const left = each.changes(volatile);
      for (const path of written) delete left[path];
      if (each === machine) {
        // A purge keeps the group, as Debian's own packages do, because a new group with the same GID could read files
        // that belonged to the old one.
        const groups = (await machine.exec('cat', '/etc/group')).replace(/^muster:x:\d+:\n/m, '');
        expect(groups).toBe(readFileSync(join(hosts.base, 'etc/group'), 'utf8'));
        for (const path of ['/etc/group', '/etc/gshadow']) delete left[path];
      }
      expect({ machine: each.name, left }).toEqual({ machine: each.name, left: {} });
      expect(await each.sh('systemctl list-unit-files --no-legend | grep muster || true')).toBe('');
    }
  });
});
