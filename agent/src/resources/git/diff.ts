import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import {
  type Circumstances,
  type Difference,
  nothing,
  presenceDrift,
  typeDrift,
  withChanges,
} from '../provider/provider.ts';
import type { Declared } from './run-git.ts';
import type { SeenCopy, SeenGit } from './seen.ts';

export function diffGit({ body }: Declared, seen: SeenGit, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const { path, url, revision, force } = body;
  const { found, copy } = seen;
  const isDrift = purpose === 'drift';
  if (copy !== null && force !== true && !isDrift) expectNothingLost(path, copy);
  if (body.ensure === 'absent') {
    return found === 'absent' ? nothing() : presenceDrift();
  }
  if (found === 'other') {
    if (isDrift) return typeDrift({ type: found }, 'working copy');
    throw new HostFailure(`${path} exists and is not a working copy of git: move it to another path`);
  }
  const more = { awaits: seen.missing };
  const wanted = seen.wanted ?? revision;
  if (copy === null) {
    const changes: FieldChange[] = [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'url', from: null, to: url },
      { field: 'revision', from: null, to: wanted },
    ];
    // Without the required programs, a working copy cannot be compared.
    if (found === 'working copy') return withChanges('update', changes.slice(1), more);
    return withChanges('create', changes, more);
  }
  const changes: FieldChange[] = [];
  if (copy.url !== url) changes.push({ field: 'url', from: copy.url, to: url });
  if (copy.head !== wanted) changes.push({ field: 'revision', from: copy.head, to: wanted });
  if (copy.changes > 0) changes.push({ field: 'work_tree', from: `changed: ${shown(copy)}`, to: 'unchanged' });
  return withChanges('update', changes, more);
}

const shown = ({ changed, changes }: Pick<SeenCopy, 'changed' | 'changes'>): string =>
  `${changed.join(', ')}${changes > changed.length ? ` and ${changes - changed.length} more` : ''}`;

/** @throws HostFailure if the working copy has changes, commits, or files that exist only there */
export function expectNothingLost(path: string, copy: SeenCopy): void {
  if (copy.changes > 0)
    throw new HostFailure(
      `${path} has local changes, in ${shown(copy)}: commit and push them, or revert them; \`force: true\` discards them`,
    );
  if (copy.hasOwnCommits)
    throw new HostFailure(
      `${path} has commits that are in no branch of the repository: push them; \`force: true\` discards them`,
    );
  if (copy.untracked !== null)
    throw new HostFailure(
      `${path} has files that are not in the repository, such as ${copy.untracked}: move them elsewhere; \`force: true\` discards them`,
    );
}
