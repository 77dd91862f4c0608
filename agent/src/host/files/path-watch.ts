import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '../../../../lib/src/clock.ts';
import { errnoOf } from '../failure.ts';

/**
 * Tells when something at given paths may have changed: content, owner, mode, what is there at all. Only directories are
 * watched, all those on the way to a path, each once however many paths go through it: a watch on a file goes blind when
 * the file is replaced, and one on a directory when a directory above it is renamed. What is watched is compared now and
 * then with what is there, since a file system that is mounted over a directory tells nobody.
 */

export interface PathWatchOptions {
  clock: Clock;
  /** A path as it was given. Called once an event, of which one change makes several. */
  changed: (path: string) => void;
  /** Some directories cannot be watched. */
  warn: (fields: object, message: string) => void;
  /** Directories watched at most. */
  most?: number;
}

const defaultMost = 2_000;
/** How often what is watched is compared with what is there, and what it may cost: so long for each directory. */
const rescanMs = 10_000;
const rescanMsPerDirectory = 250;
/** A directory in which more than so much happens in so long is left alone for a while, and then looked at. */
const stormEvents = 2_000;
const stormMs = 10_000;
const calmMs = 30_000;
const mostCalmMs = 300_000;

interface Place {
  readonly path: string;
  readonly name: string;
  readonly children: Map<string, Place>;
  /** The path as it was given, when it is one of those; with a `/` behind it, all that is in it counts. */
  targets: string[];
  wide: boolean;
  watcher: FSWatcher | null;
  identity: string | null;
  events: number;
  countedFrom: number;
  calmMs: number;
  /** It is left alone until then. */
  calmUntil: number;
}

const identityOf = (found: Stats | undefined): string | null =>
  found?.isDirectory() ? `${found.dev}:${found.ino}` : null;

export class PathWatch {
  readonly #options: PathWatchOptions;
  #root: Place = newPlace('/', '');
  #watches = 0;
  #warned = false;
  #ended = false;
  #callOffRescan = () => {};

  constructor(options: PathWatchOptions) {
    this.#options = options;
  }

  /** How many directories are watched. */
  get size(): number {
    return this.#watches;
  }

  /**
   * Watches these paths and no others. A path that ends in `/` stands for everything in that directory. What changed
   * before this returns is not told.
   */
  set(paths: Iterable<string>): void {
    const root = newPlace('/', '');
    let any = false;
    for (const path of paths) {
      any = true;
      place(root, path);
    }
    this.#inherit(this.#root, root);
    this.#root = root;
    this.#callOffRescan();
    if (!any) {
      this.#release(root);
      return;
    }
    this.#arm(root);
    this.#scheduleRescan();
  }

  end(): void {
    this.#ended = true;
    this.#callOffRescan();
    this.#release(this.#root);
  }

  /** Takes over the watches that go on. */
  #inherit(from: Place, to: Place): void {
    if (to.children.size > 0 || to.wide) {
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

  #close(at: Place): void {
    at.identity = null;
    if (at.watcher === null) return;
    at.watcher.close();
    at.watcher = null;
    this.#watches--;
  }

