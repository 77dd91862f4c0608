import { errorMessage } from '../../../lib/src/error-message.ts';

/** A failure on this machine that an operator can act on. The resource's result shows the message. */
export class HostFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'HostFailure';
  }
}

/** A component of the path exists but is not a directory. */
export class NotADirectory extends HostFailure {}

export const errnoOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;

const explanations: Readonly<Record<string, string>> = {
  EACCES: 'permission denied; the agent must run as root to do this',
  EPERM: 'not permitted; the agent must run as root, and the file must not be immutable (lsattr)',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the file system',
  EDQUOT: 'the disk quota is exceeded',
  EIO: 'the disk reported an input/output error',
  ENOTDIR: 'a component of the path is not a directory',
  ENOENT: 'it does not exist',
  ENAMETOOLONG: 'the name is too long for the file system',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files on this machine',
  ETXTBSY: 'the file is being executed',
  EBUSY: 'it is busy, perhaps because it is a mount point',
  ENOTEMPTY: 'the directory is not empty',
  EISDIR: 'it is a directory',
  ELOOP: 'the path contains a symbolic link, which the agent does not follow',
};

/**
 * Converts an operating system error to one that names the attempted action and the reason.
 * @param doing completes "cannot …", such as `write /etc/motd`
 * @returns `error` itself if it is already a HostFailure
 */
export function hostFailure(error: unknown, doing: string): HostFailure {
  if (error instanceof HostFailure) return error;
  const code = errnoOf(error);
  if (code !== null) return new HostFailure(`cannot ${doing}: ${explanations[code] ?? code}`);
  return new HostFailure(`cannot ${doing}: ${errorMessage(error)}`);
}
