import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import type { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { dnf, packageDnfSubjects, rpmRoot } from './hosts/packages/dnf-root.ts';
import { ends, messageOf, type Package, PackageAgent } from './hosts/packages/package-agent.ts';
import { expectLibKept, expectWait, testInstallations } from './hosts/packages/package-scenarios.ts';
import { rpms } from './hosts/packages/rpm-packages.ts';
import { describeRpmFiles } from './hosts/packages/rpm-scenarios.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

/** Tests packages with Debian's dnf, which manages its own rpm database as on Fedora. */

const open = async () => TestHosts.open({ base: await rpmRoot() });

describeSubjects('providers on a test host with dnf', packageDnfSubjects, open);

const reason = noHosts();

describe.skipIf(reason !== null)(`packages by dnf${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let packages: PackageAgent;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('dnf');
    packages = await PackageAgent.start(machine, dnf);
    agent = packages.agent;
  });
  afterAll(() => hosts?.end());

  const of = (names: readonly Package[]) => packages.of(...names);
  const apply: PackageAgent['apply'] = (...names) => packages.apply(...names);
  const installed = () => packages.installed();

  testInstallations(() => packages, {
    failing: {
      unmet: 'nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch',
      refuses: 'its %prein scriptlet failed, exit status 1: I will not',
    },
    grumbles: 'its %post scriptlet failed',
    brought: ['shell'],
  });

  /** These tests are independent, so `npm test` runs only some of them. */
  const testSome = someTests(test, 3, 'packages by dnf');

  testSome('an installation waits for another dnf that holds the lock', () => expectWait(packages));

  testSome('a stream of a module decides the version of its packages, also in the same apply', async () => {
    const ofStream = (stream: string) => [
      { ...resolved({ 'dnf-module': { name: 'engine', stream } }), id: 'stream' },
      { ...resolved({ 'package-dnf': { name: 'engine', version: `${stream}.*` } }), id: 'engine' },
    ];
    expect(ends(await agent.run(operation('plan', of(['engine']))))).toEqual({ engine: 'failed' });
    for (const stream of ['2', '1']) {
      expect(ends(await agent.run(operation('plan', ofStream(stream))))).toEqual({ engine: 'would_change' });
      const reported = await agent.run(operation('apply', ofStream(stream)));
      expect(reported.results.map(({ status, message }) => [status, message?.includes('downgrade') ?? false])).toEqual([
        ['changed', false],
        ['changed', stream === '1'],
      ]);
      expect(await installed()).toContain(`engine 0:${stream}.0-1`);
    }
    const unknown = await agent.run(operation('plan', [resolved({ 'dnf-module': { name: 'engine', stream: '9' } })]));
    expect(unknown.results[0]).toMatchObject({ status: 'failed', message: expect.stringContaining('engine:9') });
    await apply();
    expect(await machine.sh('ls /etc/dnf/modules.d')).toBe('');
  });

  testSome('a package comes from the declared repository, and its dependencies from any', async () => {
    await machine.sh(`mkdir /srv/extra; cp ${rpms}/hello-1.0-1.noarch.rpm /srv/extra; createrepo_c --quiet /srv/extra
      printf '[extra]\\nname=extra\\nbaseurl=file:///srv/extra\\ngpgcheck=0\\nenabled=0\\n' > /etc/yum.repos.d/extra.repo`);
    const origin = async () =>
      (await machine.sh("dnf -q repoquery --installed --qf '%{evr} %{from_repo}' hello")).trim();
    const extra: [string, object] = ['hello', { from: 'extra', version: 'latest' }];
    expect(ends(await apply(extra, 'other'))).toEqual({ hello: 'changed', other: 'changed' });
    expect(await origin()).toBe('1.0-1 extra');
    expect(await installed()).toEqual(expect.arrayContaining(['lib 0:2.0-1', 'other 0:1.0-1']));
    expect(ends(await apply(extra, 'other'))).toEqual({ hello: 'unchanged', other: 'unchanged' });
    expect(ends(await apply(['hello', { version: '1.1' }]))).toEqual({ hello: 'changed', other: 'changed' });
    expect(await origin()).toBe('1.1-1 tests');
    expect(ends(await apply(['hello', { from: 'extra', version: '1.0' }]))).toEqual({ hello: 'changed' });
    expect(await origin()).toBe('1.0-1 extra');
    const lacking = await agent.run(
      operation(
        'plan',
        of([
          ['hello', { from: 'extra', version: '1.1' }],
          ['web', { from: 'nosuch' }],
        ]),
      ),
    );
    expect(messageOf(lacking, 'hello')).toContain('the repository extra does not offer hello 1.1, only 1.0-1');
    expect(messageOf(lacking, 'web')).toMatch(/the repository nosuch does not offer a package web; .*Unknown repo/);
    await apply();
    expect((await installed()).filter((line) => /^(hello|lib|other) /.test(line))).toEqual([]);
    await machine.sh('rm -r /srv/extra /etc/yum.repos.d/extra.repo');
  });

  testSome('an upgrade of everything leaves a package on hold, and the module still changes it', async () => {
    const held = (version: string) => apply(['hello', { version, hold: true }]);
    expect(ends(await held('1.0'))).toEqual({ hello: 'changed' });
    await machine.sh('dnf -qy upgrade');
    expect(await installed()).toContain('hello 0:1.0-1');
    expect(ends(await held('1.1'))).toEqual({ hello: 'changed' });
    expect(await machine.sh('dnf -qy upgrade; cat /etc/dnf/plugins/versionlock.list')).toBe('hello-0:1.1-1.*\n');
    expect(await installed()).toContain('hello 0:1.1-1');
    await machine.sh('rpm --erase hello');
    expect(ends(await apply())).toEqual({ hello: 'changed' });
    expect(await machine.sh('cat /etc/dnf/plugins/versionlock.list; rpm --erase lib')).toBe('');
  });

  testSome('a list of locks elsewhere keeps its mode and the bytes of its other lines', async () => {
    const settings = '/etc/dnf/plugins/versionlock.conf';
    await machine.sh(`cp ${settings} /tmp/versionlock.conf; sed -i /locklist/d ${settings}
      echo 'locklist = /etc/dnf/locks' >> ${settings}
      printf '# caf\\303\\251\\npython3-foo-bar\\n' > /etc/dnf/locks; chmod 640 /etc/dnf/locks; cp /etc/dnf/locks /tmp/locks`);
    expect(ends(await apply(['hello', { version: '1.0', hold: true }]))).toEqual({ hello: 'changed' });
    await machine.sh('grep -q ^hello-0:1.0-1 /etc/dnf/locks; dnf -qy upgrade');
    expect(await installed()).toContain('hello 0:1.0-1');
    await apply();
    expect(await machine.sh('cmp /etc/dnf/locks /tmp/locks; stat -c %a /etc/dnf/locks')).toBe('640\n');
    await machine.sh(`mv /tmp/versionlock.conf ${settings}; rm /etc/dnf/locks /tmp/locks`);
  });

  // Shell text that runs all commands except the removal itself, which follows a query of the packages to remove.
  const removal = `case $args in
    *" --assumeno "*) exec /usr/bin/dnf "$@" ;;
    *" remove "* | *" replay "*) ;;
    *) exec /usr/bin/dnf "$@" ;;
  esac`;
  testSome('a removal keeps packages that others install while it waits for the lock', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(`${removal}
    if ! test -e /run/locks-met; then ${packages.holdLock('needs')}
    fi${packages.meetLock}`);
    const reported = await apply();
    expect(await packages.locksMet()).toBe(1);
    await machine.sh('rpm --erase slow');
    await expectLibKept(packages, reported);
  });

  /**
   * Shell text that runs dnf while another dnf holds the lock. Lets the other dnf finish after this dnf has encountered
   * the lock five times.
   */
  const heldForLong = () => `case $args in
      *" --assumeno "*) exec /usr/bin/dnf "$@" ;;
      *" install "* | *" replay "*) ;;
      *) exec /usr/bin/dnf "$@" ;;
    esac
    if ! test -e /run/locks-met; then ${packages.holdLock()}
    fi
    /usr/bin/dnf "$@" > /run/said 2>&1
    code=$?
    cat /run/said
    grep -q 'already locked by' /run/said || exit $code
    echo met >> /run/locks-met
    if test "$(wc -l < /run/locks-met)" -ge 5; then
      rm -f /run/slow-waits
      until test -e /run/installed; do sleep 0.05; done
    fi
    exit $code`;
  const released = () =>
    machine.sh('rm -f /run/slow-waits; until test -e /run/installed; do sleep 0.05; done; rpm --erase slow');
  const process = (nth: number) => ({ point: 'process:before', nth });
  /**
   * Interruption points. Each removal attempt starts two processes; the first process queries the packages to remove.
   */
  const [secondInstallation, secondRemoval] = [process(2), process(4)];

  testSome('a canceled installation that waits for the lock stops and installs nothing later', async () => {
    await packages.replace(heldForLong());
    const { points, reported } = await agent.interruptedAt(
      operation('apply', of(['web'])),
      secondInstallation,
      'cancel',
    );
    expect(reported.results).toMatchObject([
      { identity: 'web', status: 'failed', message: expect.stringContaining('because the operation was canceled') },
    ]);
    expect(points.filter((point) => point === secondInstallation.point)).toHaveLength(2);
    expect(await packages.locksMet()).toBe(2);
    await released();
    await packages.restorePrograms();
    expect(await installed()).not.toContain('web 0:1.0-1');
    expect(ends(await apply('web'))).toEqual({ web: 'changed' });
    await apply();
  });

  testSome('a canceled removal that waits for the lock stops and keeps the package', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(heldForLong());
    const { reported } = await agent.interruptedAt(operation('apply'), secondRemoval, 'cancel');
    expect(reported.results).toMatchObject([
      { identity: 'lib', status: 'failed', message: expect.stringContaining('because the operation was canceled') },
    ]);
    expect(await packages.locksMet()).toBe(2);
    expect(await installed()).toContain('lib 0:2.0-1');
    await released();
    await packages.restorePrograms();
    expect(ends(await apply())).toEqual({ lib: 'changed' });
    expect(await installed()).not.toContain('lib 0:2.0-1');
  });

  testSome('a removal completes once if the agent is killed while it waits for the lock', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(heldForLong());
    const { points, reported } = await agent.killedAt(operation('apply'), secondRemoval);
    expect(points.at(-1)).toBe(secondRemoval.point);
    expect(ends(reported)).toEqual({ lib: 'changed' });
    expect(await packages.locksMet()).toBe(5);
    await released();
    await packages.restorePrograms();
    expect(await installed()).not.toContain('lib 0:2.0-1');
  });

  testSome('a removal keeps packages that others install after its query and before its start', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await packages.replace(`${removal}
    rpm -q needs > /dev/null || /usr/bin/dnf -qy install needs > /dev/null 2>&1`);
    await expectLibKept(packages, await apply());
  });

  testSome(
    'a removal keeps packages that others install after dnf has resolved it and before dnf holds the lock',
    async () => {
      expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
      const plugin = '/usr/lib/python3/dist-packages/dnf-plugins/meanwhile.py';
      await machine.run(['sh', '-euc', `mkdir -p "$(dirname ${plugin})"; cat > ${plugin}`], {
        input: `import dnf, os
