import { describe, expect, test } from 'vitest';
import { dnfComplaint, isDnfLocked, isDnfRefusal, parseRemoval, scriptComplaint } from './dnf-output.ts';

// Recorded from dnf 4.14.0 with an rpm 4.18.0 database.
const unmet = `Unable to detect release version (use '--releasever' to specify release version)
Last metadata expiration check: 0:00:02 ago on Fri Nov 20 13:39:19 2026.
Error: 
 Problem: conflicting requests
  - nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch
(try to add '--skip-broken' to skip uninstallable packages)
`;
const unknown = `Last metadata expiration check: 0:00:03 ago on Fri Nov 20 13:39:19 2026.
No match for argument: nosuch
Error: Unable to find a match: nosuch
`;
const unreachable = `Errors during downloading metadata for repository 't':
  - Curl error (37): Couldn't read a file:// file for file:///root/r/repo/repodata/repomd.xml [Couldn't open file /root/r/repo/repodata/repomd.xml]
Error: Failed to download metadata for repo 't': Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried
Ignoring repositories: t
No match for argument: other
Error: Unable to find a match: other
`;
const refused = `Running transaction
  Preparing        :                                                        1/1 
  Installing       : sh-1.0-1.noarch                                        1/3 
  Running scriptlet: failing-1.0-1.noarch                                   2/3 
I will not
error: %prein(failing-0:1.0-1.noarch) scriptlet failed, exit status 1

Error in PREIN scriptlet in rpm package failing
  Installing       : plain-1.0-1.noarch                                     3/3 
error: failing-0:1.0-1.noarch: install failed

  Verifying        : sh-1.0-1.noarch                                        3/3Error: Transaction failed
 

Failed:
  failing-1.0-1.noarch                                                          

`;
const locked = `Running transaction check
RPMDB already locked by 18181
  The application with PID 18181 is: dnf
    Memory :  54 M RSS (110 MB VSZ)
    Started: Fri Nov 20 13:41:13 2026 - 00:02 ago
    State  : Sleeping
`;
const removal = `Dependencies resolved.
================================================================================
 Package           Architecture       Version              Repository      Size
================================================================================
Removing:
 lib               noarch             2.0-1                @t              20  
Removing dependent packages:
 needs             noarch             1:1.0-1              @t              22  
 a-package-with-quite-a-long-name
                   noarch             1.0-1                @t              22  
Removing unused dependencies:
 shell             noarch             2.0-1                @t              20  

Transaction Summary
================================================================================
Remove  4 Packages

Freed space: 42  
Operation aborted.
`;

describe('output of dnf', () => {
  test('extracts the error from the output of dnf', () => {
    expect(dnfComplaint(unmet)).toBe(
      'Problem: conflicting requests; nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch',
    );
    expect(dnfComplaint('Error: Problems in request:\nmissing groups or modules: engine:9\n')).toBe(
      'Problems in request: missing groups or modules: engine:9',
    );
    expect(dnfComplaint('Error: Problems in request:\nComplete!\n')).toBe('Problems in request:');
    expect(dnfComplaint(unknown)).toBe('No match for argument: nosuch');
    expect(dnfComplaint(unreachable)).toMatch(
      /^Failed to download metadata for repo 't': .*; No match for argument: other$/,
    );
    expect(dnfComplaint('Complete!\n')).toBe('it printed nothing');
    expect(dnfComplaint('Traceback\nKeyError: 1\nComplete!\n')).toBe('KeyError: 1');
  });

  test('reports the failed package script and its last output lines', () => {
    expect(scriptComplaint(refused, 'failing')).toBe('its %prein scriptlet failed, exit status 1: I will not');
    for (const other of ['plain', 'sh', 'fail', 'failing-0']) expect(scriptComplaint(refused, other)).toBeNull();
  });

  test('distinguishes a held lock from other failures', () => {
    expect(isDnfLocked(locked)).toBe(true);
    expect(
      isDnfLocked("error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)"),
    ).toBe(true);
    for (const text of [unmet, unknown, unreachable, refused, removal]) expect(isDnfLocked(text)).toBe(false);
  });

  test('distinguishes a refusal from a transaction that has begun', () => {
    for (const text of [unmet, unknown, locked, removal]) expect(isDnfRefusal(text)).toBe(true);
    expect(isDnfRefusal(refused)).toBe(false);
  });

  test('lists the packages that a removal would remove', () => {
    expect(parseRemoval(removal)).toEqual({
      requested: [{ name: 'lib', spec: 'lib-2.0-1.noarch' }],
      dependent: [
        { name: 'needs', spec: 'needs-1:1.0-1.noarch' },
        { name: 'a-package-with-quite-a-long-name', spec: 'a-package-with-quite-a-long-name-1.0-1.noarch' },
      ],
      unused: [{ name: 'shell', spec: 'shell-2.0-1.noarch' }],
    });
    expect(parseRemoval(unmet)).toEqual({ requested: [], dependent: [], unused: [] });
  });
});
