import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from 'node:fs';
import { posix } from 'node:path';
import { errnoOf, HostFailure, hostFailure, NotADirectory } from '../failure.ts';
import { makeDirectory } from './make-directory.ts';

/** Opens a file or directory itself, without permission to read it, only to reach or identify it. Linux. */
export const O_PATH = 0o10000000;
const openFlags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const maxSymlinks = 40;
const maxKept = 128;

/** A directory held open: what is reached through it stays in it, whatever happens to the path meanwhile. */
export interface OpenDirectory {
  /** The real path at the time it was opened. */
  readonly path: string;
  /** Path of something in it, for the calls of `node:fs`. `name` is one component. */
  child(name: string): string;
  /** The directory itself, for the calls of `node:fs`. */
  readonly self: string;
  /** Nobody but root and the agent's user can have changed any name from / down to this directory. */
  readonly trusted: boolean;
  /** Its owner, when it was opened. */
  readonly uid: number;
  /** Beyond that, nobody else can make a name in it: not so in a sticky directory such as /tmp. */
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
 * Refuses a path that is not absolute and in its one plain spelling.
 * @throws HostFailure
 */
export function checkPath(path: string): void {
  if (!path.startsWith('/')) throw new HostFailure(`${path} is not an absolute path`);
  if (path.includes('\0')) throw new HostFailure('the path contains a NUL character');
  if (path === '/') throw new HostFailure('the root directory cannot be managed');
  if (posix.normalize(path) !== path || path.endsWith('/'))
    throw new HostFailure(`${path} must be written without ".", "..", "//" and a closing "/"`);
}

/**
 * Reaches directories from the root down, one component at a time, so that an unprivileged user cannot lead a write
 * elsewhere. A symbolic link on the way is followed only where nobody but root (or the agent's own user) could have
 * put it: /bin or /var/run are, a link in a directory that a user owns is refused.
 *
 * Directories stay open to be reached again until `close`; use one walk for one run of resources, and a new one after
 * anything that may have moved directories.
 */
export class PathWalk {
  readonly #own = process.geteuid?.() ?? 0;
  /** By real path. */
  readonly #held = new Map<string, HeldDirectory>();
  readonly #created: (path: string) => void;

  /** @param created called with the path of each directory that `open` had to make */
  constructor(created: (path: string) => void = () => {}) {
    this.#created = created;
  }

  /**
   * Runs `action` on the directory that holds `path`, and the name in it.
   * @param missing what to do about directories that are not there: `null` returns null, `make` makes them 0755
   * @throws HostFailure when the way is refused or blocked
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
   * Opens a directory; give it back with `release`.
   * @param path absolute, '' for the root
   * @returns null when it is not there and `missing` is `null`
   */
  open(path: string, missing: 'make' | 'null'): OpenDirectory | null {
    const kept = this.#held.get(path);
    if (kept !== undefined) {
      kept.users++;
      return kept;
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
    if (this.#held.get(held.path) === held && this.#held.size <= maxKept) return;
    if (this.#held.get(held.path) === held) this.#held.delete(held.path);
    closeSync(held.fd);
  }

  /** Forgets what is held open, to be called when directories may have moved or changed hands. */
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
    const kept = this.#held.get(path);
    if (kept !== undefined) {
      kept.users++;
      return kept;
    }
    const fd = open();
    const { uid, mode } = fstatSync(fd);
    const ours = uid === 0 || uid === this.#own;
    // In a sticky directory others may make names, but not change those of root and ours.
    const closed = (mode & 0o022) === 0;
    const trusted = parentTrusted && ours && (closed || (mode & 0o1000) !== 0);
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
          if (errnoOf(fault) !== 'EEXIST') throw hostFailure(fault, `make the directory ${path}`);
          return this.#step(here, name, missing, true);
        }
        this.#created(path);
        return this.#step(here, name, missing, true);
      }
      if (code !== 'ENOTDIR' && code !== 'ELOOP') throw error;
    }
    const found = lstatSync(here.child(name));
    if (!found.isSymbolicLink()) throw new NotADirectory(`${path} is not a directory, so nothing can be below it`);
    const linkIsOurs = found.uid === 0 || found.uid === this.#own;
    if (!here.trusted || !linkIsOurs)
      throw new HostFailure(
        `${path} is a symbolic link in a place that an unprivileged user can change; it is not followed`,
      );
    return { target: readlinkSync(here.child(name)) };
  }
}
