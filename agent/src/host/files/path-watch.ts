import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '../../../../lib/src/clock.ts';
import { errnoOf } from '../failure.ts';

/**
 * Reports when objects at given paths may have changed: content, owner, mode, or existence. Watches every directory on
 * the way to a path, but no files. A watch on a file breaks when the file is replaced, and a watch on a directory
 * breaks when a directory above it is renamed. Rescans periodically, because mounting over a directory raises no event.
 */

export interface PathWatchOptions {
  clock: Clock;
  /** Called with a watched path for each event; one change causes several events. */
  changed: (path: string) => void;
  /** Called once if some directories cannot be watched. */
  warn: (fields: object, message: string) => void;
  maxDirectories?: number;
}

const defaultMaxDirectories = 2_000;
/**
 * The rescan interval is `rescanMs` or `rescanMsPerDirectory` times the number of watched directories, whichever is
 * larger.
 */
const rescanMs = 10_000;
const rescanMsPerDirectory = 250;
/** More than `maxEvents` within `eventWindowMs` pause the watch on a directory for `minPauseMs` to `maxPauseMs`. */
const maxEvents = 2_000;
const eventWindowMs = 10_000;
const minPauseMs = 30_000;
const maxPauseMs = 300_000;

interface Node {
  readonly path: string;
  readonly name: string;
  /** {@link noChildren} until the first child is added. Most nodes are files, and an empty map would need 200 bytes. */
  children: ReadonlyMap<string, Node>;
  /** The watched paths that end here. */
  targets: readonly string[];
  /** Whether a target ends in `/`, so that changes to any entry are reported. */
  includesEntries: boolean;
  watcher: FSWatcher | null;
  identity: string | null;
  events: number;
  countedFrom: number;
  /** Duration of the next pause in milliseconds. */
  pauseMs: number;
  pausedUntil: number;
}

const identityOf = (found: Stats | undefined): string | null =>
  found?.isDirectory() ? `${found.dev}:${found.ino}` : null;

export class PathWatch {
  readonly #options: PathWatchOptions;
  #root: Node = newNode('/', '');
  #watches = 0;
  #warned = false;
  #ended = false;
  #cancelRescan = () => {};

  constructor(options: PathWatchOptions) {
    this.#options = options;
  }

  /** The number of watched directories. */
  get size(): number {
    return this.#watches;
  }

  /**
   * Replaces the set of watched paths. A path that ends in `/` covers all entries of that directory. Does not report
   * changes that happen before this returns.
   */
  set(paths: Iterable<string>): void {
    const root = newNode('/', '');
    let any = false;
    for (const path of paths) {
      any = true;
      addPath(root, path);
    }
    this.#inherit(this.#root, root);
    this.#root = root;
    this.#cancelRescan();
    if (!any) {
      this.#release(root);
      return;
    }
    this.#arm(root);
    this.#scheduleRescan();
  }

  end(): void {
    this.#ended = true;
    this.#cancelRescan();
    this.#release(this.#root);
  }

  /** Keeps the watches that both trees have in common, and closes the others. */
  #inherit(from: Node, to: Node): void {
    if (to.children.size > 0 || to.includesEntries) {
      to.watcher = from.watcher;
      to.identity = from.identity;
      if (to.watcher !== null) listen(to.watcher, (type, name) => this.#event(to, type, name));
    } else this.#close(from);
    for (const [name, child] of from.children) {
      const next = to.children.get(name);
      if (next === undefined) this.#release(child);
      else this.#inherit(child, next);
    }
  }

