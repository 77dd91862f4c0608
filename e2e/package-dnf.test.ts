import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reported } from '../agent/src/converge/test/agent.ts';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { fileServerUp, requestsTo, sha256On, urlOf } from './hosts/registries/package-files.ts';
import { installedRpms, packageDnfSubjects, rpmRoot, rpms } from './hosts/rpm-root.ts';
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
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await open();
    machine = await hosts.start('dnf');
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const of = (names: readonly (string | [name: string, fields: object])[]) =>
    names.map((entry) => {
      const [name, fields] = typeof entry === 'string' ? [entry, {}] : entry;
      const resource = resolved({ 'package-dnf': { name, ...fields } });
      return { ...resource, id: name };
    });
  const apply = (...names: (string | [string, object])[]) => agent.run(operation('apply', of(names)));
  const ends = ({ results }: Reported) => Object.fromEntries(results.map(({ identity, status }) => [identity, status]));
  const messageOf = ({ results }: Reported, name: string) => results.find(({ identity }) => identity === name)?.message;
  const installed = async () => (await machine.sh(installedRpms)).trim().split('\n');

  test('an apply reports as failed only the packages that cannot be installed, with the reason from dnf or the scriptlet', async () => {
    const reported = await apply('other', 'unmet', 'refuses', 'grumbles', 'nosuch', 'webserver');
    expect(ends(reported)).toEqual({
      other: 'changed',
      unmet: 'failed',
      refuses: 'failed',
      grumbles: 'changed',
      nosuch: 'failed',
      webserver: 'failed',
    });
    expect(messageOf(reported, 'unmet')).toContain('nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch');
    expect(messageOf(reported, 'refuses')).toContain('its %prein scriptlet failed, exit status 1: I will not');
    expect(messageOf(reported, 'grumbles')).toContain('installed, but its %post scriptlet failed');
    expect(messageOf(reported, 'nosuch')).toContain('no repository of this machine offers a package nosuch');
    expect(messageOf(reported, 'webserver')).toContain('declare a package that provides it: web');
    expect(await installed()).toEqual(['grumbles 0:1.0-1', 'lib 0:2.0-1', 'other 0:1.0-1', 'shell 0:1.0-1']);
  });

  test('removing a package also removes its unneeded dependencies, but no packages that others need', async () => {
    await machine.sh('dnf -qy install needs');
    const reported = await apply('grumbles');
    expect(ends(reported)).toEqual({ other: 'changed', grumbles: 'unchanged' });
    expect(await installed()).toEqual(['grumbles 0:1.0-1', 'lib 0:2.0-1', 'needs 0:1.0-1', 'shell 0:1.0-1']);
    const refused = await apply('grumbles', ['lib', { ensure: 'absent' }]);
    expect(ends(refused)).toEqual({ grumbles: 'unchanged', lib: 'failed' });
    expect(messageOf(refused, 'lib')).toContain('other packages depend on it and would be removed too: needs');
    await machine.sh('rpm --erase needs');
    await apply();
    // The package existed before it was declared absent, so removing the declaration restores it.
    expect(await installed()).toEqual(['lib 0:2.0-1']);
    await machine.sh('rpm --erase lib');
  });

  /** These tests are independent, so `npm test` runs only some of them. */
  const testSome = someTests(test, 3, 'packages by dnf');

  /** Replaces dnf with shell text. `$args` contains the arguments, with a space on each side. */
  const replaceDnf = (text: string) =>
    machine.run(['sh', '-euc', 'cat > /usr/local/sbin/dnf; chmod 755 /usr/local/sbin/dnf'], {
      input: `#!/bin/sh
args=" $* "
${text}
`,
    });
  const restoreDnf = () => machine.sh('rm /usr/local/sbin/dnf');
  /**
   * Returns shell text that starts another dnf in the background, which installs packages and holds the lock until
   * `/run/slow-waits` is deleted. The text waits until that dnf holds the lock.
   */
  const holdLock = (...names: string[]) => `
    touch /run/slow-waits
    rm -f /run/installed
    setsid sh -c '/usr/bin/dnf -qy install slow ${names.join(' ')}; touch /run/installed' > /dev/null 2>&1 < /dev/null &
    until rpm -q slow > /dev/null; do sleep 0.05; done`;
  /** Shell text that runs dnf. If another dnf holds the lock, it lets the other dnf finish and waits for it. */
  const meetLock = `
    /usr/bin/dnf "$@" > /run/said 2>&1
    code=$?
    cat /run/said
    if grep -q 'already locked by' /run/said; then
      echo met >> /run/locks-met
      rm -f /run/slow-waits
      until test -e /run/installed; do sleep 0.05; done
    fi
    exit $code`;
  const locksMet = () => machine.sh('wc -l < /run/locks-met; rm /run/locks-met');

  testSome('an installation waits for another dnf that holds the lock', async () => {
    await machine.sh(holdLock());
    await replaceDnf(meetLock);
    expect(ends(await apply('web'))).toEqual({ web: 'changed' });
    expect((await locksMet()).trim()).toBe('1');
    await restoreDnf();
    await apply();
    await machine.sh('rpm --erase slow');
  });

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
  const keepsLib = async (reported: Reported) => {
    expect(reported.results).toMatchObject([
      {
        identity: 'lib',
        status: 'failed',
        message: expect.stringContaining('other packages depend on it and would be removed too: needs'),
      },
    ]);
    expect(await installed()).toEqual(expect.arrayContaining(['lib 0:2.0-1', 'needs 0:1.0-1']));
    await machine.sh('rpm --erase needs');
    await restoreDnf();
    expect(ends(await apply())).toEqual({ lib: 'changed' });
  };

  testSome('a removal keeps packages that others install while it waits for the lock', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await replaceDnf(`${removal}
    if ! test -e /run/locks-met; then ${holdLock('needs')}
    fi${meetLock}`);
    const reported = await apply();
    expect((await locksMet()).trim()).toBe('1');
    await machine.sh('rpm --erase slow');
    await keepsLib(reported);
  });

  /**
   * Shell text that runs dnf while another dnf holds the lock. Lets the other dnf finish after this dnf has encountered
   * the lock five times.
   */
  const heldForLong = `case $args in
      *" --assumeno "*) exec /usr/bin/dnf "$@" ;;
      *" install "* | *" replay "*) ;;
      *) exec /usr/bin/dnf "$@" ;;
    esac
    if ! test -e /run/locks-met; then ${holdLock()}
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
    await replaceDnf(heldForLong);
    const { points, reported } = await agent.interruptedAt(
      operation('apply', of(['web'])),
      secondInstallation,
      'cancel',
    );
    expect(reported.results).toMatchObject([
      { identity: 'web', status: 'failed', message: expect.stringContaining('because the operation was canceled') },
    ]);
    expect(points.filter((point) => point === secondInstallation.point)).toHaveLength(2);
    expect((await locksMet()).trim()).toBe('2');
    await released();
    await restoreDnf();
    expect(await installed()).not.toContain('web 0:1.0-1');
    expect(ends(await apply('web'))).toEqual({ web: 'changed' });
    await apply();
  });

  testSome('a canceled removal that waits for the lock stops and keeps the package', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await replaceDnf(heldForLong);
    const { reported } = await agent.interruptedAt(operation('apply'), secondRemoval, 'cancel');
    expect(reported.results).toMatchObject([
      { identity: 'lib', status: 'failed', message: expect.stringContaining('because the operation was canceled') },
    ]);
    expect((await locksMet()).trim()).toBe('2');
    expect(await installed()).toContain('lib 0:2.0-1');
    await released();
    await restoreDnf();
    expect(ends(await apply())).toEqual({ lib: 'changed' });
    expect(await installed()).not.toContain('lib 0:2.0-1');
  });

  testSome('a removal completes once if the agent is killed while it waits for the lock', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await replaceDnf(heldForLong);
    const { points, reported } = await agent.killedAt(operation('apply'), secondRemoval);
    expect(points.at(-1)).toBe(secondRemoval.point);
    expect(ends(reported)).toEqual({ lib: 'changed' });
    expect(Number(await locksMet())).toBe(5);
    await released();
    await restoreDnf();
    expect(await installed()).not.toContain('lib 0:2.0-1');
  });

  testSome('a removal keeps packages that others install after its query and before its start', async () => {
    expect(ends(await apply('lib'))).toEqual({ lib: 'changed' });
    await replaceDnf(`${removal}
    rpm -q needs > /dev/null || /usr/bin/dnf -qy install needs > /dev/null 2>&1
    exec /usr/bin/dnf "$@"`);
    await keepsLib(await apply());
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
      await replaceDnf('exec /usr/bin/dnf "$@"');
      const reported = await apply();
      await machine.sh(`rm ${plugin}`);
      await keepsLib(reported);
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
    await machine.sh(`cd /srv/rpms/noarch
      rpm --install lib-2.0-1.noarch.rpm hello-0.9-1.noarch.rpm
      rpm --install --justdb --force --nodeps --oldpackage hello-1.0-1.noarch.rpm`);
    const halves = async () => (await installed()).filter((line) => line.startsWith('hello '));
    expect(await halves()).toEqual(['hello 0:1.0-1', 'hello 1:0.9-1']);
    const beforeDnf = { point: 'process:before', nth: 1 };
    const { points, reported } = await agent.killedAt(operation('apply', of(['web'])), beforeDnf);
    expect(points.at(-1)).toBe('process:before');
    expect(ends(reported)).toEqual({ web: 'changed' });
    expect(await halves()).toEqual(['hello 1:0.9-1']);
    await apply();
    await machine.sh('rpm --erase hello lib');
  });

  describe('from files', () => {
    beforeAll(async () => {
      await machine.sh(`${fileServerUp('/srv/files')}
        mkdir -p /srv/files; cp ${rpms}/*.rpm /srv/files; echo 'not a package' > /srv/files/text.rpm`);
      await requestsTo(machine);
    });

    const fromFile = async (file: string, fields: object = {}) => ({
      url: urlOf(file),
      sha256: await sha256On(machine, `/srv/files/${file}`),
      ...fields,
    });

    test('a package is installed, upgraded, and downgraded to the version of its file', async () => {
      const old = await fromFile('hello-1.0-1.noarch.rpm');
      const recent = await fromFile('hello-0.9-1.noarch.rpm', { version: '1:0.9' });
      for (const [fields, version] of [
        [old, '0:1.0-1'],
        [recent, '1:0.9-1'],
        [old, '0:1.0-1'],
      ] as const) {
        expect(ends(await apply(['hello', fields]))).toEqual({ hello: 'changed' });
        expect(await installed()).toEqual(expect.arrayContaining([`hello ${version}`, 'lib 0:2.0-1']));
        await requestsTo(machine);
        expect(ends(await apply(['hello', fields]))).toEqual({ hello: 'unchanged' });
        expect(await requestsTo(machine)).toEqual([]);
      }
      await apply();
      expect((await installed()).filter((line) => /^(hello|lib) /.test(line))).toEqual([]);
    });

    test('an unsuitable package file fails before anything is installed, and does not stop other packages', async () => {
      const reported = await apply(
        ['hash', { url: urlOf('hello-1.0-1.noarch.rpm'), sha256: '0'.repeat(64) }],
        ['text', await fromFile('text.rpm')],
        ['other', await fromFile('hello-1.0-1.noarch.rpm')],
        ['hello.x86_64', await fromFile('hello-1.1-1.noarch.rpm')],
        ['needs', await fromFile('needs-1.0-1.noarch.rpm', { version: '2.0' })],
        ['lib', await fromFile('lib-2.0-1.noarch.rpm')],
      );
      expect(ends(reported)).toEqual({
        ...{ hash: 'failed', text: 'failed', other: 'failed', 'hello.x86_64': 'failed', needs: 'failed' },
        lib: 'changed',
      });
      for (const [name, message] of Object.entries({
        hash: 'the content does not have the declared SHA-256',
        text: 'the file is not an .rpm file: ',
        other: 'the file has the package hello, not other',
        'hello.x86_64': 'the file is for the architecture noarch, not x86_64',
        needs: 'the file has version 1.0-1, not the declared 2.0',
      }))
        expect(messageOf(reported, name)).toContain(message);
      expect((await installed()).filter((line) => /^(hello|other|needs) /.test(line))).toEqual([]);
      await apply();
    });
  });

  test.each(['@core', 'hel*'])(
    'a module must not contain the package name %s, which dnf resolves to several packages',
    (name) => {
      expect(() => of([name])).toThrow('must be the name of one package');
    },
  );
});
