import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { comparePacmanVersions } from '../agent/src/host/packages/pacman/pacman-version.ts';
import { parseVersion } from '../agent/src/host/packages/rpm-version.ts';
import { expectModuleApplied } from './hosts/documentation/documented-module.ts';
import type { Machine } from './hosts/machine.ts';
import { ends, messageOf, PackageAgent } from './hosts/packages/package-agent.ts';
import {
  expectExamplesApplied,
  expectLibKept,
  expectRepositoryUsed,
  expectWait,
  testInstallations,
} from './hosts/packages/package-scenarios.ts';
import { packagePacmanSubjects, pacman, pacmanRoot } from './hosts/packages/pacman-root.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

/** Tests packages with Debian's pacman, which manages its own database as on Arch Linux. */

const open = async () => TestHosts.open({ base: await pacmanRoot() });

describeSubjects('providers on a test host with pacman', packagePacmanSubjects, open);

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by pacman${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let packages: PackageAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('pacman');
    packages = await PackageAgent.start(machine, pacman);
  });
  afterAll(() => hosts?.end());

  const apply: PackageAgent['apply'] = (...names) => packages.apply(...names);
  const installed = () => packages.installed();

  testInstallations(() => packages, {
    failing: { unmet: "unable to satisfy dependency 'nowhere-to-be-found' required by unmet" },
    grumbles: 'its script failed: I would rather not',
    brought: [],
  });

  test('the examples of the documentation are planned as they are applied, and removed', () =>
    expectExamplesApplied(packages));

  test('the idioms of the documentation are planned as they are applied, and removed', async () => {
    const before = await packages.installed();
    const replacements = {
      '[example]': '[extra]',
      'https://packages.example.com/arch': 'file:///srv/pacman/extra',
      'name: curl': 'name: web',
    };
    await expectModuleApplied(packages.agent, 'idiom-packages-pacman', { family: 'arch', replacements });
    expect(await packages.installed()).toEqual(before);
  });

  test('the agent orders versions as vercmp does', async () => {
    const parts = [
      '1',
      '1.0',
      '1.0.1',
      '1.0a',
      '1.0.a',
      '1.0rc',
      '1.00',
      '1..0',
      '1.0.',
      '1_0',
      '1a',
      'a',
      '2',
      '10',
      '1.0+2',
    ];
    const versions = parts.flatMap((part) => [`${part}-1`, `1:${part}-2`]);
    const pairs = versions.flatMap((a, at) => versions.slice(at).map((b) => [a, b] as const));
    const said = await machine.sh(pairs.map(([a, b]) => `vercmp '${a}' '${b}'`).join('\n'));
    const ours = pairs.map(([a, b]) => Math.sign(comparePacmanVersions(parseVersion(a), parseVersion(b))));
    const different = said
      .trim()
      .split('\n')
      .flatMap((line, at) => (Number(line) === ours[at] ? [] : [[pairs[at], line]]));
    expect(different).toEqual([]);
  });

  /** These tests do not depend on each other. */
  const testSome = someTests(test, 3, 'packages by pacman');

  testSome('an upgrade of everything leaves a package on hold, and the module still changes it', async () => {
    const held = (version: string) => apply(['hello', { version, hold: true }]);
    expect(ends(await held('1.0'))).toEqual({ hello: 'changed' });
    await machine.sh('pacman -Su --noconfirm');
    expect(await installed()).toContain('hello 1.0-1');
    expect(ends(await held('0.9'))).toEqual({ hello: 'changed' });
    expect(await installed()).toContain('hello 1:0.9-1');
    expect(await machine.sh('pacman-conf IgnorePkg')).toBe('hello\n');
    await apply();
    expect(await machine.sh('pacman-conf IgnorePkg')).toBe('');
  });

  testSome(
    'a repository that the same operation adds is used, and pacman.conf keeps its bytes and its mode',
    async () => {
      await machine.sh(`printf '# caf\\303\\251\\n' >> /etc/pacman.conf; chmod 640 /etc/pacman.conf
      cp /etc/pacman.conf /tmp/pacman.conf`);
      const content = '[extra]\nServer = file:///srv/pacman/extra\n';
      await expectRepositoryUsed(
        packages,
        resolved({ 'block-unix': { path: '/etc/pacman.conf', marker: 'extra', content } }),
      );
      expect(await machine.sh('cmp /etc/pacman.conf /tmp/pacman.conf; stat -c %a /etc/pacman.conf')).toBe('640\n');
      await machine.sh("sed -i '/caf/d' /etc/pacman.conf; chmod 644 /etc/pacman.conf; rm /tmp/pacman.conf");
    },
  );

  testSome('a package that a user ignores is neither changed nor removed', async () => {
    await machine.sh("pacman -S --noconfirm hello; sed -i 's/^HoldPkg.*/&\\nIgnorePkg = hel*/' /etc/pacman.conf");
    expect(messageOf(await apply(['hello', { version: '1.0' }]), 'hello')).toContain(
      'in IgnorePkg of /etc/pacman.conf',
    );
    expect(messageOf(await apply(['hello', { hold: false }]), 'hello')).toContain('a pattern in /etc/pacman.conf');
    expect(ends(await apply(['hello', { hold: true }]))).toEqual({ hello: 'unchanged' });
    await machine.sh(`mkdir -p /etc/pacman.d; echo 'IgnorePkg = hello' > /etc/pacman.d/ignored
      sed -i 's|^IgnorePkg.*|Include = /etc/pacman.d/ignored|' /etc/pacman.conf`);
    const skipped = await apply(['hello', { version: '1.0' }]);
    expect(ends(skipped)).toEqual({ hello: 'failed' });
    expect(await installed()).toContain('hello 1.1-1');
    await apply();
    await machine.sh(`sed -i '\\|^Include = /etc/pacman.d/ignored|d' /etc/pacman.conf; rm /etc/pacman.d/ignored
      pacman -R --noconfirm hello lib`);
  });

  testSome('an installation waits for another pacman that holds the lock', () => expectWait(packages));

  testSome('a removal keeps packages that others install after its query and before its start', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(`case $args in
      *" --print "*) ;;
      *" --remove "*) /usr/bin/pacman -Q needs > /dev/null 2>&1 || /usr/bin/pacman -S --noconfirm needs > /dev/null ;;
    esac`);
    await expectLibKept(packages, await apply());
  });

  testSome('a restarted agent removes the lock that a killed pacman left', async () => {
    await packages.replace(`case $args in
      *" --print "*) ;;
      *" --needed "*)
        if ! test -e /run/died; then
          touch /run/died /run/slow-waits
          /usr/bin/pacman "$@" &
          until ${pacman.runsSlow}; do sleep 0.05; done
          kill -9 $!
          rm /run/slow-waits
          exit 1
        fi ;;
    esac`);
    const unreported = { point: 'batch:ended', nth: 1 };
    const { points, reported } = await packages.agent.killedAt(operation('apply', packages.of('slow')), unreported);
    expect(points.at(-1)).toBe(unreported.point);
    // pacman records a package before its script runs.
    expect(ends(reported)).toEqual({ slow: 'changed' });
    expect(await machine.sh('test -e /run/died && ! test -e /var/lib/pacman/db.lck && echo removed')).toBe('removed\n');
    expect(ends(await apply('slow', 'web'))).toEqual({ slow: 'unchanged', web: 'changed' });
    await packages.restorePrograms();
    await apply();
  });

  testSome('a refresh of the repositories completes and releases the lock if the agent is killed', async () => {
    await machine.run(['sh', '-euc', 'cat > /run/transfer; chmod 755 /run/transfer'], {
      input: `#!/bin/sh
if test -e /run/agent; then kill -9 "$(cat /run/agent)"; rm /run/agent; fi
cp "\${1#file://}" "$2"
`,
    });
    await machine.sh("sed -i 's|^HoldPkg.*|&\\nXferCommand = /run/transfer %u %o|' /etc/pacman.conf");
    // The agent is the parent of each pacman.
    await packages.replace(`case $args in
      *" --refresh "*)
        echo $PPID > /run/agent
        /usr/bin/pacman "$@"
        echo $? > /run/refreshed
        exit ;;
    esac`);
    await expect(packages.plan('web')).rejects.toThrow('exited');
    await machine.sh('until test -e /run/refreshed; do sleep 0.05; done; rm /usr/local/sbin/pacman');
    expect(await machine.sh('cat /run/refreshed; ls /var/lib/pacman')).toBe('0\nlocal\nsync\n');
    await machine.sh('sed -i /XferCommand/d /etc/pacman.conf');
    packages = await PackageAgent.start(machine, pacman);
    expect(ends(await packages.plan('web'))).toEqual({ web: 'would_change' });
  });
});