  #close(at: Node): void {
    at.identity = null;
    if (at.watcher === null) return;
    at.watcher.close();
    at.watcher = null;
    this.#watches--;
  }

  #release(at: Node): void {
    this.#close(at);
    for (const child of at.children.values()) this.#release(child);
  }

  /**
   * Watches a directory and all existing directories below it.
   * @returns whether the path now leads to a different directory
   */
  #arm(at: Node, found: Stats | undefined = statOf(at.path)): boolean {
    const identity = identityOf(found);
    const differs = identity !== at.identity;
    if (identity === null) {
      this.#release(at);
      return differs;
    }
    if (differs) this.#close(at);
    at.identity = identity;
    if (at.watcher === null && at.pausedUntil <= this.#options.clock.monotonic()) this.#watch(at);
    for (const child of at.children.values()) if (child.children.size > 0 || child.includesEntries) this.#arm(child);
    return differs;
  }

  #watch(at: Node): void {
    const { maxDirectories = defaultMaxDirectories } = this.#options;
    if (this.#watches >= maxDirectories) {
      this.#warnOnce(at, `more than ${maxDirectories} directories would have to be watched`);
      return;
    }
    try {
      const watcher = watch(at.path, { persistent: false });
      listen(watcher, (type, name) => this.#event(at, type, name));
      at.watcher = watcher;
      this.#watches++;
    } catch (error) {
      const code = errnoOf(error);
      // The directory was removed after the lookup. The watch on its parent reports the removal.
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.#warnOnce(at, code ?? String(error));
    }
  }

  #warnOnce(at: Node, reason: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.warn(
      { path: at.path, reason },
      'cannot watch every directory; drift checks find changes in the others. If the kernel limit is the reason, raise fs.inotify.max_user_watches',
    );
  }

  #event(at: Node, type: string, name: string | null): void {
    if (this.#ended || at.watcher === null || this.#pauseIfBusy(at)) return;
    if (name === null) {
      for (const child of at.children.values()) this.#childChanged(child);
      if (at.includesEntries) this.#report(at);
      return;
    }
    const child = at.children.get(name);
    if (child !== undefined) this.#childChanged(child);
    else if (at.includesEntries) this.#report(at);
    // The directory itself, or an entry with the same name, was moved or removed.
    if (type === 'rename' && name === at.name && this.#arm(at)) this.#reportAll(at);
  }

  #childChanged(child: Node): void {
    if (child.targets.length > 0) this.#report(child);
    if ((child.children.size > 0 || child.includesEntries) && this.#arm(child)) this.#reportAll(child);
  }

  #report(at: Node): void {
    for (const path of at.targets) this.#options.changed(path);
  }

  #reportAll(at: Node): void {
    this.#report(at);
    for (const child of at.children.values()) this.#reportAll(child);
  }

  /** Counts an event. @returns whether the watch is now paused, because there were too many events */
  #pauseIfBusy(at: Node): boolean {
    const { clock } = this.#options;
    const now = clock.monotonic();
    if (now - at.countedFrom > eventWindowMs) {
      // After a long time without events, the next pause is short again.
      if (now - at.countedFrom > 2 * at.pauseMs) at.pauseMs = minPauseMs;
      at.countedFrom = now;
      at.events = 0;
    }
    if (++at.events <= maxEvents) return false;
    at.watcher?.close();
    at.watcher = null;
    this.#watches--;
    at.pausedUntil = now + at.pauseMs;
    at.pauseMs = Math.min(maxPauseMs, at.pauseMs * 2);
    at.events = 0;
    return true;
  }

  #scheduleRescan(): void {
    const ms = Math.max(rescanMs, this.#watches * rescanMsPerDirectory);
    this.#cancelRescan = this.#options.clock.after(ms, () => {
      const root = this.#root;
      void this.#rescan(root).then(() => {
        if (!this.#ended && root === this.#root) this.#scheduleRescan();
      });
    });
  }

  /** Asynchronous and sequential, so that a hanging file system blocks only the rescan. */
  async #rescan(at: Node): Promise<void> {
    const root = this.#root;
    const found = await stat(at.path).catch(() => undefined);
    if (this.#ended || root !== this.#root) return;
    const isPauseOver = at.watcher === null && at.pausedUntil > 0 && at.pausedUntil <= this.#options.clock.monotonic();
    if (identityOf(found) !== at.identity) {
      if (this.#arm(at, found)) this.#reportAll(at);
      return;
    }
    if (at.identity === null) return;
    if (at.watcher === null) this.#arm(at, found);
    if (isPauseOver) {
      at.pausedUntil = 0;
      this.#report(at);
      for (const child of at.children.values()) this.#report(child);
    }
    for (const child of at.children.values())
      if (child.children.size > 0 || child.includesEntries) await this.#rescan(child);
  }
}

const noChildren: ReadonlyMap<string, Node> = new Map();
const noTargets: readonly string[] = [];

const newNode = (path: string, name: string): Node => ({
  path,
  name,
  children: noChildren,
  targets: noTargets,
  includesEntries: false,
  watcher: null,
  identity: null,
  events: 0,
  countedFrom: 0,
  pauseMs: minPauseMs,
  pausedUntil: 0,
});

function addPath(root: Node, path: string): void {
  let at = root;
  for (const name of path.split('/')) {
    if (name === '') continue;
    let child = at.children.get(name);
    if (child === undefined) {
      child = newNode(at === root ? `/${name}` : `${at.path}/${name}`, name);
      if (at.children === noChildren) at.children = new Map();
      (at.children as Map<string, Node>).set(name, child);
    }
    at = child;
  }
  at.targets = [...at.targets, path];
  at.includesEntries ||= path.endsWith('/');
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A component of the path is not a directory, or access is denied.
    return undefined;
  }
}

function listen(watcher: FSWatcher, changed: (type: string, name: string | null) => void): void {
  watcher.removeAllListeners();
  watcher.on('change', (type, name) => changed(type, typeof name === 'string' ? name : null));
  // The rescan finds changes that are missed because of an error.
  watcher.on('error', () => {});
}
