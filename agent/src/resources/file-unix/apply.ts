import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { lacksAclPrograms, permissionsWithoutAcl, writeAcl } from '../../host/files/acl-entries.ts';
import { type NewFile, writeFileAtomically, writeSymlinkAtomically } from '../../host/files/atomic-write.ts';
import { asCreated, setIdBits } from '../../host/files/decide-ownership.ts';
import { expectUnchanged, hashLarge, type Inspected, withFile } from '../../host/files/inspect.ts';
import { setFileOwnership, setLinkOwner } from '../../host/files/ownership.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { removeFile } from '../../host/files/remove.ts';
import { wantedEntries } from '../provider/acl.ts';
import { changeWithAttributes, rememberAttributes } from '../provider/attributes.ts';
import { changeWithCapabilities, recordedCapabilities, textOfCapabilities } from '../provider/capabilities.ts';
import { allTouched, type FileState, statesOf, targetOwnership, touchOwnership } from '../provider/ownership.ts';
import type { Difference, Machine, Outcome } from '../provider/provider.ts';
import { runValidation } from '../provider/validation.ts';
import {
  bodyOf,
  contentFor,
  createdMode,
  declaredObject,
  type FileBefore,
  isWritten,
  ownershipToKeep,
  pathOf,
  plain,
  type SeenFile,
  wrongType,
} from './seen.ts';

/**
 * Records file fields that are about to change for the first time, with a copy of the content.
 * @param hashFile returns null if the record needs no hash
 */
export async function rememberFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  before: FileBefore | null,
  machine: Machine,
  hashFile: typeof hashLarge = hashLarge,
): Promise<FileBefore> {
  const record = await rememberFields(resource, seen, difference, before, machine, hashFile);
  return rememberAttributes(record, seen.attributes);
}

async function rememberFields(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  before: FileBefore | null,
  machine: Machine,
  hashFile: typeof hashLarge,
): Promise<FileBefore> {
  const { found, ownership, acl } = plain(seen);
  if (before !== null && before.was !== 'file') return before;
  if (found.type === 'absent') return before === null ? { was: 'absent' } : allTouched(before);
  if (found.type === 'symlink')
    return before === null
      ? { was: 'symlink', target: found.target, uid: found.uid, gid: found.gid }
      : allTouched(before);
  if (found.type !== 'file') throw wrongType(pathOf(resource), found);
  // Copies the record, because only journal entries may change the journal's own record.
  const record = {
    ...(before ?? {
      was: 'file',
      uid: found.uid,
      gid: found.gid,
      mode: found.mode,
      ownerName: ownership.ownerName ?? String(found.uid),
      groupName: ownership.groupName ?? String(found.gid),
      content: null,
      touched: [],
      states: [],
    }),
  };
  if (record.acl === undefined && acl?.found != null) record.acl = acl.found;
  const capabilities = recordedCapabilities(pathOf(resource), record.capabilities, seen.capabilities);
  if (capabilities !== undefined) record.capabilities = capabilities;
  const changing = new Set(difference.changes.map(({ field }) => field));
  // A removal or a replacement by a link would lose the content, the owner, and the permissions.
  const goes = changing.has('symlink') || changing.has('ensure');
  if ((changing.has('content') || goes) && record.content === null) {
    const { content } = found;
    record.content = await (content?.bytes != null
      ? machine.copies.keep(content.bytes)
      : withFile(machine.walk, pathOf(resource), found, (openFd) => machine.copies.keep({ openFd })));
    changing.add('content');
  }
  const touched = touchOwnership(record, changing, goes, found, ownership);
  // The removal restores the file without its ACL, so the mask must not become the permissions of the owning group.
  const isReplaced = (goes || changing.has('content')) && !keepsAclWith(found, goes);
  const losesOwner = changing.has('owner') && !record.touched.includes('owner') && found.uid !== asCreated(0).uid;
  if (record.acl === undefined && (isReplaced || losesOwner))
    touched.mode &= ~(found.mode & ~(await permissionsOf(pathOf(resource), found, machine.walk)));
  if (touched.touched.length > record.touched.length) {
    const state = await stateOf(resource, found, changing, machine, hashFile);
    touched.states = [...statesOf(record), ...(state === null ? [] : [state])];
  }
  return touched;
}

const permissionsOf = (path: string, found: Extract<Inspected, { type: 'file' }>, walk: PathWalk): Promise<number> =>
  withFile(walk, path, found, (fd) => permissionsWithoutAcl(`/proc/${process.pid}/fd/${fd}`, path, found.mode));

/** Reports whether the file keeps its ACL. If so, the recorded permissions include the ACL's mask. */
const keepsAclWith = ({ uid, movable }: Extract<Inspected, { type: 'file' }>, goes: boolean): boolean =>
  !goes && uid === asCreated(0).uid && movable !== true && !lacksAclPrograms();

