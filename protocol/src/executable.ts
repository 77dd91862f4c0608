/** What the single executable offers to its parts; absent in a clone. */
export interface Executable {
  readonly build: Build;
  /**
   * Extracts a native part from the executable.
   * @param directory writable only by its owner
   * @throws Error with what to do, if it cannot be written or loaded there
   */
  addon(name: 'sqlite' | 'pty', directory: string): unknown;
  /** A file of the built console, by its name. Read-only. */
  console(name: string): Buffer;
  /** The address of a worker thread's code. */
  thread(name: string): URL;
}

/** What was built, from what, when. */
export interface Build {
  readonly version: string;
  /** Git commit; null if built from uncommitted files. */
  readonly commit: string | null;
  /** Date of the commit, so that builds are reproducible. RFC 3339. */
  readonly date: string;
  readonly node: string;
}

/** The executable that this process is; null: it runs from a clone. */
export const executable = (): Executable | null => (globalThis as { muster?: Executable }).muster ?? null;
