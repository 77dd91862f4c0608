/** Maps each file to the files that it imports. */
export type ImportGraph = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Finds import cycles: groups of files in which each file reaches every other (strongly connected components of more than
 * one file). Follows Tarjan, "Depth-first search and linear graph algorithms" (1972).
 * @returns groups, sorted by their first file; each group is sorted by name
 */
export function cyclesOf(graph: ImportGraph): string[][] {
  const index = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const cycles: string[][] = [];
  const visit = (file: string) => {
    index.set(file, index.size);
    lowest.set(file, index.get(file)!);
    stack.push(file);
    onStack.add(file);
    for (const target of graph.get(file) ?? []) {
      if (!index.has(target)) {
        visit(target);
        lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
      } else if (onStack.has(target)) lowest.set(file, Math.min(lowest.get(file)!, index.get(target)!));
    }
    if (lowest.get(file) !== index.get(file)) return;
    const cycle = stack.splice(stack.indexOf(file));
    for (const member of cycle) onStack.delete(member);
    if (cycle.length > 1) cycles.push(cycle.toSorted());
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return cycles.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/**
 * Returns the import graph of a folder's child folders. Ignores files directly in the folder, because they wire the
 * child folders together.
 */
export function folderGraph(graph: ImportGraph, folder: string): ImportGraph {
  const subfolderOf = (file: string) => {
    if (!file.startsWith(`${folder}/`)) return null;
    const [subfolder, ...rest] = file.slice(folder.length + 1).split('/');
    return rest.length > 0 ? (subfolder as string) : null;
  };
  const rooms = new Map<string, Set<string>>();
  for (const [file, targets] of graph) {
    const subfolder = subfolderOf(file);
    if (subfolder === null) continue;
    const imported = rooms.get(subfolder) ?? new Set();
    rooms.set(subfolder, imported);
    for (const target of targets) {
      const other = subfolderOf(target);
      if (other !== null && other !== subfolder) imported.add(other);
    }
  }
  return rooms;
}
