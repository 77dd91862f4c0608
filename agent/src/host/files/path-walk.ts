import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import { posix } from 'node:path';
import { errnoOf, HostFailure, hostFailure, NotADirectory } from '../failure.ts';
import { makeDirectory } from './make-directory.ts';

/** Linux open(2) flag: opens a handle that identifies a file or directory without permission to read it. */
export const O_PATH = 0o10000000;
const openFlags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const maxSymlinks = 40;
const maxOpen = 128;

/** An open directory. Access through it always reaches this directory, even if its path is renamed or replaced. */
export interface OpenDirectory {
  /** The real path when the directory was opened. */
  readonly path: string;
  /** Returns an entry's path, for calls to `node:fs`. `name` is one component. */
  child(name: string): string;
  /** Path of the directory itself, for calls to `node:fs`. */
  readonly self: string;
  /** Whether only root and the agent's user can change any name between / and this directory. */
  readonly trusted: boolean;
  /** The owner when the directory was opened. */
  readonly uid: number;
  /**
   * Whether the directory is trusted and only root and the agent's user can create names in it, unlike in a sticky
   * directory such as /tmp.
   */
  readonly exclusive: boolean;
}

class HeldDirectory implements OpenDirectory {
  readonly path: string;
  readonly fd: number;
  readonly self: string;
  readonly uid: number;
  readonly trusted: boolean;
  readonly exclusive: boolean;
  users = 1;

  constructor(path: string, fd: number, uid: number, trusted: boolean, exclusive: boolean) {
    this.path = path;
    this.fd = fd;
    this.self = `/proc/self/fd/${fd}`;
    this.uid = uid;
    this.trusted = trusted;
    this.exclusive = exclusive;
  }

  child(name: string): string {
    return `${this.self}/${name}`;
  }
}

/**
 * Refuses a path that is not absolute and normalized.
 * @throws HostFailure
 */
export function checkPath(path: string): void {
  if (!path.startsWith('/')) throw new HostFailure(`${path} is not an absolute path`);
  if (path.includes('\0')) throw new HostFailure('the path contains a NUL character');
  if (path === '/') throw new HostFailure('the root directory cannot be managed');
  if (posix.normalize(path) !== path || path.endsWith('/'))
    throw new HostFailure(`${path} must not contain the components "." or "..", "//", or a trailing "/"`);
}

/**
 * Opens directories from the root down, one component at a time, so that an unprivileged user cannot redirect a write.
 * Follows a symbolic link only if no user other than root and the agent's own user can have created it: it follows /bin
 * and /var/run, but refuses a link in a directory that another user owns. Caches open directories until `close`. Use a
 * new walk, or `forget`, after any change that may have moved directories.
 */
export class PathWalk {
  readonly #own = process.geteuid?.() ?? 0;
  /** Open directories by real path. */
  readonly #held = new Map<string, HeldDirectory>();
  readonly #created: (path: string) => void;

  /** @param created called with the path of each directory that `open` created */
  constructor(created: (path: string) => void = () => {}) {
    this.#created = created;
  }

  /**
   * Runs `action` on the parent directory of `path` and the name in it.
   * @param missing for missing directories: `null` returns null, `make` creates them with mode 0755
   * @throws HostFailure if the path leads through an unsafe link or a file
   */
  within<T>(path: string, missing: 'make', action: (parent: OpenDirectory, name: string) => T): T;
  within<T>(path: string, missing: 'make' | 'null', action: (parent: OpenDirectory, name: string) => T): T | null;
  within<T>(path: string, missing: 'make' | 'null', action: (parent: OpenDirectory, name: string) => T): T | null {
    const cut = path.lastIndexOf('/');
    const directory = this.open(path.slice(0, cut), missing);
    if (directory === null) return null;
    let result: T;
    try {
      result = action(directory, path.slice(cut + 1));
    } catch (error) {
      this.release(directory);
      throw error;
    }
    if (result instanceof Promise) return result.finally(() => this.release(directory)) as T;
    this.release(directory);
    return result;
  }

