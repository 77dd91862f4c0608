// Fails if a function or folder is too large.
import { readFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { functionsOver } from './functions.ts';
import { isTestFile, sourceFiles } from './source-files.ts';

const maxLines = 100;
const maxFiles = 25;

/**
 * Lists every function and folder that is too large. Ignores test files.
 * @param root folder that contains the workspaces
 */
export function sizeFaults(root: string): string[] {
  const faults: string[] = [];
  const filesIn = new Map<string, number>();
  for (const file of sourceFiles(root).filter((path) => !isTestFile(path))) {
    const folder = posix.dirname(file);
    filesIn.set(folder, (filesIn.get(folder) ?? 0) + 1);
    for (const { name, line, lines } of functionsOver(maxLines, file, readFileSync(join(root, file), 'utf8')))
      faults.push(`${file}:${line}  ${name} has ${lines} lines; divide it into functions of at most ${maxLines}`);
  }
  for (const [folder, count] of filesIn)
    if (count > maxFiles)
      faults.push(`${folder}  contains ${count} source files; divide it into folders of at most ${maxFiles}`);
  return faults;
}

if (import.meta.main) {
  const faults = sizeFaults(resolve(import.meta.dirname, '../..'));
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
