import { describe, expect, test } from 'vitest';
import {
  isZypperLocked,
  parseNames,
  parseOffers,
  parseRemovals,
  textOfXml,
  zypperComplaint,
  zypperScriptComplaint,
} from './zypper-output.ts';

// Recorded from zypper 1.14.42 with an rpm 4.18.0 database.
const unmet = `Loading repository data...
Reading installed packages...
Resolving package dependencies...

Problem: nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch
 Solution 1: do not install unmet-1.0-1.noarch
 Solution 2: break unmet-1.0-1.noarch by ignoring some of its dependencies

Choose from above solutions by number or cancel [1/2/c/d/?] (c): c
`;
const refused = `(2/4) Installing: shell-1.0-1.noarch [.......done]
Additional rpm output:
from shell

(3/4) Installing: refuses-1.0-1.noarch [..error]
Installation of refuses-1.0-1.noarch failed:
Error: Subprocess failed. Error: RPM failed: rpm: RPM should not be used directly install RPM packages, use Alien instead!
rpm: However assuming you know what you are doing...
I will not
error: %prein(refuses-0:1.0-1.noarch) scriptlet failed, exit status 1
error: refuses-0:1.0-1.noarch: install failed

Abort, retry, ignore? [a/r/i] (a): a
`;
const grumbled = `(1/1) Installing: grumbles-1.0-1.noarch [.......done]
Additional rpm output:
I would rather not
warning: %post(grumbles-0:1.0-1.noarch) scriptlet failed, exit status 1

`;
const found = `<stream>
<message type="info">Reading installed packages...</message>
<search-result version="0.0">
<solvable-list>
<solvable status="other-version" name="hello" kind="package" edition="1:0.9-1" arch="noarch" repository="tests &amp; more"/>
<solvable status="installed" name="hello" kind="package" edition="1.0-1" arch="noarch" repository="(System Packages)"/>
<solvable status="not-installed" name="hello" kind="pattern" edition="1-1" arch="noarch" repository="tests"/>
</solvable-list>
</search-result>
</stream>
`;
const removal = `<stream>
<install-summary download-size="0" space-usage-diff="-64" packages-to-change="2">
<to-remove>
<solvable type="package" name="hello" edition="1.1-1" arch="noarch" summary="made for tests">
<description>Made for tests.</description></solvable>
<solvable type="package" name="lib" edition="2.0-1" arch="noarch" summary="a &gt; b">
<description>Made for tests.</description></solvable>
</to-remove>
</install-summary>
</stream>
`;

describe('output of zypper', () => {
  test('summarizes why a transaction failed', () => {
    expect(zypperComplaint(unmet)).toBe('nothing provides nowhere-to-be-found needed by unmet-1.0-1.noarch');
    const missing = '<message type="error">Package &apos;nosuch&apos; not found.</message>\n';
    expect(zypperComplaint(textOfXml(missing))).toBe("Package 'nosuch' not found");
    expect(zypperComplaint('error: Failed dependencies:\n\tlib is needed by (installed) needs-1.0-1.noarch\n')).toBe(
      'lib is needed by (installed) needs-1.0-1.noarch',
    );
    expect(zypperComplaint('Loading repository data...\nNothing to do.\n')).toBe('Nothing to do.');
    expect(zypperComplaint('')).toBe('it printed nothing');
  });

  test('finds the failed script of one package, with its output', () => {
    expect(zypperScriptComplaint(refused, 'refuses')).toBe('its %prein scriptlet failed, exit status 1: I will not');
    expect(zypperScriptComplaint(grumbled, 'grumbles')).toBe(
      'its %post scriptlet failed, exit status 1: I would rather not',
    );
    expect(zypperScriptComplaint(refused, 'shell')).toBeNull();
  });

  test('recognizes that another process holds the lock, also in XML', () => {
    const said = 'System management is locked by the application with pid 42 (zypper).';
    expect(isZypperLocked(`${said}\nClose this application before trying again.\n`)).toBe(true);
    expect(isZypperLocked(`<stream>\n<message type="error">${said}</message>\n`)).toBe(true);
    const rpm = "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)\n";
    expect(isZypperLocked(rpm)).toBe(true);
    expect(isZypperLocked(unmet)).toBe(false);
  });

  test('reads the packages that the repositories offer, but no installed package, and no pattern', () => {
    expect(parseOffers(found)).toEqual([{ name: 'hello', epoch: 1, version: '0.9', release: '1', arch: 'noarch' }]);
    expect(parseNames(found)).toEqual(['hello']);
  });

  test('reads the packages that a removal would remove', () => {
    expect(parseRemovals(removal).map(({ name, version }) => [name, version])).toEqual([
      ['hello', '1.1'],
      ['lib', '2.0'],
    ]);
    expect(
      parseRemovals('<to-install><solvable type="package" name="a" edition="1-1" arch="noarch"></to-install>'),
    ).toEqual([]);
  });
});
