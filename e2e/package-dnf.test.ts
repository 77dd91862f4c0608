import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Told } from '../agent/src/converge/test/agent.ts';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { installedRpms, packageDnfSubjects, rpmRoot } from './hosts/rpm-root.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Debian has dnf: with a database of rpm's of its own it manages packages as it does on Fedora. */

const open = async () => TestHosts.open({ base: await rpmRoot() });

describeSubjects('providers on a test host with dnf', packageDnfSubjects, open);

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by dnf${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('dnf');
    agent = await DrivenAgent.start(machine);
  }, 600_000);
  afterAll(() => hosts?.end());

  const of = (names: readonly (string | [name: string, fields: object])[]) =>
    names.map((entry) => {
      const [name, fields] = typeof entry === 'string' ? [entry, {}] : entry;
      const resource = resolved({ 'package-dnf': { name, ...fields } });
      return { ...resource, id: name };
    });
  const apply = (...names: (string | [string, object])[]) => agent.run(operation('apply', of(names)));
  const ends = ({ results }: Told) => Object.fromEntries(results.map(({ identity, status }) => [identity, status]));
  const messageOf = ({ results }: Told, name: string) => results.find(({ identity }) => identity === name)?.message;
  const installed = async () => (await machine.sh(installedRpms)).trim().split('\n');

  test('one that cannot be installed fails by itself, with the reason that dnf or its own script gave', async () => {
    const told = await apply('other', 'unmet', 'refuses', 'grumbles', 'nosuch', 'webserver');
    expect(ends(told)).toEqual({
      other: 'changed',
      unmet: 'failed',
      refuses: 'failed',
      grumbles: 'changed',
      nosuch: 'failed',
      webserver: 'failed',
    });
    expect(messageOf(told, 'unmet')).toContain('nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch');
    expect(messageOf(told, 'refuses')).toContain('its %prein scriptlet failed, exit status 1: I will not');
    expect(messageOf(told, 'grumbles')).toContain('installed, but its %post scriptlet failed');
    expect(messageOf(told, 'nosuch')).toContain('no repository of this machine offers a package nosuch');
    expect(messageOf(told, 'webserver')).toContain('declare one of those that provide it: web');
    expect(await installed()).toEqual(['grumbles 0:1.0-1', 'lib 0:2.0-1', 'other 0:1.0-1', 'shell 0:1.0-1']);
  });

  test('what is removed takes along what came with it and nobody needs, and nothing of others', async () => {
    // By hand: it needs what came with what is ours.
    await machine.sh('dnf -qy install needs');
    const told = await apply('grumbles');
    expect(ends(told)).toEqual({ other: 'changed', grumbles: 'unchanged' });
    expect(await installed()).toEqual(['grumbles 0:1.0-1', 'lib 0:2.0-1', 'needs 0:1.0-1', 'shell 0:1.0-1']);
    const refused = await apply('grumbles', ['lib', { ensure: 'absent' }]);
    expect(ends(refused)).toEqual({ grumbles: 'unchanged', lib: 'failed' });
    expect(messageOf(refused, 'lib')).toContain('others need it and would go with it: needs');
    await machine.sh('rpm --erase needs');
    await apply();
    // It was there when it was declared absent, so it is there when nobody says anything about it any more.
    expect(await installed()).toEqual(['lib 0:2.0-1']);
    await machine.sh('rpm --erase lib');
  });

  test('another that has the packages for itself is waited for', async () => {
    const byHand = machine.run(['dnf', '-qy', 'install', 'slow']);
    await machine.sh('for i in $(seq 200); do rpm -q slow && exit; sleep 0.05; done');
    const told = await apply('web');
    expect(ends(told)).toEqual({ web: 'changed' });
    expect((await byHand).code).toBe(0);
    await apply();
    await machine.sh('rpm --erase slow');
  });

  test('the old half that a power cut left of an upgrade goes once the agent is back', async () => {
    await machine.sh(`cd /srv/rpms/noarch
      rpm --install lib-2.0-1.noarch.rpm hello-0.9-1.noarch.rpm
      rpm --install --justdb --force --nodeps --oldpackage hello-1.0-1.noarch.rpm`);
    const halves = async () => (await installed()).filter((line) => line.startsWith('hello '));
    expect(await halves()).toEqual(['hello 0:1.0-1', 'hello 1:0.9-1']);
    const beforeDnf = { point: 'process:before', nth: 1 };
    const { points, told } = await agent.killedAt(operation('apply', of(['web'])), beforeDnf);
    expect(points.at(-1)).toBe('process:before');
    expect(ends(told)).toEqual({ web: 'changed' });
    expect(await halves()).toEqual(['hello 1:0.9-1']);
    await apply();
    await machine.sh('rpm --erase hello lib');
  });

  test('names that dnf takes for more than one package are refused', async () => {
    const told = await agent.run(operation('plan', of(['@core', 'hel*'])));
    expect(ends(told)).toEqual({ '@core': 'failed', 'hel*': 'failed' });
    expect(messageOf(told, '@core')).toContain('manages packages by their names');
  });
});
