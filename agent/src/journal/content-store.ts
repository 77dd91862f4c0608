import { createHash, hash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { HostFailure, hostFailure } from '../host/failure.ts';
import { synced } from '../host/files/atomic-write.ts';
import { pieces } from '../host/files/inspect.ts';
import { writeAll } from '../host/write-all.ts';
import type { ContentCopies, CopyReference } from '../resources/provider/provider.ts';
import { syncDirectoryAt } from './log.ts';

/** Copies of replaced file contents. Each copy is a file with mode 0600, named by its hash. */
export interface ContentStore extends ContentCopies {
  /** Makes the directory entries of all copies durable. */
  sync(): void;
  /** Removes all copies except those with the given hashes. */
  retain(hashes: ReadonlySet<string>): void;
}

/**
 * Maximum size of a copy, in bytes. The agent does not change a larger file. Otherwise, a user who can write to a
 * managed file could fill the agent's disk.
 */
export const maxCopy = 256 * 1024 * 1024;

const tooLarge = (): HostFailure =>
  new HostFailure(
    `the current content is larger than ${maxCopy / 1024 / 1024} MiB, so the agent cannot keep a copy to restore; nothing was changed. Move the file to another path.`,
  );

/**
 * Opens the copies in a directory.
 * @param directory an existing directory that only the agent can access
 */
export function openContentStore(directory: string): ContentStore {
  const pathOf = ({ sha256 }: { sha256: string }): string => `${directory}/${sha256}`;
  let unsynced = false;
  /** Names of copies that are being written. */
  const incoming = new Set<string>();
  let copiesMade = 0;

  const size = (path: string): number | null => statSync(path, { throwIfNoEntry: false })?.size ?? null;

  async function write(fill: (fd: number) => CopyReference | Promise<CopyReference>): Promise<CopyReference> {
    const name = `incoming-${++copiesMade}.tmp`;
    const temporary = `${directory}/${name}`;
    incoming.add(name);
    try {
      const fd = openSync(
        temporary,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
        0o600,
      );
      let reference: CopyReference;
      try {
        reference = await fill(fd);
        await synced(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, pathOf(reference));
      unsynced = true;
      return reference;
    } catch (error) {
      rmSync(temporary, { force: true });
      throw hostFailure(error, 'keep a copy of the current content');
    } finally {
      incoming.delete(name);
    }
  }

  return {
    async keep(content) {
      if (Buffer.isBuffer(content)) {
        const reference = { sha256: hash('sha256', content, 'hex'), size: content.length };
        if (size(pathOf(reference)) === content.length) return reference;
        return write((fd) => {
          writeAll(fd, content);
          return reference;
        });
      }
      if (fstatSync(content.openFd).size > maxCopy) throw tooLarge();
      return write(async (fd) => {
        const digest = createHash('sha256');
        let length = 0;
        for await (const piece of pieces(content.openFd)) {
          digest.update(piece);
          length += piece.length;
          // The file may grow while it is being read.
          if (length > maxCopy) throw tooLarge();
          writeAll(fd, piece);
        }
        return { sha256: digest.digest('hex'), size: length };
      });
    },
    pathOf(reference) {
      const path = pathOf(reference);
      if (size(path) !== reference.size)
        throw new HostFailure(`the copy of the original content is missing from the agent's data directory: ${path}`);
      return path;
    },
    read(reference, limit) {
      if (reference.size > limit) return null;
      try {
        return readFileSync(pathOf(reference));
      } catch {
        return null;
      }
    },
    sync() {
      if (unsynced) syncDirectoryAt(directory);
      unsynced = false;
    },
    retain(hashes) {
      for (const name of readdirSync(directory))
        if (!hashes.has(name) && !incoming.has(name)) unlinkSync(`${directory}/${name}`);
    },
  };
}
