import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findPackage, isIntact, parseDpkg } from './dpkg.ts';

const status = `Package: dpkg
Essential: yes
Status: install ok installed
Architecture: amd64
Version: 1.21.22
Conffiles:
 /etc/alternatives/README 7be88b21f7e386c8d5a8790c2461c92b
 /etc/cron.daily/dpkg 94bb6c1363245e46256908a5d52ba4fb obsolete
Description: package management
 Status: not a field

Package: held
Status: hold ok installed
Architecture: all
Version: 1:2-3

Package: libx
Status: install ok half-configured
Architecture: i386
Version: 1

Package: left
Status: deinstall ok config-files
Architecture: all
Version: 9
`;

const extended = `Package: held
Architecture: amd64
Auto-Installed: 1

Package: left
Architecture: amd64
Auto-Installed: 0
`;

describe('the database of dpkg', () => {
  const database = parseDpkg(status, [], extended);

  test('reads installed packages, their state, and their marks', () => {
    expect(database.native).toBe('amd64');
    expect(findPackage(database, 'held')).toMatchObject({
      held: true,
      auto: true,
      version: '1:2-3',
      state: 'installed',
    });
    expect(findPackage(database, 'held:amd64')).not.toBeNull();
    expect(findPackage(database, 'held:i386')).toBeNull();
    expect(findPackage(database, 'libx')).toBeNull();
    expect(findPackage(database, 'libx:i386')).toMatchObject({ state: 'half-configured' });
    expect(findPackage(database, 'left')).toMatchObject({ state: 'config-files', auto: false });
    expect([...(findPackage(database, 'dpkg')?.conffiles ?? [])]).toEqual([
      ['/etc/alternatives/README', '7be88b21f7e386c8d5a8790c2461c92b'],
      ['/etc/cron.daily/dpkg', '94bb6c1363245e46256908a5d52ba4fb'],
    ]);
    expect([...database.packages.values()].filter((one) => !isIntact(one)).map(({ name }) => name)).toEqual(['libx']);
  });

  test('includes updates that an interrupted dpkg left behind', () => {
    const update = 'Package: held\nStatus: install ok unpacked\nArchitecture: all\nVersion: 1:3\n';
    const interrupted = parseDpkg(status, [update], '');
    expect(interrupted.interrupted).toBe(true);
    expect(findPackage(interrupted, 'held')).toMatchObject({ state: 'unpacked', version: '1:3', held: false });
  });

  test('recognizes essential packages and broken packages', () => {
    expect(findPackage(database, 'dpkg')?.essential).toBe(true);
    expect(findPackage(database, 'held')?.essential).toBe(false);
    for (const field of ['Protected', 'Important'])
      expect(findPackage(parseDpkg(status.replace('Essential', field), [], ''), 'dpkg')?.essential).toBe(true);
    const broken = parseDpkg(status.replace('hold ok installed', 'hold reinstreq installed'), [], '');
    expect([...broken.packages.values()].filter((one) => !isIntact(one)).map(({ name }) => name)).toEqual([
      'held',
      'libx',
    ]);
  });

  test('refuses an invalid database, and names the position of the error', () => {
    expect(() => parseDpkg('', [], '')).toThrow(/may be truncated/);
    expect(() => parseDpkg(status.replace('hold ok installed', 'hold ok'), [], '')).toThrow(/package held/);
    expect(() => parseDpkg(status.replace('Package: held\n', ''), [], '')).toThrow(/without a name/);
  });

  test('never reads wrong package names from a truncated database', () => {
    fc.assert(
      fc.property(fc.nat(status.length), (at) => {
        try {
          const cut = parseDpkg(status.slice(0, at), [], '');
          for (const key of cut.packages.keys()) expect(key.split(':')[0]).toMatch(/^(dpkg|held|libx|left)$/);
        } catch (error) {
          expect((error as Error).name).toBe('HostFailure');
        }
      }),
    );
  });
});
