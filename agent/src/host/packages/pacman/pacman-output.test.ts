import { describe, expect, test } from 'vitest';
import {
  isPacmanLocked,
  isPacmanRefusal,
  pacmanComplaint,
  pacmanScriptComplaint,
  parseInstalled,
  parseList,
  parseNames,
} from './pacman-output.ts';

// Recorded from pacman 6.0.2.
const unmet = `resolving dependencies...
warning: cannot resolve "nowhere-to-be-found", a dependency of "unmet"
:: The following package cannot be upgraded due to unresolvable dependencies:
      unmet

:: Do you want to skip the above package for this upgrade? [y/N] error: failed to prepare transaction (could not satisfy dependencies)

:: unable to satisfy dependency 'nowhere-to-be-found' required by unmet
`;
const needed = `checking dependencies...
error: failed to prepare transaction (could not satisfy dependencies)
:: removing lib breaks dependency 'lib' required by other
`;
const conflict = `checking for file conflicts...
error: failed to commit transaction (conflicting files)
web: /usr/share/web/version exists in filesystem
Errors occurred, no packages were upgraded.
`;
const grumbled = `:: Processing package changes...
installing lib...
installing grumbles...
I would rather not
error: command failed to execute correctly
installing other...
`;
const locked = `error: failed to init transaction (unable to lock database)
error: could not lock database: File exists
  if you're sure a package manager is not already
  running, you can remove /var/lib/pacman/db.lck
`;

describe('output of pacman', () => {
  test('summarizes why a transaction failed', () => {
    expect(pacmanComplaint(unmet)).toBe("unable to satisfy dependency 'nowhere-to-be-found' required by unmet");
    expect(pacmanComplaint(needed)).toBe("removing lib breaks dependency 'lib' required by other");
    expect(pacmanComplaint(conflict)).toBe('web: /usr/share/web/version exists in filesystem');
    expect(pacmanComplaint('error: target not found: nosuch\n')).toBe('target not found: nosuch');
    expect(pacmanComplaint(locked)).toContain('/var/lib/pacman/db.lck');
    expect(pacmanComplaint('')).toBe('it printed nothing');
  });

  test('finds the failed script of one package, with its output', () => {
    expect(pacmanScriptComplaint(grumbled, 'grumbles')).toBe('its script failed: I would rather not');
    for (const other of ['lib', 'other', 'web']) expect(pacmanScriptComplaint(grumbled, other), other).toBeNull();
  });

  test('recognizes that another process holds the lock', () => {
    expect(isPacmanLocked(locked)).toBe(true);
    const refresh = ':: Synchronizing package databases...\nerror: failed to synchronize all databases ';
    expect(isPacmanLocked(`${refresh}(unable to lock database)\n`)).toBe(true);
    expect(isPacmanLocked(`${refresh}(download library error)\n`)).toBe(false);
  });

  test('recognizes that pacman stopped before its first change', () => {
    for (const said of [unmet, needed, conflict, locked]) expect(isPacmanRefusal(said), said).toBe(true);
    expect(isPacmanRefusal(grumbled)).toBe(false);
  });

  test('reads installed and offered packages, the latter with their repositories', () => {
    expect(parseInstalled('hello 1:0.9-1\nlib 2.0-1\n')).toEqual([
      { name: 'hello', epoch: 1, version: '0.9', release: '1', arch: 'noarch' },
      { name: 'lib', epoch: 0, version: '2.0', release: '1', arch: 'noarch' },
    ]);
    const offers = parseList('next hello 1.1-1\ntests hello 1.0-1 [installed: 1.1-1]\ntests lib 2.0-1 [installed]\n');
    expect(offers.map(({ repository, name, version }) => [repository, name, version])).toEqual([
      ['next', 'hello', '1.1'],
      ['tests', 'hello', '1.0'],
      ['tests', 'lib', '2.0'],
    ]);
  });

  test('reads the names of a dry run without the questions before them', () => {
    expect(parseNames(':: hello is in IgnorePkg/IgnoreGroup. Install anyway? [Y/n] \nlib\nhello\n')).toEqual([
      'lib',
      'hello',
    ]);
  });
});