  #release(at: Place): void {
    this.#close(at);
    for (const child of at.children.values()) this.#release(child);
  }

  /** Watches a directory and those below it, as far as there are any. @returns whether another one is there than before */
  #arm(at: Place, found: Stats | undefined = statOf(at.path)): boolean {
    const identity = identityOf(found);
    const differs = identity !== at.identity;
    if (identity === null) {
      this.#release(at);
      return differs;
    }
    if (differs) this.#close(at);
    at.identity = identity;
    if (at.watcher === null && at.calmUntil <= this.#options.clock.monotonic()) this.#watch(at);
    for (const child of at.children.values()) if (child.children.size > 0 || child.wide) this.#arm(child);
    return differs;
  }

  #watch(at: Place): void {
    const { most = defaultMost } = this.#options;
    if (this.#watches >= most) {
      this.#cannot(at, `more than ${most} directories would have to be watched`);
      return;
    }
    try {
      const watcher = watch(at.path, { persistent: false });
      listen(watcher, (type, name) => this.#event(at, type, name));
      at.watcher = watcher;
      this.#watches++;
    } catch (error) {
      const code = errnoOf(error);
      // Gone since it was looked at: the directory above tells.
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.#cannot(at, code ?? String(error));
    }
  }

  #cannot(at: Place, reason: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.warn(
      { path: at.path, reason },
      'not every directory can be watched for changes; they are found at the next drift check. If the limit of the kernel is the reason, raise fs.inotify.max_user_watches',
    );
  }

  #event(at: Place, type: string, name: string | null): void {
    if (this.#ended || at.watcher === null || this.#storm(at)) return;
    if (name === null) {
      for (const child of at.children.values()) this.#touched(child);
      if (at.wide) this.#tell(at);
      return;
    }
    const child = at.children.get(name);
    if (child !== undefined) this.#touched(child);
    else if (at.wide) this.#tell(at);
    // Its own name: it was moved or removed itself, or it is of something in it that is called the same.
    if (type === 'rename' && name === at.name && this.#arm(at)) this.#tellAll(at);
  }

  #touched(child: Place): void {
    if (child.targets.length > 0) this.#tell(child);
    if ((child.children.size > 0 || child.wide) && this.#arm(child)) this.#tellAll(child);
  }

  #tell(at: Place): void {
    for (const path of at.targets) this.#options.changed(path);
  }

  #tellAll(at: Place): void {
    this.#tell(at);
    for (const child of at.children.values()) this.#tellAll(child);
  }

  /** @returns whether so much happens there that nothing is heard of it for a while */
  #storm(at: Place): boolean {
    const { clock } = this.#options;
    const now = clock.monotonic();
    if (now - at.countedFrom > stormMs) {
      // Quiet for long enough: the next one is left alone as briefly as the first.
      if (now - at.countedFrom > 2 * at.calmMs) at.calmMs = calmMs;
      at.countedFrom = now;
      at.events = 0;
    }
    if (++at.events <= stormEvents) return false;
    at.watcher?.close();
    at.watcher = null;
    this.#watches--;
    at.calmUntil = now + at.calmMs;
    at.calmMs = Math.min(mostCalmMs, at.calmMs * 2);
    at.events = 0;
    return true;
  }

  #scheduleRescan(): void {
    const ms = Math.max(rescanMs, this.#watches * rescanMsPerDirectory);
    this.#callOffRescan = this.#options.clock.after(ms, () => {
      const root = this.#root;
      void this.#rescan(root).then(() => {
        if (!this.#ended && root === this.#root) this.#scheduleRescan();
      });
    });
  }

  /** One at a time, and never in the way of the loop: a file system that hangs holds up this alone. */
  async #rescan(at: Place): Promise<void> {
    const root = this.#root;
    const found = await stat(at.path).catch(() => undefined);
    if (this.#ended || root !== this.#root) return;
    const calmed = at.watcher === null && at.calmUntil > 0 && at.calmUntil <= this.#options.clock.monotonic();
    if (identityOf(found) !== at.identity) {
      if (this.#arm(at, found)) this.#tellAll(at);
      return;
    }
    if (at.identity === null) return;
    if (at.watcher === null) this.#arm(at, found);
    if (calmed) {
      at.calmUntil = 0;
      this.#tell(at);
      for (const child of at.children.values()) this.#tell(child);
    }
    for (const child of at.children.values()) if (child.children.size > 0 || child.wide) await this.#rescan(child);
  }
}

const newPlace = (path: string, name: string): Place => ({
  path,
  name,
  children: new Map(),
  targets: [],
  wide: false,
  watcher: null,
  identity: null,
  events: 0,
  countedFrom: 0,
  calmMs,
  calmUntil: 0,
});

function place(root: Place, path: string): void {
  let at = root;
  for (const name of path.split('/')) {
    if (name === '') continue;
    let child = at.children.get(name);
    if (child === undefined) {
      child = newPlace(at === root ? `/${name}` : `${at.path}/${name}`, name);
      at.children.set(name, child);
    }
    at = child;
  }
  at.targets.push(path);
  at.wide ||= path.endsWith('/');
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // Something on the way is no directory, or is not to be looked into.
    return undefined;
  }
}

function listen(watcher: FSWatcher, heard: (type: string, name: string | null) => void): void {
  watcher.removeAllListeners();
  watcher.on('change', (type, name) => heard(type, typeof name === 'string' ? name : null));
  // What is lost with it, the rescan finds.
  watcher.on('error', () => {});
}
