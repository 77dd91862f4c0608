import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const skipped = new Set(['node_modules', 'dist', 'data', 'coverage']);

/**
 * Returns the source files below a folder: relative paths with `/`, sorted. Omits hidden folders, installed packages,
 * and build output.
 */
export function sourceFiles(root: string): string[] {
  const files: string[] = [];
  const walk = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      if (entry.name.startsWith('.') || skipped.has(entry.name)) continue;
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (/\.[mc]?[jt]sx?$/.test(entry.name)) files.push(path);
    }
  };
  walk('');
  return files;
}

export const isTestFile = (path: string): boolean => /\.test\.tsx?$/.test(path);
