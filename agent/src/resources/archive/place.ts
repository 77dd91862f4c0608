import { hash } from 'node:crypto';
import { posix } from 'node:path';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import type { OpenDirectory, PathWalk } from '../../host/files/path-walk.ts';

export type Declared = ResolvedResource<'archive'>;
export type Body = ResourceBodies['archive'];

/** Determines the tree that results from an archive. */
export interface Unpacking {
  sha256: string;
  strip: number;
  exclude: readonly string[];
}

export const releasesName = 'releases';
export const linkName = 'current';

/** @throws HostFailure if the source has no content */
export function unpackingOf({ body, source }: Declared): Unpacking {
  const sha256 = body.source == null ? body.sha256 : source?.sha256;
  if (sha256 == null)
    throw new HostFailure(`the orchestrator sent no content for the source ${body.source}; update the orchestrator`);
  return { sha256, strip: body.strip ?? 0, exclude: body.exclude ?? [] };
}

/** Returns the name of a release's directory. The name also depends on how the archive is unpacked. */
export function releaseOf({ sha256, strip, exclude }: Unpacking): string {
  const plain = strip === 0 && exclude.length === 0;
  const rest = plain ? '' : `-${hash('sha256', JSON.stringify([strip, exclude]), 'hex').slice(0, 6)}`;
  return `${sha256.slice(0, 12)}${rest}`;
}

export const folderOf = (path: string): string => (posix.dirname(path) === '/' ? '' : posix.dirname(path));

/**
 * Opens a directory in which only root can create names, so that no other user can redirect the agent.
 * @returns its real path; null if it does not exist
 * @throws HostFailure if other users can create names in it
 */
export function trustedPath(walk: PathWalk, path: string, missing: 'make' | 'null'): string | null {
  const directory = walk.open(path, missing);
  if (directory === null) return null;
  try {
    expectTrusted(directory);
    return directory.path;
  } finally {
    walk.release(directory);
  }
}

/**
 * Refuses a file through which another user could redirect a program that runs as root.
 * @param reader the program, for messages
 * @throws HostFailure if another user can change the file, or it is not a regular file
 */
export function expectTrustedFile(walk: PathWalk, path: string, reader: string): void {
  const found = inspect(walk, path, false);
  if (found.type === 'absent') return;
  const isOwn = found.uid === 0 || found.uid === process.geteuid?.();
  if (found.type !== 'file' || !isOwn || (found.mode & 0o022) !== 0)
    throw new HostFailure(`${reader} reads ${path}: make it a regular file that only root can write`);
}

function expectTrusted(directory: OpenDirectory): void {
  if (!directory.exclusive)
    throw new HostFailure(
      `users other than root can change the names in ${directory.path || '/'}: choose a path in a directory that belongs to root`,
    );
}
