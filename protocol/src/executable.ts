/** What the single executable hands to the parts that it carries; in a clone there is none of it. */
export interface Executable {
  readonly build: Build;
  /**
   * A native part, brought out of the executable.
   * @param directory where to: its owner's alone
   * @throws Error when it cannot be put or loaded there, with what to do
   */
  addon(name: 'sqlite' | 'pty', directory: string): unknown;
  /** A file of the built console, by its name there. It is part of the executable, and not to be written to. */
  console(name: string): Buffer;
  /** What a thread is started with. */
  thread(name: string): URL;
}

/** What was built, from what, when. */
export interface Build {
  readonly version: string;
  /** Of git; null: built from what is in no commit. */
  readonly commit: string | null;
  /** Of that commit, so that who builds it again gets the same bytes. RFC 3339. */
  readonly date: string;
  readonly node: string;
}

/** The executable that this process is; null: it runs from a clone. */
export const executable = (): Executable | null => (globalThis as { muster?: Executable }).muster ?? null;
