import type { ResolvedResource } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import type { Circumstances } from '../provider/provider.ts';
import { archive } from './archive.ts';
import type { SeenArchive, SeenReleases } from './seen.ts';

/** Tests which state is restored if a service fails after a change. */

const resource = { type: 'archive', body: { path: '/opt/app' } } as ResolvedResource<'archive'>;
const blank: SeenArchive = {
  ...{ wanted: null, found: 'absent', inode: null, kept: null, list: null, tree: null, releases: null },
  ownership: { wantedUid: null, wantedGid: null, ownerName: null, groupName: null },
};
const releases = (link: string | null, ...names: string[]): SeenArchive => {
  const seen: SeenReleases = { link, names, hasRoot: names.length > 0, hasReleases: names.length > 0 };
  return { ...blank, releases: seen };
};
/** Returns the difference that reverts a change from one state to another. */
function undoing(from: SeenArchive, to: SeenArchive) {
  const former = archive.rememberForTrial?.(resource, from);
  if (former === undefined) throw new Error('the kind records no state before a trial');
  return archive.diffRemoval(resource, former, to, {} as Circumstances, {} as never);
}

test('restores the previous release', () => {
  const changed = releases('releases/c', 'c', 'b', 'a');
  expect(undoing(releases('releases/b', 'b', 'a'), changed)).toMatchObject({
    action: 'remove',
    changes: [{ field: 'release', from: 'releases/c', to: 'releases/b' }],
  });
});

test('removes the first release if there was none before it', () => {
  expect(undoing(releases(null), releases('releases/a', 'a'))).toMatchObject({
    action: 'remove',
    changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
  });
});

test.each([
  ['made by hand', '/srv/app'],
  ['deleted by hand', null],
])('keeps the releases if the link was %s', (_how, link) => {
  const from = releases(link, 'b', 'a');
  expect(archive.rememberForTrial?.(resource, from)).toEqual({ was: 'release', link, names: ['b', 'a'] });
  expect(undoing(from, releases('releases/c', 'c', 'b', 'a'))).toMatchObject({
    changes: [{ field: 'release', from: 'releases/c', to: link }],
  });
});

test('explains that a previous release or tree was not kept', () => {
  expect(() => undoing(releases('releases/a', 'a'), releases('releases/b', 'b'))).toThrow(
    'declare a `keep` of at least 2',
  );
  const list = { sha256: 'a'.repeat(64), strip: 0, exclude: [] };
  const tree: SeenArchive = { ...blank, found: 'directory', inode: '1:2', list };
  expect(() => undoing(tree, { ...tree, inode: '1:3' })).toThrow('the new archive replaced the tree at /opt/app');
});
