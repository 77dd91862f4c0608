// Fails if a function or folder is too large. long-functions.ts and `crowdedFolders` list the exceptions.
import { readFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { functionsOver } from './functions.ts';
import { longFunctions } from './long-functions.ts';
import { isTestFile, sourceFiles } from './source-files.ts';

const maxLines = 100;
const maxFiles = 25;
/** Folders that may contain more files. Maps each folder to the reason. */
const crowdedFolders: Record<string, string> = {};

interface Exceptions {
  /** Maps `file#function` to the reason. */
  functions: Readonly<Record<string, string>>;
  folders: Readonly<Record<string, string>>;
}

/**
 * Lists every function and folder that is too large, and every unused exception. Ignores test files.
 * @param root folder that contains the workspaces
 */
export function sizeFaults(root: string, exceptions: Exceptions): string[] {
  const faults: string[] = [];
  const functions = new Set<string>();
  const filesIn = new Map<string, number>();
  for (const file of sourceFiles(root).filter((path) => !isTestFile(path))) {
    const folder = posix.dirname(file);
    filesIn.set(folder, (filesIn.get(folder) ?? 0) + 1);
    for (const { name, line, lines } of functionsOver(maxLines, file, readFileSync(join(root, file), 'utf8'))) {
      const key = `${file}#${name}`;
      functions.add(key);
      if (!Object.hasOwn(exceptions.functions, key))
        faults.push(`${file}:${line}  ${name} has ${lines} lines; divide it into functions of at most ${maxLines}`);
    }
  }
  for (const key of Object.keys(exceptions.functions))
    if (!functions.has(key))
      faults.push(`tools/checks/long-functions.ts  ${key} no longer exceeds the limit; delete its line`);
  for (const [folder, count] of filesIn)
    if (count > maxFiles && !Object.hasOwn(exceptions.folders, folder))
      faults.push(`${folder}  contains ${count} source files; divide it into folders of at most ${maxFiles}`);
  for (const folder of Object.keys(exceptions.folders))
    if ((filesIn.get(folder) ?? 0) <= maxFiles)
      faults.push(`tools/checks/sizes.ts  ${folder} no longer exceeds the limit; delete its line`);
  return faults;
}

if (import.meta.main) {
  const faults = sizeFaults(resolve(import.meta.dirname, '../..'), {
    functions: longFunctions,
    folders: crowdedFolders,
  });
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
