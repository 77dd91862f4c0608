import { hash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Bytes from which a hash replaces the content of a file, because a text of megabytes takes 50 ms to make. */
const largeBytes = 1024 * 1024;

/** Returns the owner, type, permissions, and content of everything in a tree, by path. Large files have a hash. */
export function snapshotTree(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string): void => {
    const stats = lstatSync(path);
    const content = stats.isSymbolicLink()
      ? readlinkSync(path)
      : stats.isFile()
        ? contentOf(path)
        : stats.isDirectory()
          ? 'directory'
          : 'other';
    found[path.slice(root.length) || '/'] = `${stats.uid}:${stats.gid} ${stats.mode.toString(8)} ${content}`;
    if (stats.isDirectory()) for (const name of readdirSync(path).sort()) visit(`${path}/${name}`);
  };
  visit(root);
  return found;
}

function contentOf(path: string): string {
  const content = readFileSync(path);
  if (content.length < largeBytes) return content.toString('latin1');
  return `${content.length} bytes, SHA-256 ${hash('sha256', content)}`;
}
