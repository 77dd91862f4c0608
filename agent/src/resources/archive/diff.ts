import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { type Circumstances, type Difference, nothing, presenceDrift, withChanges } from '../provider/provider.ts';
import { type Body, type Declared, releaseOf, releasesName } from './place.ts';
import type { SeenArchive } from './seen.ts';

/** Returns the target of the link to a release. */
export const targetOf = (release: string): string => `${releasesName}/${release}`;

const shown = (names: readonly string[], count: number): string =>
  `${names.join(', ')}${count > names.length ? ` and ${count - names.length} more` : ''}`;

export function diffArchive(
  resource: Declared,
  seen: SeenArchive,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { body } = resource;
  const { wanted, releases } = seen;
  if (wanted === null) {
    const isThere = releases === null ? seen.found !== 'absent' : ourReleases(seen);
    if (!isThere) return nothing();
    expectNothingLost(body, seen, purpose);
    return presenceDrift();
  }
  const content = contentChanges(seen);
  const owners = ownerChanges(body, seen);
  const target = releases === null ? null : targetOf(releaseOf(wanted));
  const isSwitched = releases !== null && releases.link !== target;
  const isNew = releases === null ? seen.found === 'absent' : releases.link === null;
  const changes: FieldChange[] = [
    ...(isNew ? [{ field: 'ensure', from: 'absent', to: 'present' }] : []),
    ...(isSwitched ? [{ field: 'release', from: releases.link, to: target }] : []),
    ...content,
    ...owners.changes,
  ];
  if (changes.length > 0) expectNothingLost(body, seen, purpose);
  return withChanges(isNew ? 'create' : 'update', changes, owners);
}

/** @throws HostFailure if the tree contains entries that others created, because a new tree would lack them */
function expectNothingLost({ path }: Body, { tree, releases }: SeenArchive, purpose: Circumstances['purpose']): void {
  if (purpose === 'drift' || releases !== null || tree === null || tree.additions === 0) return;
  throw new HostFailure(
    `${path} has entries that are not from the archive, such as ${shown(tree.added, tree.additions)}: they would be lost. Move them elsewhere, or declare \`keep\` so that each release gets its own directory.`,
  );
}

/** Reports whether the machine has releases that the agent unpacked. */
export const ourReleases = ({ releases }: SeenArchive): boolean => (releases?.names.length ?? 0) > 0;

/** Reports whether the tree must be unpacked. */
export const isUnpacked = (seen: SeenArchive, difference: Difference): boolean =>
  difference.changes.some(({ field }) => field !== 'release' && field !== 'ensure') || seen.tree === null;

function contentChanges({ wanted, found, list, tree, releases }: SeenArchive): FieldChange[] {
  if (wanted === null) return [];
  const to = `sha256:${wanted.sha256}`;
  if (found === 'absent') return [{ field: 'content', from: null, to }];
  if (list === null || found !== 'directory')
    return [{ field: 'content', from: `a ${found} that was not unpacked from an archive`, to }];
  const changes: FieldChange[] = [];
  if (list.sha256 !== wanted.sha256) changes.push({ field: 'content', from: `sha256:${list.sha256}`, to });
  else if (tree !== null && tree.changes > 0)
    changes.push({ field: 'content', from: `changed: ${shown(tree.changed, tree.changes)}`, to });
  // These fields determine the name of a release.
  if (releases !== null) return changes;
  if (list.strip !== wanted.strip) changes.push({ field: 'strip', from: String(list.strip), to: String(wanted.strip) });
  if (JSON.stringify(list.exclude) !== JSON.stringify(wanted.exclude))
    changes.push({ field: 'exclude', from: list.exclude.join(', '), to: wanted.exclude.join(', ') });
  return changes;
}

function ownerChanges(
  { owner, group }: Body,
  { found, tree, ownership }: SeenArchive,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  const changes: FieldChange[] = [];
  const awaits: NonNullable<Difference['awaits']> = [];
  const isFresh = found === 'absent' || tree === null;
  if (owner != null) {
    if (ownership.wantedUid == null) awaits.push({ kind: 'accounts', message: `there is no user ${owner}` });
    if (isFresh || tree.otherUid !== undefined)
      changes.push({ field: 'owner', from: isFresh ? null : ownership.ownerName, to: owner });
  }
  if (group != null) {
    if (ownership.wantedGid == null) awaits.push({ kind: 'accounts', message: `there is no group ${group}` });
    if (isFresh || tree.otherGid !== undefined)
      changes.push({ field: 'group', from: isFresh ? null : ownership.groupName, to: group });
  }
  return { changes, awaits };
}
