import { HostFailure, NotADirectory } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, nothing } from '../provider/provider.ts';
import { type ArchiveBefore, applyArchive, rememberArchive, rememberArchiveForTrial, removeArchive } from './apply.ts';
import { diffArchive, ourReleases, targetOf } from './diff.ts';
import type { Declared } from './place.ts';
import { lookAtArchive, type SeenArchive } from './seen.ts';

/** A directory with the files from an archive, or with one subdirectory for each of several releases. */
export const archive = defineProvider<'archive', SeenArchive, ArchiveBefore>({
  type: 'archive',
  fields: {
    path: 'text',
    source: 'text?',
    url: 'text?',
    sha256: 'text?',
    strip: 'integer?',
    exclude: 'list?',
    keep: 'integer?',
    owner: 'text?',
    group: 'text?',
    ensure: 'text?',
  },
  brings: ({ body }) => broughtBy(`${body.path}/`),
  path: ({ body }) => body.path,
  makes: ({ body }) => [body.path],
  check({ body }) {
    checkPath(body.path);
    if (body.ensure === 'absent') return;
    if (body.source == null && (body.url == null || !/^[0-9a-f]{64}$/.test(body.sha256 ?? '')))
      throw new HostFailure('`source`, or `url` with `sha256`, is required');
  },
  observe: (resource, _circumstances, machine) => lookAtArchive(resource, machine),
  diff: diffArchive,
  remember: async (_resource, seen, _difference, before) => rememberArchive(seen, before),
  rememberForTrial: (_resource, seen) => rememberArchiveForTrial(seen),
  apply: (resource, seen, difference, machine) => applyArchive(resource, seen, difference, machine),
  observeForRemoval(resource, before, machine) {
    try {
      return lookAtArchive(withoutContent(resource, before), machine);
    } catch (error) {
      if (!(error instanceof NotADirectory)) throw error;
      throw new HostFailure(`${error.message}; nothing was removed`);
    }
  },
  diffRemoval: (resource, before, seen) => diffRemoval(resource, before, seen),
  remove: (resource, before, seen, _difference, machine) =>
    removeArchive(withoutContent(resource, before), before, seen, machine),
});

/** Returns the resource with its recorded layout and without a declared archive. */
function withoutContent(resource: Declared, before: ArchiveBefore): Declared {
  const { path, keep } = resource.body;
  const hasReleases = before.was === 'tree' ? keep != null : before.was !== 'path';
  const layout = hasReleases ? { keep: keep ?? 1 } : {};
  return { ...resource, body: { path, ensure: 'absent', ...layout } };
}

function diffRemoval({ body }: Declared, before: ArchiveBefore, seen: SeenArchive): Difference {
  const gone: Difference = {
    action: 'remove',
    changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
    diff: null,
  };
  const restored: Difference = { ...gone, changes: [], message: 'restores the original state' };
  if (before.was === 'tree')
    throw new HostFailure(
      body.keep == null
        ? `the new archive replaced the tree at ${body.path}: declare \`keep\`, so that the former one stays`
        : `the release in use at ${body.path} had been changed, and was unpacked again`,
    );
  if (before.was === 'release') {
    const { link = null, names = [] } = seen.releases ?? {};
    const isAmong = (all: readonly string[]) => all.some((name) => targetOf(name) === before.link);
    if (isAmong(before.names) && !isAmong(names))
      throw new HostFailure('the former release was deleted; to be able to restore it, declare a `keep` of at least 2');
    return { ...restored, changes: [{ field: 'release', from: link, to: before.link }] };
  }
  if (before.was === 'releases') {
    const link = seen.releases?.link ?? null;
    const isOurs = ourReleases(seen) || (seen.releases?.names ?? []).some((name) => targetOf(name) === link);
    if (!isOurs && link === before.link) return nothing('already removed');
    return before.link === null ? gone : { ...restored, changes: [{ field: 'release', from: link, to: before.link }] };
  }
  if (seen.tree !== null && seen.tree.additions > 0)
    throw new HostFailure(
      `${body.path} has entries that are not from the archive, such as ${seen.tree.added.join(', ')}: move them elsewhere, then apply again`,
    );
  if (before.inode === null) return seen.found === 'absent' && seen.list === null ? nothing('already removed') : gone;
  if (seen.kept !== null)
    return {
      ...restored,
      changes: [{ field: 'content', from: seen.found === 'absent' ? null : seen.found, to: 'as before' }],
    };
  if (seen.inode === before.inode && seen.list === null) return nothing('already in its original state');
  if (seen.inode === before.inode) return { ...restored, changes: [{ field: 'content', from: null, to: 'as before' }] };
  throw new HostFailure(
    `the original object at ${body.path} is missing next to it, so it cannot be restored: restore it by hand, or remove ${body.path}`,
  );
}
