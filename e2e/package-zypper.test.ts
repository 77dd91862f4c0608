import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import type { Machine } from './hosts/machine.ts';
import { ends, messageOf, PackageAgent } from './hosts/packages/package-agent.ts';
import {
  expectExamplesApplied,
  expectLibKept,
  expectRepositoryUsed,
  expectWait,
  testInstallations,
} from './hosts/packages/package-scenarios.ts';
import { rpms } from './hosts/packages/rpm-packages.ts';
import { describeRpmFiles } from './hosts/packages/rpm-scenarios.ts';
import { packageZypperSubjects, zypper, zypperRoot } from './hosts/packages/zypper-root.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

/** Tests packages with Debian's zypper, which manages its own rpm database as on openSUSE. */

const open = async () => TestHosts.open({ base: await zypperRoot() });

describeSubjects('providers on a test host with zypper', packageZypperSubjects, open);

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by zypper${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let packages: PackageAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('zypper');
    packages = await PackageAgent.start(machine, zypper);
  });
  afterAll(() => hosts?.end());

  const apply: PackageAgent['apply'] = (...names) => packages.apply(...names);
  const installed = () => packages.installed();

  testInstallations(() => packages, {
    failing: {
      unmet: 'nothing provides nowhere-to-be-found needed by',
      refuses: 'its %prein scriptlet failed, exit status 1: I will not',
    },
    grumbles: 'its %post scriptlet failed',
    brought: ['shell'],
  });

  /** These tests do not depend on each other. */
  const testSome = someTests(test, 3, 'packages by zypper');

  test('the examples of the documentation are planned as they are applied, and removed', () =>
    expectExamplesApplied(packages));

  testSome('an update of everything leaves a package on hold, and the module still changes it', async () => {
    const held = (version: string) => apply(['hello', { version, hold: true }]);
    expect(ends(await held('1.0'))).toEqual({ hello: 'changed' });
    await machine.sh('zypper -n update');
    expect(await installed()).toContain('hello 0:1.0-1');
    expect(ends(await held('1.1'))).toEqual({ hello: 'changed' });
    await machine.sh('zypper -n update');
    expect(await installed()).toContain('hello 0:1.1-1');
    expect(await machine.sh('zypper locks')).toContain('hello');
    await apply();
    expect(await machine.sh('test ! -e /etc/zypp/locks && echo gone')).toBe('gone\n');
  });

  testSome('locks that others wrote keep their bytes, and their file keeps its mode', async () => {
    await machine.sh(`printf '# caf\\303\\251\\ntype: package\\nsolvable_name: nothing\\n' > /etc/zypp/locks
      chmod 640 /etc/zypp/locks; cp /etc/zypp/locks /tmp/locks`);
    expect(ends(await apply(['hello', { version: '1.0', hold: true }]))).toEqual({ hello: 'changed' });
    await machine.sh('zypper -n update');
    expect(await installed()).toContain('hello 0:1.0-1');
    const locks = await machine.sh('zypper locks');
    for (const name of ['hello', 'nothing']) expect(locks).toContain(name);
    await apply();
    expect(await machine.sh('cmp /etc/zypp/locks /tmp/locks; stat -c %a /etc/zypp/locks')).toBe('640\n');
    await machine.sh('rm /etc/zypp/locks /tmp/locks');
  });

  testSome('a plan and an apply use a repository that the same operation adds', () =>
    expectRepositoryUsed(
      packages,
      resolved({
        'file-unix': {
          path: '/etc/zypp/repos.d/extra.repo',
          content: '[extra]\nname=extra\nbaseurl=file:///srv/extra\nenabled=1\ngpgcheck=0\n',
        },
      }),
    ),
  );

  testSome('a package that a user locked is neither changed nor removed', async () => {
    await machine.sh("zypper -n install hello=1.0; zypper -n addlock 'hel*'");
    const refused = await apply(['hello', { version: '1.1' }]);
    expect(messageOf(refused, 'hello')).toContain('locked in /etc/zypp/locks on this machine');
    expect(messageOf(await apply(['hello', { hold: false }]), 'hello')).toContain('a pattern in /etc/zypp/locks');
    expect(ends(await apply(['hello', { hold: true }]))).toEqual({ hello: 'unchanged' });
    await apply();
    await machine.sh('rm /etc/zypp/locks; zypper -n remove hello lib');
  });

  testSome('an installation waits for another zypper that holds the lock', () => expectWait(packages));

  testSome('a removal keeps packages that others install after its query and before its start', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(
      `case $args in
      *" --erase "*) /usr/bin/rpm -q needs > /dev/null || /usr/bin/zypper -n install needs > /dev/null 2>&1 ;;
      esac`,
      'rpm',
    );
    await expectLibKept(packages, await apply());
  });

  testSome('a removal keeps packages that others install while it waits for the lock', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(
      `case $args in
      *" --dry-run "*) if ! test -e /run/locks-met; then ${packages.holdLock('needs')}
        fi${packages.meetLock} ;;
      esac`,
    );
    const reported = await apply();
    expect(await packages.locksMet()).toBe(1);
    await machine.sh('rpm --erase slow');
    await expectLibKept(packages, reported);
  });

  testSome('a restarted agent removes only the old halves of an interrupted transaction', async () => {
    await machine.sh(`cd ${rpms}
      rpm --install lib-2.0-1.noarch.rpm hello-1.0-1.noarch.rpm engine-1.0-1.noarch.rpm
      rpm --install --justdb --force --nodeps engine-2.0-1.noarch.rpm`);
    // Exits after the new version is installed and before the old one is erased, once the agent has closed its output file.
    await packages.replace(`case $args in
      *" --dry-run "*) ;;
      *" install "*)
        rpm --install --justdb --force --nodeps ${rpms}/hello-1.1-1.noarch.rpm
        while ls -l /proc/$PPID/fd | grep -q /run/.muster-; do sleep 0.05; done
        exit 1 ;;
    esac`);
    const started = { point: 'process:after', nth: 1 };
    const upgrade = operation('apply', packages.of(['hello', { version: '1.1' }]));
    const { points, reported } = await packages.agent.interruptedAt(upgrade, started, 'stop');
    expect(points.at(-1)).toBe(started.point);
    expect(ends(reported)).toEqual({ hello: 'changed' });
    await packages.restorePrograms();
    const versions = async () => (await installed()).filter((line) => /^(hello|engine) /.test(line));
    const kept = ['engine 0:1.0-1', 'engine 0:2.0-1'];
    expect(await versions()).toEqual([...kept, 'hello 0:1.1-1']);
    await machine.sh('rpm --erase --allmatches engine');
    expect(ends(await apply())).toEqual({ hello: 'changed' });
    expect(await versions()).toEqual(['hello 0:1.0-1']);
    await packages.remove('hello', 'lib');
  });

  describeRpmFiles(() => packages, {
    name: 'idiom-packages-zypper',
    family: 'suse',
    replacements: {
      'https://packages.example.com/suse': 'file:///srv/extra',
      'gpgcheck=1': 'gpgcheck=0',
      'name: curl': 'name: web',
    },
  });
});
