import type { ResolvedResource } from '@muster/protocol/module';
import { applyFile, rememberFile } from '../file-unix/apply.ts';
import { diffFile } from '../file-unix/diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from '../file-unix/removal.ts';
import { type FileBefore, look, type SeenFile } from '../file-unix/seen.ts';
import type { Circumstances, ContentCopies, Difference, Machine } from './provider.ts';

/** A small text file of the system that a resource of another kind consists of, such as a unit or a job of cron. */
export interface WrittenFile {
  path: string;
  /** Null: there is to be none. */
  text: string | null;
  mode: '0644' | '0600';
}

/** The text of a file that was looked at; null when there is none, or it is too large to be one of ours. */
export const textOf = ({ found }: SeenFile): string | null =>
  found.type === 'file' ? (found.content?.bytes?.toString('utf8') ?? null) : null;

/** The same as a resource of its own, so that it is looked at, written and put back as any declared file is. */
const declared = (owner: ResolvedResource, { path, text, mode }: WrittenFile): ResolvedResource => ({
  ...owner,
  type: 'file-unix',
  identity: path,
  body: text === null ? { path, ensure: 'absent' } : { path, content: text, owner: 'root', group: 'root', mode },
});

export const lookAtWritten = (owner: ResolvedResource, file: WrittenFile, machine: Machine): SeenFile =>
  // Only a content larger than any of ours is hashed later, and this one has none.
  look(declared(owner, file), machine, true, []) as SeenFile;

/** @throws HostFailure when something stands there that is not touched, unless it is only looked at */
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

/** @param before what was recorded of it; null: it is not changed by us, and only looked at */
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

export async function putBack(
  owner: ResolvedResource,
  file: WrittenFile,
  before: FileBefore,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<void> {
  await removeOrRestoreFile(declared(owner, file), before, seen, difference, machine);
}
