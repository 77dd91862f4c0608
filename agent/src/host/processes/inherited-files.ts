import { openSync } from 'node:fs';

/**
 * File descriptors without the close-on-exec flag, which Node.js cannot set. Every started program would inherit them.
 * With the master of a terminal, a program could read and type in that terminal, and would keep it open after the agent
 * exits.
 */
const inheritable = new Set<number>();
let devNull: number | null = null;

/**
 * Marks a descriptor.
 * @returns a function that removes the mark; call that function before closing the file, because descriptors are reused
 */
export function markInheritable(fd: number): () => void {
  inheritable.add(fd);
  return () => inheritable.delete(fd);
}

export type Stdio = 'ignore' | 'pipe' | number;

/** @returns `stdio` for a new program, with /dev/null at each descriptor that the program must not inherit */
export function withoutInherited(stdio: readonly Stdio[]): Stdio[] {
  const leaking = [...inheritable].filter((fd) => fd >= stdio.length);
  if (leaking.length === 0) return [...stdio];
  devNull ??= openSync('/dev/null', 'r+');
  const files: Stdio[] = Array.from({ length: Math.max(...leaking) + 1 }, (_, fd) => stdio[fd] ?? 'ignore');
  for (const fd of leaking) files[fd] = devNull;
  return files;
}
