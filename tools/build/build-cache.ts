import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';

/** A folder with one build per version of its inputs, and a file `current` with the name of the latest build. */
export class BuildCache {
  readonly #folder: string;
  readonly #maxOlder: number;

  /** @param maxOlder maximum number of builds of other versions to keep in addition to the latest build */
  constructor(folder: string, maxOlder: number) {
    this.#folder = folder;
    this.#maxOlder = maxOlder;
  }

  /**
   * Builds unless the cache contains a build with this name. Other users can read the build.
   * @param make writes the build into an empty folder
   * @returns the folder of the build, and whether this call created it
   * @throws Error if `make` fails or the build cannot be stored
   */
  async build(name: string, make: (folder: string) => Promise<void>): Promise<{ folder: string; created: boolean }> {
    const folder = join(this.#folder, name);
    if (existsSync(folder)) return { folder, created: false };
    mkdirSync(this.#folder, { recursive: true });
    const temporary = mkdtempSync(join(this.#folder, 'tmp-'));
    try {
      await make(temporary);
      chmodSync(temporary, 0o755);
      try {
        renameSync(temporary, folder);
      } catch (error) {
        // Another process has already stored the same build.
        if (!existsSync(folder)) throw error;
      }
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
    return { folder, created: true };
  }

  /** Returns the name of the latest build; null if there is none. */
  current(): string | null {
    try {
      return readFileSync(join(this.#folder, 'current'), 'utf8').trim();
    } catch {
      return null;
    }
  }

  /**
   * Records the latest build, and removes old builds.
   * @param time modification time of the record
   */
  setCurrent(latest: string, time = new Date()): void {
    const temporary = join(this.#folder, `current.${process.pid}.tmp`);
    writeFileSync(temporary, `${latest}\n`);
    utimesSync(temporary, time, time);
    renameSync(temporary, join(this.#folder, 'current'));
    const older = readdirSync(this.#folder)
      .filter((name) => /^[0-9a-f]{16}$/.test(name) && name !== latest)
      .map((name) => join(this.#folder, name))
      .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
    for (const folder of older.slice(this.#maxOlder)) rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the name of a build.
 * @param files absolute paths of all files that affect the build
 * @param version everything else that affects the build
 */
export function buildName(root: string, files: readonly string[], version = ''): string {
  const hash = createHash('sha256').update(version);
  for (const file of files) hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex').slice(0, 16);
}
