import type { ResolvedResource } from '@muster/protocol/module';
import type { Circumstances, ContentCopies, Difference, Machine } from '../provider/provider.ts';
import { applyFile, rememberFile } from './apply.ts';
import { diffFile } from './diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from './removal.ts';
import { type FileBefore, look, type SeenFile } from './seen.ts';

/** A small system file that implements a different type of resource, such as a unit or a cron job. */
export interface WrittenFile {
  path: string;
  /** Null if the file must not exist, or is a link. */
  text: string | null;
  /** Target of a symbolic link that takes the place of the file. */
  symlink?: string;
  mode: '0644' | '0600';
}

/**
 * Returns the text of an observed file, or null if the file is missing or larger than any file that the agent writes.
 */
export const textOf = ({ found }: SeenFile): string | null =>
  found.type === 'file' ? (found.content?.bytes?.toString('utf8') ?? null) : null;

/** Returns the file as a separate resource, so that it is observed, written, and restored like a declared file. */
const declared = (owner: ResolvedResource, { path, text, symlink, mode }: WrittenFile): ResolvedResource => ({
  ...owner,
  type: 'file-unix',
  identity: path,
  body:
    symlink !== undefined
      ? { path, symlink, owner: 'root', group: 'root' }
      : text === null
        ? { path, ensure: 'absent' }
        : { path, content: text, owner: 'root', group: 'root', mode },
});

export const lookAtWritten = (owner: ResolvedResource, file: WrittenFile, machine: Machine): SeenFile =>
  // The result is not a promise, because only larger files are hashed asynchronously.
  look(declared(owner, file), machine, true, []) as SeenFile;

/** @throws HostFailure if an object of a different type has this path, unless this is a drift check */
export const diffWritten = (
  owner: ResolvedResource,
  file: WrittenFile,
  seen: SeenFile,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference => diffFile(declared(owner, file), seen, circumstances);

export const rememberWritten = (
  owner: ResolvedResource,
  file: WrittenFile,
  seen: SeenFile,
  difference: Difference,
  before: FileBefore | null,
  machine: Machine,
): Promise<FileBefore> => rememberFile(declared(owner, file), seen, difference, before, machine);

export async function write(
  owner: ResolvedResource,
  file: WrittenFile,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<void> {
  await applyFile(declared(owner, file), seen, difference, machine);
}

/** @param before record of the file; null if the agent has not changed the file, so that it is only observed */
export const lookAtWrittenForRemoval = (
  owner: ResolvedResource,
  file: WrittenFile,
  before: FileBefore | null,
  machine: Machine,
): SeenFile | Promise<SeenFile> =>
  before === null ? lookAtWritten(owner, file, machine) : observeFileForRemoval(declared(owner, file), before, machine);

export const diffWrittenRemoval = (
  owner: ResolvedResource,
  file: WrittenFile,
  before: FileBefore,
  seen: SeenFile,
  copies: Pick<ContentCopies, 'read'>,
): Difference => diffFileRemoval(declared(owner, file), before, seen, copies);

export async function restoreWritten(
  owner: ResolvedResource,
  file: WrittenFile,
  before: FileBefore,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<void> {
  await removeOrRestoreFile(declared(owner, file), before, seen, difference, machine);
}
