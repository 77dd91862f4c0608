import { describe, expect } from 'vitest';
import { AptRepository } from './apt-repository.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

describe.skipIf(reason !== null)(`the apt repository${reason === null ? '' : ` (${reason})`}`, () => {
  test('apt accepts the signed test repository, offers new versions, and reports packages that fail to configure', async ({
    hosts,
  }) => {
    const [machine, repository] = await Promise.all([hosts.start('apt'), AptRepository.open(hosts)]);
    await repository.use(machine);
    const install = (...names: string[]) =>
      machine.run(['apt-get', '-qq', '-y', '--no-install-recommends', 'install', ...names]);
    repository.offer(({ version }) => version !== '2.0');
    await machine.exec('apt-get', 'update', '-qq');
    expect(await install('sample-dependent', 'sample-config', 'sample-service')).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('E:'),
    });
    expect(await machine.sh('cat /usr/share/sample-plain/version; systemctl is-active sample')).toBe('1.0\nactive\n');
    expect(await machine.exec('apt-get', 'install', '--simulate', '-qq', 'nginx-light')).toContain('Inst nginx-light');
    repository.offer();
    await machine.exec('apt-get', 'update', '-qq');
    expect(await machine.exec('apt-cache', 'policy', 'sample-plain')).toMatch(/Installed: 1\.0\n\s+Candidate: 2\.0\n/);
    await machine.sh('touch /etc/sample-broken; echo 0 > /etc/sample-slow');
    const broken = await install('sample-broken', 'sample-slow', 'sample-account');
    expect(broken).toMatchObject({ code: 100, stdout: expect.stringContaining('/etc/sample-broken is in the way') });
    expect(await machine.exec('getent', 'passwd', 'sample')).toContain('/usr/sbin/nologin');
    expect(await machine.exec('cat', '/var/lib/sample-slow')).toBe('configured\n');
    expect(await machine.exec('dpkg-query', '--show', '--showformat=${Status}', 'sample-broken')).toContain(
      'half-configured',
    );
    await repository.end();
  });

  test('apt refuses a package index that is signed with a different key', async ({ hosts }) => {
    const machine = await hosts.start('wary');
    const [repository, other] = await Promise.all([AptRepository.open(hosts), AptRepository.open(hosts)]);
    await other.use(machine);
    await machine.exec('sed', '-i', `s|${other.url}|${repository.url}|`, '/etc/apt/sources.list');
    expect((await machine.run(['apt-get', 'update', '-qq'])).stderr).toMatch(/public key is not available|NO_PUBKEY/);
    await Promise.all([repository.end(), other.end()]);
  });
});
