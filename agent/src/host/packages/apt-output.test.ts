import { describe, expect, test } from 'vitest';
import { aptComplaint, dpkgComplaint, isLocked, parsePolicy, parseProviders, parseSimulation } from './apt-output.ts';

/** Output of apt 2.6.1 and dpkg 1.21 on Debian bookworm. */

const policy = `libc6:
  Installed: 2.36-9+deb12u14
  Candidate: 2.36-9+deb12u14
  Version table:
 *** 2.36-9+deb12u14 500
        500 http://10.77.0.1:8120 ./ Packages
        100 /var/lib/dpkg/status
good:
  Installed: 1
  Candidate: 2
  Version table:
     2 500
        500 http://10.77.0.1:8120 ./ Packages
        500 http://10.77.0.2 stable/main amd64 Packages
 *** 1 100
        100 /var/lib/dpkg/status
mta-x:
  Installed: (none)
  Candidate: (none)
  Version table:
`;

test('removes credentials from the URLs in an error message', () => {
  const output = 'E: Failed to fetch https://me:s3cret@example.org/x/InRelease  401  Unauthorized\n';
  expect(aptComplaint(output)).toBe('Failed to fetch https://example.org/x/InRelease  401  Unauthorized');
  expect(aptComplaint('E: no route to http://a.b/c@d\n')).toBe('no route to http://a.b/c@d');
});

describe('output of apt', () => {
  test('reads the candidate and the offered versions from apt-cache policy', () => {
    expect([...parsePolicy(policy)]).toEqual([
      ['libc6', { candidate: '2.36-9+deb12u14', offered: ['2.36-9+deb12u14'] }],
      ['good', { candidate: '2', offered: ['2'] }],
      ['mta-x', { candidate: null, offered: [] }],
    ]);
    expect([...parsePolicy('N: Unable to locate package nosuch\n')]).toEqual([]);
  });

  test('lists the providers of a virtual package', () => {
    const text =
      'Package: mta-x\nVersions: \n\nReverse Depends: \n  prov2,mta-x\nDependencies: \nProvides: \nReverse Provides: \nprov2 1 (= )\nprov1 1 (= )\n';
    expect(parseProviders(text)).toEqual(['prov1', 'prov2']);
  });

  test('lists the packages that a dry run would install and remove', () => {
    const text = `The following packages will be REMOVED:
  prov1
Remv prov1 [1]
Purg old:i386 [1:2]
Inst prov2 (1 10.77.0.1 [all])
Inst good [1] (2 10.77.0.1 [all])
Conf prov2 (1 10.77.0.1 [all])
`;
    expect(parseSimulation(text)).toEqual({ installed: ['prov2', 'good'], removed: ['prov1', 'old:i386'] });
  });

  test('reports the unmet dependencies if apt refuses an installation', () => {
    const text = `The following information may help to resolve the situation:

The following packages have unmet dependencies:
 baddep : Depends: nothere but it is not installable
E: Unable to correct problems, you have held broken packages.
`;
    expect(aptComplaint(text)).toBe(
      'baddep : Depends: nothere but it is not installable; Unable to correct problems, you have held broken packages.',
    );
  });

  test('lists the installed packages that conflict with a new one', () => {
    const text = `The following packages will be REMOVED:
  prov1 prov3
The following NEW packages will be installed:
  prov2
E: Packages need to be removed but remove is disabled.
`;
    expect(aptComplaint(text)).toBe('it conflicts with installed packages: prov1, prov3; declare them absent first');
  });

  test('reports the last output lines of a failed script only for the script’s own package', () => {
    const text = `Unpacking broken (1) ...
Setting up good (2) ...
Setting up broken (1) ...
trying
no luck
dpkg: error processing package broken (--configure):
 installed broken package post-installation script subprocess returned error exit status 1
Errors were encountered while processing:
 broken
E: Sub-process /usr/bin/dpkg returned an error code (1)
`;
    expect(dpkgComplaint(text, 'broken')).toBe(
      'installed broken package post-installation script subprocess returned error exit status 1: trying / no luck',
    );
    expect(dpkgComplaint(text, 'good')).toBeNull();
    expect(aptComplaint(text)).toBe('Sub-process /usr/bin/dpkg returned an error code (1)');
  });

  test('reports a full disk', () => {
    const text = `Unpacking big (1) ...
dpkg: error processing archive /var/cache/apt/archives/big_1_all.deb (--unpack):
 cannot copy extracted data for './usr/share/big' to '/usr/share/big.dpkg-new': failed to write (No space left on device)
E: Sub-process /usr/bin/dpkg returned an error code (1)
`;
    expect(dpkgComplaint(text, 'big')).toMatch(/No space left on device/);
  });

  test('reports a lock that another process holds', () => {
    const output =
      'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (apt-get)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n';
    expect(isLocked(output)).toBe(true);
    expect(aptComplaint(output)).toContain('held by process 1234 (apt-get)');
    const waited =
      'Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4660 (perl)...\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n';
    expect(aptComplaint(waited)).toBe(
      'Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4660 (perl); it was not released in time',
    );
    expect(isLocked('dpkg: error: dpkg frontend lock was locked by another process with pid 17\n')).toBe(true);
    expect(isLocked('E: Unable to locate package lock\n')).toBe(false);
  });
});
