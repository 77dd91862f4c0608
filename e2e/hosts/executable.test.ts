import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect } from 'vitest';
import { built } from '../../packaging/built.ts';
import { describeBuild } from '../../packaging/executable.ts';
import { eventually } from '../eventually.ts';
import type { Machine } from './machine.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();
const build = describeBuild({});
const module = `
name: motd
supports:
  - { platform: linux }
templates:
  - id: greeting
    content: "Welcome to \${{ agent.name }}\\n"
resources:
  - id: motd
    resource:
      file-unix: { path: /etc/motd, template: greeting, mode: "0644" }
  - id: note
    resource:
      script: { program: sh, manages: a note, apply: "id -un > /root/note", check: "test -e /root/note" }
`;

/** Unpacks the release archive into a machine's `/opt`, and links `muster` into the search path. */
async function unpack(machine: Machine): Promise<void> {
  const { tarball } = await built();
  mkdirSync(join(machine.rootPath, 'opt'), { recursive: true });
  copyFileSync(tarball, join(machine.rootPath, 'opt', basename(tarball)));
  await machine.sh(
    `cd /opt; tar xzf muster-*.tar.gz; rm muster-*.tar.gz; ln -s /opt/muster-*/muster /usr/local/bin/muster`,
  );
}

const orchestratorUnit = `systemd-run --quiet --unit=orchestrator -p DynamicUser=yes -p StateDirectory=own -p StateDirectoryMode=0700 \\
  -p ProtectSystem=strict -p ProtectHome=yes -p PrivateTmp=yes -p UMask=0077 \\
  muster orchestrator --data-dir /var/lib/own --log-format json --bootstrap-username ada --bootstrap-key`;

describe.skipIf(reason !== null)(`the executable${reason === null ? '' : ` (${reason})`}`, () => {
  test('the executable runs the orchestrator, the agent, and terminals without Node', async ({
    hosts,
    onTestFailed,
  }) => {
    const machine = await hosts.start('bare', { repository: false });
    onTestFailed(async () => {
      const { stdout } = await machine.run([
        'journalctl',
        '--unit',
        'agent',
        '--unit',
        'orchestrator',
        '--lines',
        '60',
      ]);
      console.error(stdout);
    });
    await unpack(machine);
    expect((await machine.run(['sh', '-c', 'command -v node || ls -d /muster'])).code).not.toBe(0);
    expect(await machine.sh('muster --help')).toContain('Desired state:');
    expect(await machine.sh('muster --version -v')).toBe(
      `${build.version}\ncommit ${build.commit ?? 'none: built from changed files'}\nbuilt from the state of ${build.date}\non Node ${build.node}\n`,
    );

    const key = (await machine.sh('muster operator init')).trim().split('\n').at(-1);
    await machine.sh(`${orchestratorUnit} ${key}`);
    const logOf = async (unit: string) => await machine.sh(`journalctl --unit ${unit} --output=cat --lines 100`);
    const { fingerprint, public_key } = await eventually('the orchestrator is ready', async () => {
      const line = (await logOf('orchestrator')).split('\n').find((line) => line.includes('"event":"ready"'));
      return line === undefined ? null : (JSON.parse(line) as { fingerprint: string; public_key: string });
    });
    await machine.sh(`muster login --url https://127.0.0.1:4748 --fingerprint ${fingerprint}`);
    const { token } = JSON.parse(await machine.sh('muster agents enroll --name bare --json')) as { token: string };
    await machine.sh(`
      printf 'remote_terminal: { enabled: true }' > /etc/agent.yml
      systemd-run --quiet --unit=agent muster agent --config /etc/agent.yml --log-format json \\
        connect 127.0.0.1:4747 --orchestrator-key ${public_key} --token ${token}`);
    await eventually('the agent is connected', async () =>
      (await logOf('agent')).includes('"connected"') ? true : null,
    );

    writeFileSync(join(machine.rootPath, 'root/motd.yml'), module);
    await machine.sh('muster modules upload /root/motd.yml');
    await machine.sh('muster apply bare -m motd --yes');
    expect(await machine.sh('cat /etc/motd /root/note')).toBe('Welcome to bare\nroot\n');

    // SIGUSR1 opens the debugger port of an ordinary Node.js process. The check below finds no such port.
    await machine.sh('systemctl kill --kill-whom=main --signal=USR1 agent orchestrator');

    // Native add-ons are extracted once, and only their own user can read them.
    const brought = 'stat --format "%n %a %i" /var/lib/own/addons/* /var/lib/muster-agent/addons/*';
    const shell = await machine.run(['muster', 'terminal', 'open', 'bare'], { input: 'tty; exit 42\n' });
    expect(shell).toMatchObject({ code: 42, stdout: expect.stringContaining('/dev/pts/') });
    const files = await machine.sh(brought);
    expect(files).toMatch(
      /^\/var\/lib\/own\/addons\/sqlite-[0-9a-f]{16}\.node 500 \d+\n\S+\/pty-[0-9a-f]{16}\.node 500 \d+\n$/,
    );
    expect(await machine.sh('ss --listening --tcp --numeric --no-header')).not.toContain(':9229');
    await machine.sh('systemctl kill --signal=KILL agent');
    await machine.sh(
      'systemctl stop orchestrator; muster export --data-dir /var/lib/private/own /root/export; test -s /root/export',
    );
    // `muster export` as root loads its own copy of the add-on, to which the orchestrator's user cannot write.
    expect(await machine.sh('stat --format %a:%u /var/cache/muster/addons/*')).toBe('500:0\n');
    expect(await machine.sh(brought)).toBe(files);
  });
});
