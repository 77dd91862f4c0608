import { expect, test } from 'vitest';
import { versionLocks } from '../../host/packages/version-locks.ts';
import { pacmanTool } from '../package-pacman/package-pacman.ts';
import { packageZypper, zypperTool } from '../package-zypper/package-zypper.ts';
import { locksAfter, mustBeReleased } from './hold.ts';
import type { PackageBefore, SeenPackage } from './seen.ts';

const tools = [
  ['zypper', zypperTool, '# by hand\n\ntype: package\nmatch_type: exact\nsolvable_name: hello\n'],
  ['pacman', pacmanTool, '[options]\nIgnorePkg = web hello lib\n'],
] as const;
const installed = { epoch: 0, version: '1.1', release: '1' };

const item = (seen: Partial<SeenPackage>, before: Partial<PackageBefore> | null, field: string) =>
  ({
    ...{ kind: 'apply', seen: { installed, locked: false, offer: null, ...seen }, before },
    difference: { action: 'update', changes: [{ field, from: null, to: 'true' }], diff: null },
    resource: { type: packageZypper.type, body: { name: 'hello', hold: true } },
  }) as unknown as Parameters<typeof mustBeReleased>[0];

test.each(tools)('keeps the text of a lock of %s if the version of the package changes', (_, tool, text) => {
  const locks = tool.locks.of(text, 'hello');
  const changed = item({ locked: true, locks }, { locks }, 'version');
  expect(mustBeReleased(changed)).toBe(true);
  const released = tool.locks.replaced(text, 'hello', []);
  expect(tool.locks.names(released)).not.toContain('hello');
  expect(tool.locks.replaced(released, 'hello', locksAfter(tool, changed, 'hello', installed, false) ?? [])).toBe(text);
});

test.each(tools)('restores the text of a lock of %s that others removed', (_, tool, text) => {
  const original = item({}, { locks: tool.locks.of(text, 'hello') }, 'hold');
  const removed = tool.locks.replaced(text, 'hello', []);
  expect(tool.locks.replaced(removed, 'hello', locksAfter(tool, original, 'hello', installed, false) ?? [])).toBe(text);
});

test('adds a lock of dnf for the current version where others removed one', () => {
  const original = item({}, { locks: [{ at: 3, line: 'hello-0:1.0-1.*' }] }, 'hold');
  expect(locksAfter({ locks: versionLocks }, original, 'hello', installed, false)).toEqual([
    { at: 3, line: 'hello-0:1.1-1.*' },
  ]);
});
