/** The files and native addons in the standalone executable. A process that runs from a clone has none. */
export interface Executable {
  readonly build: Build;
  /**
   * Extracts a native addon from the executable and loads it.
   * @param directory writable only by its owner
   * @throws Error with instructions if the addon cannot be written to the directory or loaded
   */
  addon(name: 'sqlite' | 'pty', directory: string): unknown;
  /** Returns a file of the built console by name. Callers must not change the content. */
  console(name: string): Buffer;
  /** Returns the URL of a worker thread's code. */
  thread(name: string): URL;
}

export interface Build {
  readonly version: string;
  /** Git commit; null if built from uncommitted files. */
  readonly commit: string | null;
  /** Date of the commit, RFC 3339. Not the date of the build, so that builds are reproducible. */
  readonly date: string;
  readonly node: string;
}

/** Returns the contents of the standalone executable; null if the process runs from a clone. */
export const executable = (): Executable | null => (globalThis as { muster?: Executable }).muster ?? null;
