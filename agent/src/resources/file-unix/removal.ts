import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure, NotADirectory } from '../../host/failure.ts';
import { writeAcl } from '../../host/files/acl-entries.ts';
import { type NewFile, writeFileAtomically, writeSymlinkAtomically } from '../../host/files/atomic-write.ts';
import { asCreated, exposes, setIdBits } from '../../host/files/decide-ownership.ts';
import { expectUnchanged, type Inspected, maxContentInMemory, withFile } from '../../host/files/inspect.ts';
import { setFileOwnership } from '../../host/files/ownership.ts';
import { removeFile } from '../../host/files/remove.ts';
import { diffAclRemoval, restoredAcl, widened, withinMask } from '../provider/acl.ts';
import { changeWithAttributes, diffAttributesRemoval, lookAtAttributes } from '../provider/attributes.ts';
import {
  changeWithCapabilities,
  diffCapabilitiesRemoval,
  lookAtCapabilities,
  restoredCapabilities,
} from '../provider/capabilities.ts';
import {
  decideHandBack,
  exposure,
  formatMode,
  type HandBack,
  ownershipChanges,
  type RecordedFile,
  statesOf,
} from '../provider/ownership.ts';
import { type ContentCopies, type Difference, type Machine, nothing, type Outcome } from '../provider/provider.ts';
import {
  bodyOf,
  contentText,
  disappearance,
  type FileBefore,
  look,
  lookAtAcl,
  pathOf,
  plain,
  type SeenFile,
  showDiff,
  shown,
  withoutContent,
  wrongType,
} from './seen.ts';

/** Observes a file that the agent restores to its previous state or, if the agent created it, removes. */
export async function observeFileForRemoval(
  resource: ResolvedResource,
  before: FileBefore,
  machine: Machine,
): Promise<SeenFile> {
  try {
    const seen = await look(resource, machine, true, before.was === 'file' ? sizesIn(before) : []);
    const path = pathOf(resource);
    return {
      ...seen,
      ...(before.was === 'file' && before.acl !== undefined ? { acl: await lookAtAcl(path, seen, [], machine) } : {}),
      ...(before.attributes === undefined ? {} : { attributes: await lookAtAttributes(path, seen.found, machine) }),
      ...(before.was === 'file' && before.capabilities !== undefined
        ? { capabilities: await lookAtCapabilities(path, seen.found, machine) }
        : {}),
    };
  } catch (error) {
    // The file's directory does not exist any more either.
    if (!(error instanceof NotADirectory) || before.was !== 'absent') throw error;
    return { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null } };
  }
}

export const diffFileRemoval = (
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  copies: Pick<ContentCopies, 'read'>,
): Difference => {
  const difference = diffRemovalShown(resource, before, plain(seen), copies);
  return bodyOf(resource).copy_of == null ? difference : withoutContent(difference, seen);
};

function diffRemovalShown(
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const path = pathOf(resource);
  const { found } = seen;
  if (found.type === 'directory' || found.type === 'other') {
    if (before.was === 'absent') return nothing('already removed; the agent did not create the current object');
    throw wrongType(path, found);
  }
  if (before.was === 'absent')
    return found.type === 'absent' ? nothing('already removed') : { ...disappearance(path, found), action: 'remove' };
  if (before.was === 'symlink') {
    if (found.type === 'symlink' && found.target === before.target) return nothing('already in its original state');
    const changes: FieldChange[] = [
      { field: 'symlink', from: found.type === 'symlink' ? shown(found.target) : null, to: shown(before.target) },
    ];
    return { action: 'remove', changes, diff: null, message: 'restores the original state' };
  }
  if (found.type === 'absent' && before.content === null)
    return nothing('already removed; the agent never changed its content, so it has no copy to restore');
  const back = handBack(before, found);
  if (back.is === 'refused') throw refusal(path, before, seen);
  const { target, content, left } = back;
  const isRestored = content.is === 'restored';
  const changes: FieldChange[] = [];
  let diff: string | null = null;
  const now = found.type === 'file' ? found : null;
  if (found.type === 'absent') changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (found.type === 'symlink' && isRestored) changes.push({ field: 'symlink', from: shown(found.target), to: null });
  if (isRestored && before.content !== null) {
    changes.push({
      field: 'content',
      from: now?.content == null ? null : contentText(now.content),
      to: contentText(before.content),
    });
    diff = showDiff(path, now?.content ?? null, {
      bytes: copies.read(before.content, maxContentInMemory),
      size: before.content.size,
    });
  }
  if (now !== null)
    changes.push(
      ...ownershipChanges(now, target, { from: seen.ownership, owner: before.ownerName, group: before.groupName }),
    );
  if (before.acl !== undefined) {
    const acl = diffAclRemoval(path, before.acl, seen.acl);
    const opened = widened(target, before.acl.entries);
    if (acl.length > 0 && now !== null && content.is === 'kept' && exposes(withinMask(now, seen.acl), opened, 'file'))
      throw exposure(path, seen.ownership.ownerName, target);
    changes.push(...acl);
  }
  changes.push(...diffAttributesRemoval(path, before.attributes, seen.attributes));
  const capabilities = formerCapabilities(before, seen);
  if (capabilities !== null) changes.push(...diffCapabilitiesRemoval(path, capabilities.text, seen.capabilities));
  const leftOut = [
    ...(left.content ? ['its content is kept: the recorded content belonged to another owner'] : []),
    ...(left.setId ? ['its set-user-ID or set-group-ID bit is not restored: its content has changed'] : []),
    ...(capabilities?.isLeftOut === true
      ? ['its capabilities are not restored: users other than root may write it, or may have written it']
      : []),
  ];
  if (changes.length === 0) return nothing(leftOut.length === 0 ? 'already in its original state' : leftOut.join('; '));
  return { action: 'remove', changes, diff, message: ['restores the original state', ...leftOut].join('; ') };
}