/** Maximum size in bytes. The record has no hash for a larger file, so a previous owner is not restored. */
const maxRecorded = 256 * 1024 * 1024;

/** Returns the state to record, or null if the content is not recorded or is too large. */
async function stateOf(
  resource: ResolvedResource,
  found: Extract<Inspected, { type: 'file' }>,
  changing: ReadonlySet<string>,
  machine: Machine,
  hashFile: typeof hashLarge,
): Promise<FileState | null> {
  const { uid, gid, mode, content, size, movable } = found;
  const matters = changing.has('content') || changing.has('owner') || (mode & setIdBits) !== 0 || movable !== undefined;
  if (!matters || size > maxRecorded) return null;
  const sha256 = content?.sha256 ?? (await hashFile(machine.walk, pathOf(resource), found, size));
  return sha256 === null ? null : { uid, gid, mode, sha256, size, ...(movable === undefined ? {} : { movable }) };
}

export async function applyFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const declared = contentFor(resource, seen);
  const { copied } = seen;
  if (copied === null) throw new HostFailure(`there is no file ${bodyOf(resource).copy_of} to copy`);
  if (copied !== undefined && declared?.bytes === null) {
    const { sha256, size } = declared.source;
    return withFile(machine.walk, copied.path, copied.found, (openFd) =>
      placeFile(resource, seen, difference, { openFd, sha256, size }, machine),
    );
  }
  const isFetched =
    declared?.bytes === null && declared.size > 0 && isWritten(bodyOf(resource), seen, difference.changes);
  if (!isFetched) return placeFile(resource, seen, difference, { bytes: declared?.bytes ?? Buffer.alloc(0) }, machine);
  // Fetches the content before it opens the directories, because fetching may take a long time.
  return machine.useContent(declared.source, ({ path }) =>
    placeFile(resource, seen, difference, { copyOf: path }, machine),
  );
}

/**
 * Writes a file whose content is known.
 * @param together writes other files that belong to this one, just before this file is replaced; called only if the
 * content of this file is written
 */
export async function placeFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  content: NewFile['content'],
  machine: Machine,
  together?: () => Promise<void>,
): Promise<Outcome> {
  const { path, ensure, attributes: wanted, capabilities: names } = bodyOf(resource);
  const { found, attributes, capabilities } = seen;
  const stays = ensure === 'absent' ? null : wanted;
  return changeWithAttributes({ path, found, type: 'file', attributes }, stays, machine, (current) =>
    changeWithCapabilities(path, capabilities, names == null ? null : textOfCapabilities(names), machine, (finish) =>
      replaceFile(resource, { ...seen, found: current }, difference, content, machine, { finish, together }),
    ),
  );
}

async function replaceFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  content: NewFile['content'],
  machine: Machine,
  before: { finish: (temporary: string) => Promise<void>; together: (() => Promise<void>) | undefined },
): Promise<Outcome> {
  const body = bodyOf(resource);
  const { found } = seen;
  const outcome = machine.walk.within(
    body.path,
    body.ensure === 'absent' ? 'null' : 'make',
    async (parent, name): Promise<Outcome> => {
      if (body.ensure === 'absent') {
        expectUnchanged(parent, name, found);
        removeFile(parent, name);
        machine.changedDirectory(parent.path);
        return {};
      }
      const decided = plain(seen);
      const written = isWritten(body, decided, difference.changes);
      const recorded = ownershipToKeep(decided.found, body);
      const target = targetOwnership(body, recorded, seen.ownership, declaredObject(body, written), createdMode);
      if (body.symlink != null) {
        if (found.type === 'symlink' && found.target === body.symlink) setLinkOwner(parent, name, found, target);
        else {
          expectUnchanged(parent, name, found);
          writeSymlinkAtomically(parent, name, { target: body.symlink, uid: target.uid, gid: target.gid });
        }
        machine.changedDirectory(parent.path);
        return {};
      }
      const { acl } = seen;
      const finish =
        acl === undefined
          ? undefined
          : (open: string) => writeAcl(open, body.path, target.mode, wantedEntries(acl, target.mode));
      if (!written) {
        const keepsMode = acl === undefined && body.mode == null;
        await setFileOwnership(parent, name, found, { ...target, keepsMode }, finish);
        return {};
      }
      const { validate } = body;
      await writeFileAtomically(parent, name, {
        content,
        ...target,
        finish,
        // The ACL of another user's file could let others change the new content.
        keepsAclOf: acl === undefined && target.uid === asCreated(0).uid ? found : undefined,
        keepsModeOf: acl === undefined && body.mode == null ? found : undefined,
        beforeRename: async (temporary) => {
          if (validate != null) await runValidation(validate, temporary, resource, machine);
          await before.finish(temporary);
          expectUnchanged(parent, name, found);
          await before.together?.();
        },
      });
      machine.changedDirectory(parent.path);
      return {};
    },
  );
  return (await outcome) ?? {};
}
