import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../../lib/src/clock.ts';
import { hostFailure } from '../host/failure.ts';
import { synced } from '../host/files/atomic-write.ts';
import { pieces } from '../host/files/inspect.ts';
import type { CopyReference, NameSuffix, StoredContent } from '../resources/provider/provider.ts';

/** Maximum size of the cache in bytes, not counting files in use. */
export const maxCacheBytes = 512 * 1024 * 1024;

const doing = 'store the content of a file in the data directory';
const partSuffix = '.part';
/** Suffixes of the additional names that `named` creates. */
const nameSuffixes: readonly NameSuffix[] = ['.deb', '.rpm'];

/**
 * Content of files next to modules, as received from the orchestrator. Each one is stored in a file with mode 0600,
 * named by its hash. An incomplete file has a suffix, and its transfer resumes after a lost link or a restart.
 */
export class ContentCache {
  readonly #directory: string;
  readonly #clock: Pick<Clock, 'now'>;
  /** Open incomplete files, by hash. */
  readonly #arriving = new Map<string, number>();
  /** Number of users of each cached file, by hash. */
  readonly #users = new Map<string, number>();

  /** @param directory an existing directory that only the agent can access */
  constructor(directory: string, clock: Pick<Clock, 'now'>) {
    this.#directory = directory;
    this.#clock = clock;
  }

  #pathOf({ sha256 }: Pick<CopyReference, 'sha256'>): string {
    return `${this.#directory}/${sha256}`;
  }

  /**
   * Reports whether content is stored completely. Checking the size is sufficient: a file gets this name only after its
   * hash is verified and its bytes are synced, and only the agent can write to the directory.
   */
  has(reference: CopyReference): boolean {
    return sizeOf(this.#pathOf(reference)) === reference.size;
  }

  /** Returns the size of content that is stored completely; otherwise null. */
  sizeOf(sha256: string): number | null {
    return sizeOf(this.#pathOf({ sha256 }));
  }

  /** Returns the number of bytes received so far for content that is not stored completely. */
  arrivedOf(sha256: string): number {
    return sizeOf(`${this.#pathOf({ sha256 })}${partSuffix}`) ?? 0;
  }

  /** Retains content, or the part received so far, until the returned function is called. */
  hold({ sha256 }: CopyReference): () => void {
    this.#users.set(sha256, (this.#users.get(sha256) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = (this.#users.get(sha256) ?? 0) - 1;
      if (left > 0) this.#users.set(sha256, left);
      else this.#users.delete(sha256);
    };
  }

  /** Returns stored content, and marks it as used. */
  stored(reference: CopyReference): StoredContent {
    const path = this.#pathOf(reference);
    try {
      const seconds = this.#clock.now() / 1000;
      utimesSync(path, seconds, seconds);
    } catch (error) {
      throw hostFailure(error, doing);
    }
    return { path, read: () => readFile(path), named: (suffix) => this.#named(path, suffix) };
  }

  /** Adds a name to a file. The file keeps it until it is deleted. */
  #named(path: string, suffix: NameSuffix): string {
    const name = `${path}${suffix}`;
    try {
      // The name was created by an earlier operation, and may refer to a damaged file whose content was fetched again.
      if (statSync(name, { throwIfNoEntry: false })?.ino === statSync(path).ino) return name;
      rmSync(name, { force: true });
      linkSync(path, name);
    } catch (error) {
      throw hostFailure(error, doing);
    }
    return name;
  }

  /**
   * Begins or resumes receiving content, and frees space for it.
   * @returns the number of bytes received so far
   * @throws HostFailure
   */
  begin(reference: CopyReference): number {
    const { sha256, size } = reference;
    const path = `${this.#pathOf(reference)}${partSuffix}`;
    try {
      let arrived = sizeOf(path) ?? 0;
      this.makeRoom(size - Math.min(size, arrived));
      if (!this.#arriving.has(sha256))
        this.#arriving.set(sha256, openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
      if (arrived > size) {
        truncateSync(path, 0);
        arrived = 0;
      }
      return arrived;
    } catch (error) {
      throw hostFailure(error, doing);
    }
  }

  /** Stores received bytes. @throws HostFailure */
  add({ sha256 }: CopyReference, position: number, bytes: Uint8Array): void {
    const fd = this.#arriving.get(sha256);
    if (fd === undefined) throw new Error('received bytes of content that was not begun');
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, position + at);
    } catch (error) {
      throw hostFailure(error, doing);
    }
  }

  /**
   * Checks received content, and makes it available if its hash is correct. Otherwise, deletes it.
   * @returns whether the hash is correct
   * @throws HostFailure
   */
  async complete(reference: CopyReference): Promise<boolean> {
    const fd = this.#arriving.get(reference.sha256);
    if (fd === undefined) throw new Error('finished content that was not begun');
    const path = this.#pathOf(reference);
    try {
      const digest = createHash('sha256');
      for await (const piece of pieces(fd)) digest.update(piece);
      const isRight = digest.digest('hex') === reference.sha256;
      if (isRight) await synced(fd);
      this.leave(reference);
      if (isRight) renameSync(`${path}${partSuffix}`, path);
      else rmSync(`${path}${partSuffix}`, { force: true });
      return isRight;
    } catch (error) {
      this.leave(reference);
      throw hostFailure(error, doing);
    }
  }

  /** Stops receiving content. The received bytes are retained. */
  leave({ sha256 }: Pick<CopyReference, 'sha256'>): void {
    const fd = this.#arriving.get(sha256);
    if (fd === undefined) return;
    this.#arriving.delete(sha256);
    closeSync(fd);
  }

  /** Deletes partially received content. */
  discard(reference: Pick<CopyReference, 'sha256'>): void {
    this.leave(reference);
    rmSync(`${this.#pathOf(reference)}${partSuffix}`, { force: true });
  }

  /** Deletes the least recently used files until this many bytes fit. */
  makeRoom(bytes: number): void {
    const entries = this.#entries();
    let total = entries.reduce((sum, { size }) => sum + size, bytes);
    for (const { name, sha256, size } of entries.sort((a, b) => a.usedAt - b.usedAt)) {
      if (total <= maxCacheBytes) return;
      if (this.#users.has(sha256)) continue;
      this.#delete(name);
      total -= size;
    }
  }

  /** Deletes all files except those in use and those with one of these hashes. */
  retain(hashes: ReadonlySet<string>): void {
    for (const { name, sha256 } of this.#entries())
      if (!hashes.has(sha256) && !this.#users.has(sha256)) this.#delete(name);
    this.makeRoom(0);
  }

  /** Deletes a file and its additional names. */
  #delete(name: string): void {
    for (const suffix of [...nameSuffixes, '']) rmSync(`${this.#directory}/${name}${suffix}`, { force: true });
  }

  #entries(): { name: string; sha256: string; size: number; usedAt: number }[] {
    return readdirSync(this.#directory).flatMap((name) => {
      if (nameSuffixes.some((suffix) => name.endsWith(suffix))) return [];
      const stats = statSync(`${this.#directory}/${name}`, { throwIfNoEntry: false });
      if (stats === undefined) return [];
      const sha256 = name.endsWith(partSuffix) ? name.slice(0, -partSuffix.length) : name;
      return [{ name, sha256, size: stats.size, usedAt: stats.mtimeMs }];
    });
  }
}

const sizeOf = (path: string): number | null => statSync(path, { throwIfNoEntry: false })?.size ?? null;
