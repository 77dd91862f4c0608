import { type AgentMessage, decodeTerminalFrame, encodeTerminalFrame } from '@muster/protocol/wire';
import { describe, expect } from 'vitest';
import { type ServedLink, TestOrchestrator } from '../../agent/test/test-orchestrator.ts';
import { eventually } from '../eventually.ts';
import { repositoryInside } from './machine.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

/** Returns the agent's next message of one of these types. Ignores other messages. */
async function answer(link: ServedLink, types: readonly AgentMessage['type'][]): Promise<AgentMessage> {
  for (;;) {
    const { message } = await link.any();
    if (types.includes(message.type)) return message;
  }
}

/** Tests a bundled agent on a test host over the wire protocol, with a test orchestrator. */
describe.skipIf(reason !== null)(`terminals of a real machine${reason === null ? '' : ` (${reason})`}`, () => {
  test('terminals run login shells of the configured user outside the agent’s unit, and are closed when the agent is killed', async ({
    hosts,
  }) => {
    const [machine, orchestrator] = await Promise.all([
      hosts.start('terminals'),
      TestOrchestrator.start('ed25519', 0, hosts.bridge.address),
    ]);
    try {
      const startAgent = () =>
        machine.sh(`
          systemd-run --quiet --unit=muster-agent -p MemoryMax=200M -p SupplementaryGroups=disk -p OOMScoreAdjust=-500 \\
            -p AmbientCapabilities=CAP_NET_RAW \\
            ${repositoryInside}/cli/bin/muster agent --config /etc/muster/agent.yaml \\
            connect ${hosts.bridge.address}:${orchestrator.port} --orchestrator-key ${orchestrator.publicKey.toString('hex')}`);
      await machine.sh(`
        useradd --create-home --shell /bin/bash --groups adm,staff alice
        useradd --non-unique --uid $(id -u alice) --gid nogroup --groups games twin
        mkdir /etc/muster; echo 'remote_terminal: { enabled: false }' > /etc/muster/agent.yaml`);
      await startAgent();
      let { link } = await orchestrator.welcomed(0, 3);
      let channel = 0;
      const open = () => {
        const request = { session_id: '0'.repeat(26), cols: 80, rows: 24, shell: null, operator: 'ann' };
        link.send({ type: 'terminal_open', channel: ++channel, ...request });
        return answer(link, ['terminal_opened', 'terminal_refused']);
      };
      expect(await open()).toMatchObject({ type: 'terminal_refused', code: 'disabled' });

      // The agent reloads its configuration when the file changes.
      await machine.sh('echo "remote_terminal: { enabled: true, user: alice }" > /etc/muster/agent.yaml');
      const opened = await eventually('the agent opens a terminal', async () => {
        const said = await open();
        return said.type === 'terminal_opened' ? said : null;
      });
      expect(opened).toMatchObject({ shell: '/bin/bash', user: 'alice' });

      const shown = () =>
        link.frames.map((frame) => Buffer.from(decodeTerminalFrame(frame)?.bytes ?? []).toString()).join('');
      const line = [
        'echo "id=$(id -un):$(id -Gn)=" "at=$PWD=" "0=$0=" "login=$(shopt -q login_shell && echo yes)="',
        'cat /proc/self/cgroup /proc/self/oom_score_adj; grep Cap[IPEA] /proc/self/status',
        'sleep 1001 & setsid sleep 1002 & (trap "" HUP; exec sleep 1004) & until test "$(pgrep -u alice -xfc "sleep 100[124]")" = 3; do sleep 0.05; done',
        'echo "own=$$=" "end=$((1+1))="',
      ].join('; ');
      link.ws.send(encodeTerminalFrame(channel, Buffer.from(`${line}\r`)));
      await link.until(() => shown().includes('end=2='));
      expect(shown()).toContain('id=alice:alice adm staff= at=/home/alice= 0=-bash= login=yes=\r\n');
      expect(shown()).toMatch(/\/muster-terminal-[0-9a-f]{12}\.scope\r\n/);
      expect(shown()).not.toContain('muster-agent.service');
      const [scope] = /muster-terminal-[0-9a-f]{12}\.scope/.exec(shown()) ?? [];
      // An out-of-memory kill of one process does not terminate the shell, and a shutdown does not wait for shells.
      expect(await machine.sh(`systemctl show --property=OOMPolicy,SendSIGHUP ${scope}`)).toBe(
        'OOMPolicy=continue\nSendSIGHUP=yes\n',
      );
      expect(shown()).toMatch(/\n0\r\n/);
      for (const set of ['Inh', 'Prm', 'Eff', 'Amb']) expect(shown()).toMatch(new RegExp(`Cap${set}:\\s0{16}\\r`));

      // Two accounts share a UID but have different groups.
      await machine.sh(
        'echo "remote_terminal: { enabled: true, user: twin, shell: /bin/sh }" > /etc/muster/agent.yaml',
      );
      await eventually('the agent opens a terminal of the other account', async () => {
        const said = await open();
        return said.type === 'terminal_opened' && said.user === 'twin' ? said : null;
      });
      link.ws.send(encodeTerminalFrame(channel, Buffer.from('grep Groups: /proc/self/status\r')));
      await link.until(() => /Groups:[\t\d ]+\r/.test(shown()));
      // The GIDs of the groups `games` and `nogroup`. Does not use `id`, which looks up the account by its UID.
      expect(shown()).toMatch(/Groups:\t60 65534 \r/);

      // A terminal can be closed while the agent waits for its scope.
      const systemdRun = '/usr/local/sbin/systemd-run';
      await machine.sh(`printf '#!/bin/sh\\nexec sleep 1003\\n' > ${systemdRun}; chmod +x ${systemdRun}`);
      const refused = open();
      link.send({ type: 'terminal_close', channel, reason: 'at once' });
      expect(await refused).toMatchObject({
        channel,
        code: 'failed',
        message: expect.stringContaining('closed before'),
      });
      await machine.exec('rm', systemdRun);

      const running = async () => (await machine.run(['pgrep', '-u', 'alice', '-a'])).stdout;
      expect(await running()).toContain('sleep 1001');
      await machine.exec('systemctl', 'kill', '--kill-whom=main', '--signal=KILL', 'muster-agent.service');
      await eventually('the shell and its background job have ended', async () => {
        const left = await running();
        return left.includes('bash') || left.includes('sleep 1001') ? null : true;
      });
      // The next agent process kills processes that ignored the hang-up. Processes in their own session survive, as with ssh.
      for (const left of ['sleep 1002', 'sleep 1004']) expect(await running()).toContain(left);
      await machine.sh(
        'until systemctl is-failed -q muster-agent; do sleep 0.05; done; systemctl reset-failed muster-agent',
      );
      await startAgent();
      ({ link } = await orchestrator.welcomed(0, 3));
      await eventually('the process that ignored the hang-up has ended', async () =>
        (await running()).includes('sleep 1004') ? null : true,
      );
      expect(await running()).toContain('sleep 1002');
      await eventually('the agent has removed its records of open terminals', async () =>
        (await machine.sh('ls /var/lib/muster-agent')).includes('open-terminal') ? null : true,
      );

      // The agent also creates a scope with an older systemd, which supports fewer properties.
      await machine.sh(
        `printf '#!/bin/sh\\ncase "$*" in *OOMPolicy*) echo "Unknown assignment: OOMPolicy=continue" >&2; exit 1; esac\\nexec /usr/bin/systemd-run "$@"\\n' > ${systemdRun}; chmod +x ${systemdRun}`,
      );
      channel = 0;
      expect(await open()).toMatchObject({ type: 'terminal_opened', user: 'twin' });
      link.ws.send(encodeTerminalFrame(channel, Buffer.from('cat /proc/self/cgroup\r')));
      await link.until(() => /\/muster-terminal-[0-9a-f]{12}\.scope\r\n/.test(shown()));
    } finally {
      await orchestrator.stop();
    }
  });
});
