import type { ResolvedResource } from '@muster/protocol/module';
import { filePart } from './file-part.ts';
import type { SeenFile } from './seen.ts';

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

/** Returns the functions that observe, write, and restore a file like a declared file. */
export const writtenPart = (owner: ResolvedResource, { path, text, symlink, mode }: WrittenFile) =>
  filePart({
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
