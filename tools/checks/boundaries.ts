// Fails when an import runs against the arrows of docs/architecture.md. The rules are in arrows.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { judge, judgeBrowserCall, judgeOwnershipCall } from './arrows.ts';
import { browserCallsOf } from './browser-calls.ts';
import { importsOf } from './imports.ts';
import { ownershipCallsOf } from './ownership-calls.ts';

const skipped = new Set(['node_modules', 'dist', 'data', 'coverage']);

/** Source files below a folder, relative to it, with `/`, in order of name. */
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

/**
 * Every wrong arrow below a root, one `file:line  arrow: what to do` each.
 * @param root folder that holds the workspaces
 */
export function wrongArrows(root: string): string[] {
  const faults: string[] = [];
  for (const file of sourceFiles(root)) {
    const text = readFileSync(join(root, file), 'utf8');
    const found = importsOf(file, text).map(({ specifier, line }) => ({ line, fault: judge(file, specifier) }));
    if (file.startsWith('console/'))
      for (const { name, line } of browserCallsOf(file, text))
        found.push({ line, fault: judgeBrowserCall(file, name) });
    if (file.startsWith('agent/'))
      for (const { name, line } of ownershipCallsOf(file, text))
        found.push({ line, fault: judgeOwnershipCall(file, name) });
    for (const { line, fault } of found) if (fault !== null) faults.push(`${file}:${line}  ${fault}`);
  }
  return faults;
}

if (import.meta.main) {
  const faults = wrongArrows(resolve(import.meta.dirname, '../..'));
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) {
    console.error(`\n${faults.length} wrong ${faults.length === 1 ? 'arrow' : 'arrows'}; see docs/architecture.md`);
    process.exit(1);
  }
}
