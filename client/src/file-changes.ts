/** A file next to a module, as the API lists it. */
interface ModuleFile {
  readonly path: string;
  readonly sha256: string;
  readonly size: number;
  readonly executable: boolean;
}

export interface FileChange {
  readonly path: string;
  readonly change: 'added' | 'removed' | 'changed';
  /** The old file; null if the file was added. */
  readonly from: ModuleFile | null;
  /** The new file; null if the file was removed. */
  readonly to: ModuleFile | null;
}

/**
 * Compares the files next to two module revisions.
 * @returns the files that differ, by path
 */
export function fileChanges(before: readonly ModuleFile[], after: readonly ModuleFile[]): FileChange[] {
  const old = new Map(before.map((file) => [file.path, file]));
  const next = new Map(after.map((file) => [file.path, file]));
  return [...new Set([...old.keys(), ...next.keys()])].sort().flatMap((path): FileChange[] => {
    const [from, to] = [old.get(path) ?? null, next.get(path) ?? null];
    if (from !== null && to !== null && from.sha256 === to.sha256 && from.executable === to.executable) return [];
    return [{ path, from, to, change: from === null ? 'added' : to === null ? 'removed' : 'changed' }];
  });
}
