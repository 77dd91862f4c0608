import { openSync } from 'node:fs';

/**
 * Open files of this process that would pass on to every program it starts, since whoever opened them did not have them
 * closed on that, and nothing here can change it. With the inner side of a terminal such a program could read and type
 * there, and would keep the terminal alive once this process is gone.
 */
const inheritable = new Set<number>();
let nothing: number | null = null;

/** @returns to be called before the file is closed: its number is another file's then */
export function markInheritable(fd: number): () => void {
  inheritable.add(fd);
  return () => inheritable.delete(fd);
}

export type Stdio = 'ignore' | 'pipe' | number;

/** @returns what a program that is started gets as its files, with nothing behind the numbers of what it must not get */
export function withoutInherited(stdio: readonly Stdio[]): Stdio[] {
  const numbers = [...inheritable].filter((fd) => fd >= stdio.length);
  if (numbers.length === 0) return [...stdio];
  nothing ??= openSync('/dev/null', 'r+');
  const files: Stdio[] = Array.from({ length: Math.max(...numbers) + 1 }, (_, fd) => stdio[fd] ?? 'ignore');
  for (const fd of numbers) files[fd] = nothing;
  return files;
}
