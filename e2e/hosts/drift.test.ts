import { applyAgent, latestDrift, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { HostAgent } from './agent.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

const resources = [
  { 'group-unix': { name: 'deployers' } },
  { 'user-unix': { name: 'deploy', additional_groups: ['deployers'], shell: '/bin/bash' } },
  { 'file-unix': { path: '/srv/app/etc/app.conf', content: 'as applied\n' } },
  { 'service-systemd': { name: 'napper', exec_start: '/bin/sleep infinity', enabled: true, running: true } },
];
/** Manual changes, each with the resource and the fields that it changes, and the command that reverts it. */
const byHand: [shell: string, identity: string, fields: string[], back: string][] = [
  ['usermod -s /bin/sh deploy', 'deploy', ['shell'], 'usermod -s /bin/bash deploy'],
  ['gpasswd -d deploy deployers', 'deploy', ['additional_groups'], 'gpasswd -a deploy deployers'],
  ['groupdel -f deployers', 'deployers', ['ensure'], 'groupadd --system deployers; gpasswd -a deploy deployers'],
  ['systemctl stop napper', 'napper', ['running'], 'systemctl start napper'],
  ['systemctl kill --signal KILL napper', 'napper', ['running'], 'systemctl start napper'],
  ['systemctl disable napper', 'napper', ['enabled'], 'systemctl enable napper'],
  ['mv /srv/app /srv/old', '/srv/app/etc/app.conf', ['ensure', 'content'], 'mv /srv/old /srv/app'],
];

describe.skipIf(reason !== null)(`drift${reason === null ? '' : ` (${reason})`}`, () => {
  test('the watch of a real agent reports manual changes to accounts, units, and files', async ({ hosts, stage }) => {
    const [machine, orchestrator] = await Promise.all([hosts.start('web'), stage.orchestrator()]);
    await HostAgent.install(machine, orchestrator, hosts.bridge.address);
    const params = { node_id: 'web' };
    const content = JSON.stringify({
      name: 'm',
      supports: [{ platform: 'linux' }],
      resources: resources.map((resource) => ({ resource })),
    });
    await orchestrator.call(uploadModule, { body: { name: 'm', content } });
    const apply = () => orchestrator.call(applyAgent, { params, body: { modules: ['m'] } });
    expect(await apply()).toMatchObject({ status: 'succeeded' });
    const latest = async () => await orchestrator.call(latestDrift, { params });
    for (const [shell, identity, fields, back] of byHand) {
      await machine.sh(shell);
      const moved = await eventually(`"${shell}" is reported as drift`, async () => {
        const record = await latest();
        const found = record?.resources.find((resource) => resource.identity === identity);
        return record?.status === 'drifted' && found ? { record, found } : null;
      });
      // The trigger shows that the agent's watch detected the change, rather than a scheduled check.
      expect(moved.record.trigger).toBe('watch');
      expect(moved.found.changes.map(({ field }) => field)).toEqual(fields);
      await machine.sh(back);
      await eventually(`the machine is in sync after "${back}"`, async () =>
        (await latest())?.status === 'in_sync' ? true : null,
      );
    }
    // The shell commands reverted everything, so the apply changes nothing.
    expect(await apply()).toMatchObject({ status: 'succeeded', summary: { unchanged: resources.length } });
  });
});
