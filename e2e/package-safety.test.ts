import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reported } from '../agent/src/converge/test/agent.ts';
import { operation } from '../agent/src/converge/test/desired.ts';
import { eventually } from './eventually.ts';
import { AptRepository } from './hosts/apt-repository.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

/** Tests that removing a package never deletes data that users or other packages created. */

const reason = noHosts();

describe.skipIf(reason !== null)(`removal of packages${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let repository: AptRepository;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    [repository, machine] = await Promise.all([AptRepository.open(hosts), hosts.start('packages')]);
    await repository.use(machine);
    agent = await DrivenAgent.start(machine);
  });
  afterAll(async () => {
    await repository?.end();
    await hosts?.end();
  });

  const of = (name: string, fields: object = {}) => resolved({ 'package-apt': { name, ...fields } });
  const apply = (...resources: ReturnType<typeof of>[]) => agent.run(operation('apply', resources));
  const ends = ({ results }: Reported) => results.map(({ status, message }) => [status, message]);
  /** Restores the initial state of the machine and the agent. */
  const clear = async () => {
    await machine.sh(`umount /var/lib/sample-data 2> /dev/null || true
rm -rf /etc/sample-slow /run/sample-data
dpkg --purge sample-data sample-dependent sample-config sample-plain > /dev/null 2>&1 || true; rm -rf /etc/sample-data /var/lib/sample-data`);
    await agent.forget();
  };

  const replaceAptGet = (text: string) =>
    machine.run(['sh', '-euc', 'cat > /usr/local/sbin/apt-get; chmod 755 /usr/local/sbin/apt-get'], {
      input: `#!/bin/sh\n${text}\n`,
    });

  /** These tests are independent, so `npm test` runs only some of them. */
  const testSome = someTests(test, 2, 'removal of packages');

  testSome('a removal deletes all files of the package if users added none', async () => {
    await clear();
    expect(ends(await apply(of('sample-data')))).toEqual([['changed', null]]);
    expect(ends(await apply())).toEqual([['changed', null]]);
    expect(await machine.sh('ls -d /etc/sample-data /var/lib/sample-data 2> /dev/null || true')).toBe('');
  });

  testSome('removing a package also removes dependencies that other packages only suggest', async () => {
    await clear();
    await machine.sh(`mkdir -p /tmp/fan/DEBIAN; printf '%s\n' 'Package: sample-fan' 'Version: 1' 'Architecture: all' \
'Maintainer: Tests <tests@example.com>' 'Suggests: sample-plain' 'Description: made for tests' > /tmp/fan/DEBIAN/control
dpkg-deb --build /tmp/fan /tmp/fan.deb > /dev/null; dpkg --install /tmp/fan.deb > /dev/null; rm -r /tmp/fan /tmp/fan.deb`);
    expect(ends(await apply(of('sample-dependent')))).toEqual([['changed', null]]);
    expect(ends(await apply())).toEqual([['changed', null]]);
    expect(
      await machine.sh(
        "dpkg-query -W -f '${Package}:${db:Status-Status} ' sample-fan sample-plain; dpkg --purge sample-fan > /dev/null",
      ),
    ).toBe('sample-fan:installed sample-plain:not-installed ');
  });

  testSome('a removal keeps files that were created between a failed and a successful installation', async () => {
    await clear();
    repository.offer(({ name }) => name !== 'sample-plain');
    await machine.sh('apt-get update -qq');
    expect((await apply(of('sample-data'))).results).toMatchObject([{ status: 'failed' }]);
    await machine.sh('mkdir /etc/sample-data; echo mine > /etc/sample-data/mine.conf');
    repository.offer();
    await machine.sh('apt-get update -qq');
    expect(ends(await apply(of('sample-data')))).toEqual([['changed', null]]);
    const removal = await apply();
    expect(await machine.sh('cat /etc/sample-data/mine.conf')).toBe('mine\n');
    expect(ends(removal)).toEqual([['changed', expect.stringMatching(/are kept: \/etc\/sample-data existed before/)]]);
  });

  testSome('a removal keeps files that users created while the package was being installed', async () => {
    await clear();
    await machine.sh('echo 2 > /etc/sample-slow');
    const coming = apply(of('sample-data'));
    await eventually('the package is being configured', async () =>
      (await machine.run(['test', '-e', '/run/sample-data'])).code === 0 ? true : null,
    );
    await machine.sh('echo mine > /etc/sample-data/mine.conf');
    expect(ends(await coming)).toEqual([['changed', null]]);
    const removal = await apply();
    expect(await machine.sh('cat /etc/sample-data/mine.conf')).toBe('mine\n');
    expect(ends(removal)).toEqual([['changed', expect.stringContaining('/etc/sample-data/mine.conf was added')]]);
  });

  testSome(
    'a removal keeps files on another file system that is mounted before or after the installation',
    async () => {
      for (const mounted of ['before', 'after']) {
        await clear();
        const mount =
          'mkdir -p /var/lib/sample-data; mount -t tmpfs none /var/lib/sample-data; echo mine > /var/lib/sample-data/mine';
        if (mounted === 'before') await machine.sh(mount);
        expect(ends(await apply(of('sample-data'))), mounted).toEqual([['changed', null]]);
        if (mounted === 'after') await machine.sh(mount);
        const removal = await apply();
        expect(await machine.sh('cat /var/lib/sample-data/mine'), mounted).toBe('mine\n');
        expect(ends(removal), mounted).toEqual([
          ['changed', expect.stringMatching(/are kept: \/var\/lib\/sample-data /)],
        ]);
      }
    },
  );

  testSome('a removal keeps an edited configuration file although apt is set to purge on removal', async () => {
    await clear();
    await machine.sh(`echo 'APT::Get::Purge "true"; APT::Get::AutomaticRemove "true";' > /etc/apt/apt.conf.d/99tests
apt-get install -qq sample-config sample-dependent > /dev/null; apt-mark auto -qq sample-dependent > /dev/null
echo mine > /etc/sample-config.conf`);
    expect(ends(await apply(of('sample-config', { ensure: 'absent' })))).toEqual([['changed', null]]);
    expect(await machine.sh('cat /etc/sample-config.conf')).toBe('mine\n');
    expect(await machine.sh("dpkg-query -W -f '${db:Status-Status}' sample-dependent")).toBe('installed');
    await machine.sh('rm /etc/apt/apt.conf.d/99tests');
  });

  testSome('a removal keeps a dependent package that was installed during the wait for the lock', async () => {
    await clear();
    expect(ends(await apply(of('sample-plain')))).toEqual([['changed', null]]);
    // Like unattended-upgrades, takes the lock first and installs the package after a while.
    await machine.sh('cd /tmp; apt-get download -qq sample-data > /dev/null 2>&1; rm -f /run/held /run/met');
    // Reports to the other program that the agent has met the lock.
    await replaceAptGet(`/usr/bin/apt-get "$@"
code=$?
case " $* " in *" --simulate "*) ;; *" remove "*) touch /run/met ;; esac
exit $code`);
    const lockScript = `use Fcntl; open(my $f, ">>", "/var/lib/dpkg/lock-frontend") or die;
my $lock = pack("s s l! l! i", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die; open(my $held, ">", "/run/held");
select(undef, undef, undef, 0.05) until -e "/run/met";
$ENV{DPKG_FRONTEND_LOCKED} = 1; system("dpkg -i /tmp/sample-data_*.deb > /dev/null 2>&1")`;
    await machine.run(['sh', '-euc', 'cat > /run/hold.pl; systemd-run -q --unit=theirs perl /run/hold.pl'], {
      input: lockScript,
    });
    await eventually('the other program holds the lock', async () =>
      (await machine.run(['test', '-e', '/run/held'])).code === 0 ? true : null,
    );
    const { results } = await apply();
    await machine.sh('rm /usr/local/sbin/apt-get');
    expect(await machine.sh("dpkg-query -W -f '${db:Status-Status}' sample-data sample-plain")).toBe(
      'installedinstalled',
    );
    expect(results).toMatchObject([
      {
        status: 'failed',
        message: expect.stringContaining(
          'a package that depends on it was installed while the agent waited for the lock',
        ),
      },
    ]);
  });

  /** Runs shell text after the agent's last check, immediately before the next `apt-get` with this subcommand. */
  const justBefore = (verb: string, shell: string) =>
    replaceAptGet(`case " $* " in *" --simulate "*) ;; *" ${verb} "*) rm /usr/local/sbin/apt-get; ${shell} > /dev/null 2>&1 ;; esac
exec /usr/bin/apt-get "$@"`);

  testSome('a removal keeps a dependent package that was installed immediately before apt gets the lock', async () => {
    await clear();
    expect(ends(await apply(of('sample-plain')))).toEqual([['changed', null]]);
    await justBefore('remove', '/usr/bin/apt-get install -qq sample-data');
    const { results } = await apply();
    expect(await machine.sh("dpkg-query -W -f '${db:Status-Status}' sample-data sample-plain")).toBe(
      'installedinstalled',
    );
    expect(results).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/waited for the lock: sample-data$/) },
    ]);
  });

  testSome('a removal keeps a package that was reinstalled immediately before its purge', async () => {
    await clear();
    expect(ends(await apply(of('sample-data')))).toEqual([['changed', null]]);
    await justBefore('purge', '/usr/bin/apt-get install -qq sample-data');
    const { results } = await apply();
    expect(await machine.sh("dpkg-query -W -f '${db:Status-Status}' sample-data; ls -d /var/lib/sample-data")).toBe(
      'installed/var/lib/sample-data\n',
    );
    expect(results).toMatchObject([{ status: 'changed', message: expect.stringContaining('was installed again') }]);
  });

  testSome('a plan and an apply refuse to remove packages that the machine or the agent needs', async () => {
    await clear();
    const resources = ['dpkg', 'libc6', 'systemd-sysv'].map((name) => ({
      ...of(name, { ensure: 'absent' }),
      id: name,
    }));
    const before = machine.changes();
    for (const purpose of ['plan', 'apply'] as const)
      expect(ends(await agent.run(operation(purpose, resources))), purpose).toEqual([
        ['failed', expect.stringContaining('dpkg is not removed: this machine does not work without it')],
        ['failed', expect.stringContaining('libc6 is not removed: the agent needs it to run')],
        ['failed', expect.stringContaining('systemd-sysv is not removed: this machine needs it to run (/sbin/init)')],
      ]);
    expect(machine.changes()).toEqual(before);
  });
});
