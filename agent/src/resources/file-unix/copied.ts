import { posix } from 'node:path';
import { HostFailure } from '../../host/failure.ts';
import { asCreated, setIdBits, sharedWriteBits } from '../../host/files/decide-ownership.ts';
import { hashLarge, type Inspected, inspect, inspectOpen, type Ownership } from '../../host/files/inspect.ts';
import type { Machine } from '../provider/provider.ts';

/** The file whose content `copy_of` declares. */
export interface Copied {
  /** The path with symbolic links resolved. */
  path: string;
  found: Extract<Inspected, { type: 'file' }>;
  sha256: string;
  /**
   * Whether a user may have moved the file to this path and not everyone can read it. A copy could then reveal the
   * content to users who cannot read the original.
   */
  isPrivate: boolean;
}

/** Maximum size in bytes, as for files next to a module. */
const maxSize = 512 * 1024 * 1024;
const maxLinks = 40;

/**
 * Observes the file to copy. Follows symbolic links only if no unprivileged user can have created them, as a path walk
 * does.
 * @returns null if it does not exist
 * @throws HostFailure if the path does not lead to a file, or the file is too large
 */
export async function lookAtCopied(declared: string, { walk }: Pick<Machine, 'walk'>): Promise<Copied | null> {
  let path = declared;
  for (let links = 0; links < maxLinks; links++) {
    const found = inspect(walk, path, true);
    if (found.type === 'absent') return null;
    if (found.type === 'file') return copiedAt(path, found, walk);
    if (found.type !== 'symlink')
      throw new HostFailure(`${path} is a ${found.type === 'other' ? found.kind : found.type}, which cannot be copied`);
    if (found.movable === true || (found.uid !== 0 && found.uid !== asCreated(0).uid))
      throw new HostFailure(
        `${path} is a symbolic link in a directory that an unprivileged user can change; it is not followed`,
      );
    const { target } = found;
    path = walk.within(path, 'null', (parent) => posix.resolve(parent.path || '/', target)) ?? path;
  }
  throw new HostFailure(`too many symbolic links on the way to ${declared}`);
}

async function copiedAt(path: string, found: Copied['found'], walk: Machine['walk']): Promise<Copied> {
  const { content, size } = found;
  if (size > maxSize)
    throw new HostFailure(`${path} has ${size} bytes, and \`copy_of\` copies at most ${maxSize / 1024 / 1024} MiB`);
  const sha256 = content?.sha256 ?? (await hashLarge(walk, path, found, size));
  if (sha256 === null) throw new HostFailure(`${path} changes while it is read; apply again`);
  return { path, found, sha256, isPrivate: isPrivate(path, found, walk) };
}

function isPrivate(path: string, found: Copied['found'], walk: Machine['walk']): boolean {
  if (found.movable !== true || found.size === 0) return false;
  if ((found.mode & 4) === 0) return true;
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
    const directory = walk.open(path.slice(0, cut), 'null');
    if (directory === null) return true;
    try {
      // Users cannot have moved this directory if only root can change its parents.
      if ((inspectOpen(directory).mode & 1) === 0) return true;
      if (directory.trusted) return false;
    } finally {
      walk.release(directory);
    }
  }
  return false;
}

/**
 * Returns the permissions of a copy without a declared `mode`, so that the copy grants no more than the original.
 * @param found the current file at the path of the copy
 * @param createdMode permissions of a new file
 * @returns null if the current permissions, or those of a new file, grant no more than the original
 */
export function narrowedMode(
  found: Inspected,
  { found: original }: Pick<Copied, 'found'>,
  createdMode: number,
): number | null {
  const base = found.type === 'file' ? found.mode : createdMode;
  if ((base & ~original.mode) === 0) return null;
  const isOthers = found.type === 'file' && found.uid !== asCreated(0).uid;
  return base & original.mode & ~(setIdBits | (isOthers ? sharedWriteBits : 0));
}

/**
 * Returns the error for a copy that could show a private file to other users; null if only root, or the owner of the
 * copied file, can read the copy.
 */
export function copyExposure({ path, found, isPrivate }: Copied, target: Ownership): HostFailure | null {
  const isReaderKnown = target.uid === asCreated(0).uid || target.uid === found.uid;
  if (!isPrivate || (isReaderKnown && (target.mode & 0o077) === 0)) return null;
  return new HostFailure(
    `${path} is not copied: not every user can read it, and a user who can rename files there may have moved it to this path. Declare the owner root and the mode "0600" for the copy, or copy a file from a directory that only root can change.`,
  );
}