  /**
   * Opens a directory. The caller must `release` it.
   * @param path absolute path; '' for the root directory
   * @returns null if it does not exist and `missing` is `null`
   */
  open(path: string, missing: 'make' | 'null'): OpenDirectory | null {
    const cached = this.#held.get(path);
    if (cached !== undefined) {
      cached.users++;
      return cached;
    }
    const stack: HeldDirectory[] = [this.#root()];
    try {
      const components = path.split('/').filter((part) => part !== '');
      let links = 0;
      while (components.length > 0) {
        const name = components.shift() as string;
        const here = stack.at(-1) as HeldDirectory;
        if (name === '.') continue;
        if (name === '..') {
          if (stack.length > 1) this.release(stack.pop() as HeldDirectory);
          continue;
        }
        const step = this.#step(here, name, missing);
        if (step === null) return null;
        if (step instanceof HeldDirectory) {
          stack.push(step);
          continue;
        }
        if (++links > maxSymlinks) throw new HostFailure(`too many symbolic links on the way to ${path}`);
        components.unshift(...step.target.split('/').filter((part) => part !== ''));
        if (step.target.startsWith('/')) while (stack.length > 1) this.release(stack.pop() as HeldDirectory);
      }
      return stack.pop() as HeldDirectory;
    } catch (error) {
      throw hostFailure(error, `reach ${path === '' ? '/' : path}`);
    } finally {
      for (const directory of stack) this.release(directory);
    }
  }

  release(directory: OpenDirectory): void {
    const held = directory as HeldDirectory;
    held.users--;
    if (held.users > 0) return;
    if (this.#held.get(held.path) === held && this.#held.size <= maxOpen) return;
    if (this.#held.get(held.path) === held) this.#held.delete(held.path);
    closeSync(held.fd);
  }

  /** Drops the cache. Call this when directories may have been moved or may have changed owners. */
  forget(): void {
    for (const held of this.#held.values()) if (held.users === 0) closeSync(held.fd);
    this.#held.clear();
  }

  close(): void {
    this.forget();
  }

  #root(): HeldDirectory {
    return this.#keep('', () => openSync('/', openFlags), true);
  }

  #keep(path: string, open: () => number, parentTrusted: boolean): HeldDirectory {
    const cached = this.#held.get(path);
    if (cached !== undefined) {
      cached.users++;
      return cached;
    }
    const fd = open();
    const { uid, mode } = fstatSync(fd);
    const isOwn = uid === 0 || uid === this.#own;
    // In a sticky directory, other users can create names but cannot change names created by root or the agent.
    const closed = (mode & 0o022) === 0;
    const trusted = parentTrusted && isOwn && (closed || (mode & 0o1000) !== 0);
    const held = new HeldDirectory(path, fd, uid, trusted, trusted && closed);
    this.#held.set(path, held);
    return held;
  }

  #step(
    here: HeldDirectory,
    name: string,
    missing: 'make' | 'null',
    made = false,
  ): HeldDirectory | { target: string } | null {
    const path = `${here.path}/${name}`;
    try {
      return this.#keep(path, () => openSync(here.child(name), openFlags), here.trusted);
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'ENOENT' && missing === 'null') return null;
      if (code === 'ENOENT' && !made) {
        try {
          makeDirectory(here.child(name), 0o755);
        } catch (fault) {
          if (errnoOf(fault) !== 'EEXIST') throw hostFailure(fault, `create the directory ${path}`);
          return this.#step(here, name, missing, true);
        }
        this.#created(path);
        return this.#step(here, name, missing, true);
      }
      if (code !== 'ENOTDIR' && code !== 'ELOOP') throw error;
    }
    const found = lstatSync(here.child(name));
    if (!found.isSymbolicLink()) throw new NotADirectory(`${path} is not a directory, so no path below it can exist`);
    const isOwnLink = found.uid === 0 || found.uid === this.#own;
    if (!here.trusted || !isOwnLink)
      throw new HostFailure(
        `${path} is a symbolic link in a directory that an unprivileged user can change; it is not followed`,
      );
    return { target: readlinkSync(here.child(name)) };
  }
}