const sizesIn = (before: RecordedFile): number[] => [
  ...(before.content === null ? [] : [before.content.size]),
  ...statesOf(before).map(({ size }) => size),
];

const handBack = (before: RecordedFile, found: Inspected): HandBack =>
  decideHandBack(before, found.type === 'file' ? found : null, asCreated(before.mode));

/** Returns the capabilities to restore; null if none are recorded, or the file is not restored. */
function formerCapabilities(
  before: FileBefore,
  { found, acl }: SeenFile,
): ReturnType<typeof restoredCapabilities> | null {
  if (before.was !== 'file' || before.capabilities === undefined) return null;
  const back = handBack(before, found);
  if (back.is === 'refused') return null;
  const target = before.acl === undefined ? back.target : widened(back.target, before.acl.entries);
  const kept = found.type === 'file' && back.content.is !== 'restored' ? withinMask(found, acl) : null;
  return restoredCapabilities(before.capabilities, kept, target);
}

function refusal(path: string, before: RecordedFile, { found, ownership }: SeenFile): HostFailure {
  const { uid, gid, mode, ownerName } = before;
  const byHand = `chown ${uid}:${gid} ${path} && chmod ${formatMode(mode & ~setIdBits)} ${path}`;
  const goes = before.content === null || handBack(before, { type: 'absent' }).is === 'possible';
  return new HostFailure(
    found.type === 'file'
      ? `the owner of ${path} is not restored to ${ownerName}: the record does not show that ${ownerName} wrote its content; it now belongs to ${ownership.ownerName}. Inspect the file, then ${goes ? 'delete it or ' : ''}run ${byHand}; then apply again.`
      : `${path} is not restored for ${ownerName}: the record does not show that ${ownerName} wrote the recorded content. Create the file by hand and run ${byHand}; then apply again.`,
  );
}

export async function removeOrRestoreFile(
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  _difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const path = pathOf(resource);
  const { found, attributes, capabilities } = seen;
  const former = before.was === 'file' ? before.attributes : null;
  const restored = formerCapabilities(before, plain(seen))?.text ?? null;
  return changeWithAttributes({ path, found, type: 'file', attributes }, former, machine, (current) =>
    changeWithCapabilities(path, capabilities, restored, machine, (finish) =>
      removeOrRestore(resource, before, { ...seen, found: current }, machine, finish),
    ),
  );
}

async function removeOrRestore(
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  machine: Machine,
  finishTemporary: (temporary: string) => Promise<void>,
): Promise<Outcome> {
  const path = pathOf(resource);
  const { found } = seen;
  const outcome = machine.walk.within(
    path,
    before.was === 'absent' ? 'null' : 'make',
    async (parent, name): Promise<Outcome> => {
      if (before.was === 'absent') {
        expectUnchanged(parent, name, found);
        removeFile(parent, name);
        machine.changedDirectory(parent.path);
        return {};
      }
      if (before.was === 'symlink') {
        expectUnchanged(parent, name, found);
        writeSymlinkAtomically(parent, name, before);
        machine.changedDirectory(parent.path);
        return {};
      }
      const back = handBack(before, plain(seen).found);
      if (back.is === 'refused') throw refusal(path, before, seen);
      const { content } = back;
      const acl = before.acl === undefined ? null : restoredAcl(before.acl, back.target);
      const target = acl === null ? back.target : { ...back.target, mode: acl.mode };
      const finish = acl === null ? undefined : (open: string) => writeAcl(open, path, acl.mode, acl.entries);
      if (content.is === 'kept') {
        await setFileOwnership(parent, name, found, target, finish);
        return {};
      }
      const write = (from: NewFile['content']) =>
        writeFileAtomically(parent, name, {
          content: from,
          ...target,
          finish,
          keepsAclOf: acl === null && target.uid === asCreated(0).uid ? found : undefined,
          beforeRename: async (temporary) => {
            await finishTemporary(temporary);
            expectUnchanged(parent, name, found);
          },
        });
      if (content.is === 'copied') await withFile(machine.walk, path, found, (openFd) => write({ ...content, openFd }));
      else if (before.content !== null) await write({ copyOf: machine.copies.pathOf(before.content) });
      machine.changedDirectory(parent.path);
      return {};
    },
  );
  return (await outcome) ?? {};
}
