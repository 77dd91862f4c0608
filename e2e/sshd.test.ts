import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { file, line, operation } from '../agent/src/converge/test/desired.ts';
import { sampled } from '../lib/test/sampled.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { recipesRoot } from './hosts/recipes-root.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Tests that a change to the SSH server that would lock users out is undone. */

const reason = noHosts();
const dropIn = '/etc/ssh/sshd_config.d/10-test.conf';
const main = '/etc/ssh/sshd_config';
/** Valid settings that make sshd exit, because no interface has the address. */
const unusable = 'ListenAddress 192.0.2.99\n';

describe.skipIf(reason !== null)(`sshd on a test host${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await recipesRoot() });
    machine = await hosts.start('sshd');
    agent = await DrivenAgent.start(machine);
    await machine.sh('systemctl enable --now ssh');
  });
  afterAll(() => hosts.end());

  const trial = (changed: ResolvedResource, service: object = {}): ResolvedResource[] => {
    const ssh = { name: 'ssh', running: true, confirm_port: 22, confirm_banner: 'SSH-2.0-', ...service };
    const triggers = [changed.key];
    const links = { id: 'sshd', depends_on: triggers, reload_on: triggers, immediate_on: triggers };
    return [changed, { ...resolved({ 'service-systemd': ssh }), ...links }];
  };
  const apply = (changed: ResolvedResource, service?: object) => agent.run(operation('apply', trial(changed, service)));
  const config = (content: string, more: object = {}) => file(dropIn, { content, ...more });
  const banner = () => machine.sh(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/22; head -c 8 <&3'`);
  const effective = (setting: string) => machine.sh(`sshd -T | grep -i '^${setting} '`);

  test('keeps a change if the SSH server still sends its banner, and reverts it otherwise', async () => {
    const good = 'MaxAuthTries 3\n';
    expect((await apply(config(good))).results).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
    expect(await effective('maxauthtries')).toBe('maxauthtries 3\n');
    expect((await apply(config(good))).results.map(({ action }) => action)).toEqual(['none', 'none']);

    const { results, finished } = await apply(config(unusable));
    expect(finished.status).toBe('failed');
    expect(results).toMatchObject([
      {
        status: 'failed',
        message: expect.stringMatching(/ssh\.service .*former state is restored, and `sshd` followed/s),
      },
      { status: 'skipped' },
    ]);
    expect(await machine.sh(`cat ${dropIn}`)).toBe(good);
    expect(await banner()).toBe('SSH-2.0-');

    // The machine is still in the state of the last successful apply.
    expect((await agent.run(operation('drift', trial(config(good))))).results).toEqual([]);
  });

  test('restores the main file after an edit that sshd refuses, and refuses content that does not validate', async () => {
    const before = await machine.sh(`cat ${main}`);
    const { results } = await apply(line(main, 'Nonsense yes'));
    expect(results[0]).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/could not be reloaded.*former state is restored/s),
    });
    expect(await machine.sh(`cat ${main}`)).toBe(before);
    const refused = await apply(config('Nonsense yes\n', { validate: 'sshd -t -f %' }));
    expect(refused.results[0]).toMatchObject({ status: 'failed', message: expect.stringContaining('`validate`') });
    expect(await banner()).toBe('SSH-2.0-');
  });

  test('removes a new file if the confirmation fails, and does not print the secret in the confirmation command', async () => {
    await machine.sh(`rm -f ${dropIn}; systemctl reload ssh`);
    const check = { confirm_port: null, confirm_banner: null, confirm_command: 'sshd -T | grep -qx "maxauthtries 6"' };
    const { results } = await apply(config('MaxAuthTries 2\n'), check);
    expect(results[0]).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('`confirm_command` exited'),
    });
    await machine.sh(`! test -e ${dropIn}`);
    expect(await banner()).toBe('SSH-2.0-');
  });

  test('restores the previous file if the agent is killed at any step of the trial', async () => {
    const good = config('MaxAuthTries 4\n');
    await apply(good);
    const order = () => operation('apply', trial(config(unusable)));
    const { points } = await agent.killedAt(order(), 0);
    const [first, last] = [points.indexOf('intents:synced'), points.indexOf('undo:restored')];
    expect(last).toBeGreaterThan(first);
    for (const at of sampled([...Array(last - first + 2).keys()], 2)) {
      const { reported } = await agent.killedAt(order(), first + at + 1);
      const name = `${at}, ${points[first + at]}`;
      expect(reported.results[0], name).toMatchObject({
        status: 'failed',
        message: expect.stringContaining('former state is restored'),
      });
      expect(await machine.sh(`cat ${dropIn}`), name).toBe('MaxAuthTries 4\n');
      expect(await banner(), name).toBe('SSH-2.0-');
    }
  });
});
