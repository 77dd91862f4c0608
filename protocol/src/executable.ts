/** The files and native parts in the single executable; absent in a clone. */
export interface Executable {
  readonly build: Build;
  /**
   * Extracts a native part from the executable.
   * @param directory writable only by its owner
   * @throws Error with instructions if the part cannot be written to the directory or loaded
   */
  addon(name: 'sqlite' | 'pty', directory: string): unknown;
  /** A file of the built console, by its name. Read-only. */
  console(name: string): Buffer;
  /** The address of a worker thread's code. */
  thread(name: string): URL;
}

/** Version and source of the build. */
export interface Build {
  readonly version: string;
  /** Git commit; null if built from uncommitted files. */
  readonly commit: string | null;
  /** Date of the commit, so that builds are reproducible. RFC 3339. */
  readonly date: string;
  readonly node: string;
}

/** The files in the executable of this process; null if the process runs from a clone. */
export const executable = (): Executable | null => (globalThis as { muster?: Executable }).muster ?? null;