class Meanwhile(dnf.Plugin):
    name = 'meanwhile'
    def resolved(self):
        if not self.base.conf.assumeno and any(p.name == 'lib' for p in self.base.transaction.remove_set):
            os.system('rpm -q needs || rpm --install /srv/rpms/noarch/needs-1.0-1.noarch.rpm')
`,
      });
      await packages.replace('');
      const reported = await apply();
      await machine.sh(`rm ${plugin}`);
      await expectLibKept(packages, reported);
    },
  );

  testSome('a plan and an apply use a dnf repository that a file or a package in the same operation adds', async () => {
    await machine.sh(`mkdir -p /srv/build /srv/release /srv/extra
      cat > /srv/build/it.spec <<'END'
Name: extra-release
Version: 1.0
Release: 1
Summary: made for tests
License: none
BuildArch: noarch
%description
Made for tests.
%install
mkdir -p %{buildroot}/etc/yum.repos.d
printf '[extra]\\nname=extra\\nbaseurl=file:///srv/extra\\ngpgcheck=0\\n' > %{buildroot}/etc/yum.repos.d/extra.repo
%files
/etc/yum.repos.d/extra.repo
END
      rpmbuild -bb --quiet --define '_topdir /srv/build' --define '_rpmdir /srv/release' /srv/build/it.spec
      mv /srv/rpms/noarch/needs-* /srv/extra
      rm -r /srv/rpms/repodata
      for repository in /srv/release /srv/extra /srv/rpms; do createrepo_c --quiet $repository; done
      dnf -q clean all`);
    const content = '[release]\nname=release\nbaseurl=file:///srv/release\ngpgcheck=0\n';
    const source = resolved({ 'file-unix': { path: '/etc/yum.repos.d/release.repo', content } });
    const [there, release, extra] = of([['web', { version: 'latest' }], 'extra-release', 'needs']);
    if (there === undefined || release === undefined || extra === undefined) throw new Error('a resource is missing');
    expect(ends(await apply('web'))).toEqual({ web: 'changed' });
    const resources = [there, source, release, { ...extra, depends_on: [release.key] }];
    const planned = await agent.run(operation('plan', resources));
    expect(planned.results).toMatchObject([
      { status: 'unchanged' },
      { status: 'would_change' },
      {
        status: 'would_change',
        message: expect.stringMatching(
          /^will be available after .*; now no repository of this machine offers a package extra-release/,
        ),
      },
      { status: 'would_change', message: expect.stringMatching(/^will be available after .*`extra-release`; now no/) },
    ]);
    const reported = await agent.run(operation('apply', resources));
    expect(reported.results.map(({ status }) => status)).toEqual(['unchanged', 'changed', 'changed', 'changed']);
    expect(await installed()).toContain('needs 0:1.0-1');
    expect((await agent.run(operation('apply', resources))).results.map(({ status }) => status)).toEqual(
      resources.map(() => 'unchanged'),
    );
    expect((await apply()).results.map(({ status }) => status)).toEqual(resources.map(() => 'changed'));
    await machine.sh(
      'mv /srv/extra/needs-* /srv/rpms/noarch; rm -r /srv/rpms/repodata; createrepo_c --quiet /srv/rpms; dnf -q clean all',
    );
  });

  testSome('a restarted agent removes the old version of a package whose upgrade was interrupted', async () => {
    await machine.sh(`cd ${rpms}
      rpm --install lib-2.0-1.noarch.rpm hello-0.9-1.noarch.rpm
      rpm --install --justdb --force --nodeps --oldpackage hello-1.0-1.noarch.rpm`);
    const halves = async () => (await installed()).filter((line) => line.startsWith('hello '));
    expect(await halves()).toEqual(['hello 0:1.0-1', 'hello 1:0.9-1']);
    const { points, reported } = await agent.killedAt(operation('apply', of(['web'])), process(1));
    expect(points.at(-1)).toBe('process:before');
    expect(ends(reported)).toEqual({ web: 'changed' });
    expect(await halves()).toEqual(['hello 1:0.9-1']);
    await apply();
    await packages.remove('hello', 'lib');
  });

  testSome('a removal does not give up the original version of a package while no repository can be read', async () => {
    await machine.sh('dnf -qy install hello-1.1');
    const changed = async () => expect(ends(await apply(['hello', { version: '1.0' }]))).toEqual({ hello: 'changed' });
    const close = 'mv /srv/rpms/repodata /srv/repodata';
    const open = 'mv /srv/repodata /srv/rpms/repodata';
    await changed();
    // dnf considers metadata that is older than its configuration files as expired.
    await machine.sh(`${close}; find /var/cache/dnf -type f -exec touch -d '2 hours ago' {} +
      touch -d '3 hours ago' /etc/dnf/dnf.conf /etc/yum.repos.d/*`);
    expect(ends(await apply())).toEqual({ hello: 'changed' });
    expect(await installed()).toContain('hello 0:1.1-1');
    await machine.sh(open);
    await changed();
    await machine.sh(`${close}; dnf -q clean all`);
    const refused = await apply();
    expect(ends(refused)).toEqual({ hello: 'failed' });
    expect(messageOf(refused, 'hello')).toContain('hello does not get its original version 1.1-1 back');
    expect(await installed()).toContain('hello 0:1.0-1');
    await machine.sh(open);
    expect(ends(await apply())).toEqual({ hello: 'changed' });
    expect(await installed()).toContain('hello 0:1.1-1');
    await packages.remove('hello', 'lib');
  });

  describeRpmFiles(() => packages, {
    name: 'idiom-packages-dnf',
    family: 'redhat',
    replacements: {
      'https://packages.example.com/rpm/$releasever/$basearch': 'file:///srv/none',
      'name: curl': 'name: web',
      'name: python3-dnf-plugin-versionlock': 'name: needs',
      'name: httpd': 'name: hello',
      'name: htop, from: epel-testing': 'name: shell, from: tests',
      'name: nodejs, stream: "20"': 'name: engine, stream: "1"',
      'name: nodejs, version: "20.*"': 'name: engine, version: "1.*"',
    },
    // Other tests may leave `shell`, because scripts of their packages need it, and drop the modules of the repository.
    prepare: `dnf -qy remove shell
modifyrepo_c --mdtype=modules /srv/rpms/modules.yaml /srv/rpms/repodata > /dev/null; dnf -q clean all
mkdir /srv/none /srv/streams; createrepo_c --quiet /srv/none; createrepo_c --quiet /srv/streams
cat > /srv/modules.yaml << 'END'
---
document: modulemd
version: 2
data:
  name: postgresql
  stream: "16"
  version: 1
  context: aaaaaaa1
  arch: noarch
  summary: made for tests
  description: made for tests
  license: { module: [MIT] }
END
modifyrepo_c --mdtype=modules /srv/modules.yaml /srv/streams/repodata > /dev/null
printf '[streams]\\nname=streams\\nbaseurl=file:///srv/streams\\ngpgcheck=0\\n' > /etc/yum.repos.d/streams.repo`,
  });

  test.each(['@core', 'hel*'])(
    'a module must not contain the package name %s, which dnf resolves to several packages',
    (name) => {
      expect(() => of([name])).toThrow('must be the name of one package');
    },
  );
});
