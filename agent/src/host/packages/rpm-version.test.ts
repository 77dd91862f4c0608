import { describe, expect, test } from 'vitest';
import { compareRpmVersions, isVersion, versionText } from './rpm-version.ts';

describe('versions of rpm', () => {
  test('compares versions by epoch first', () => {
    const old = { epoch: 0, version: '9.9', release: '1' };
    const renumbered = { epoch: 1, version: '0.9', release: '1' };
    expect(compareRpmVersions(old, renumbered)).toBeLessThan(0);
    expect([old, renumbered].map(versionText)).toEqual(['9.9-1', '1:0.9-1']);
  });

  test('matches versions with and without epoch and release', () => {
    const found = { epoch: 1, version: '0.9', release: '1.fc40' };
    for (const matching of ['0.9', '1:0.9', '0.9-1.fc40', '1:0.9-1.fc40'])
      expect([matching, isVersion(matching, found)]).toEqual([matching, true]);
    for (const wrong of ['0:0.9', '0.9-1', '0', '2:0.9-1.fc40', '0.9-'])
      expect([wrong, isVersion(wrong, found)]).toEqual([wrong, false]);
  });
});
