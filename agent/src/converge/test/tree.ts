import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Returns the owner, type, permissions, and content of everything in a tree, by path. */
export function snapshotTree(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string): void => {
    const stats = lstatSync(path);
    const content = stats.isSymbolicLink()
      ? readlinkSync(path)
      : stats.isFile()
        ? readFileSync(path, 'latin1')
        : stats.isDirectory()
          ? 'directory'
          : 'other';
    found[path.slice(root.length) || '/'] = `${stats.uid}:${stats.gid} ${stats.mode.toString(8)} ${content}`;
    if (stats.isDirectory()) for (const name of readdirSync(path).sort()) visit(`${path}/${name}`);
  };
  visit(root);
  return found;
}
