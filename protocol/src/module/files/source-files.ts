import { quoted, suggestion } from '../nearest.ts';
import type { ModuleFile, ModuleFiles } from './module-file.ts';

/** Files next to a module that resources use as their `source`. */

interface Directory {
  /** Paths relative to the directory. */
  readonly files: [path: string, file: ModuleFile][];
}

const directories = new WeakMap<ModuleFiles, ReadonlyMap<string, Directory>>();

/**
 * Returns all directories with their files, by path. Cached, because a module may use the same files for each agent.
 */
function directoriesOf(files: ModuleFiles): ReadonlyMap<string, Directory> {
  const known = directories.get(files);
  if (known !== undefined) return known;
  const all = new Map<string, Directory>();
  for (const file of [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    for (let end = file.path.indexOf('/'); end !== -1; end = file.path.indexOf('/', end + 1)) {
      const path = file.path.slice(0, end);
      const directory = all.get(path) ?? { files: [] };
      all.set(path, directory);
      directory.files.push([file.path.slice(end + 1), file]);
    }
  }
  directories.set(files, all);
  return all;
}

/** Returns the files below a directory, with paths relative to it, sorted by these paths. */
export const filesBelow = (directory: string, files: ModuleFiles): Directory['files'] =>
  directoriesOf(files).get(directory)?.files ?? [];

/**
 * Checks the `source` of a resource.
 * @param hint whether the message may suggest another file, which takes time
 * @returns the error; undefined if there is none
 */
export function sourceFault(
  sourced: 'file' | 'directory',
  source: string,
  files: ModuleFiles,
  hint = true,
): string | undefined {
  if (files.size === 0) return `there is no file ${quoted(source)}: upload the folder of the module, not only its text`;
  const isDirectory = directoriesOf(files).has(source);
  if (sourced === 'directory') {
    if (isDirectory) return undefined;
    return files.has(source)
      ? `${quoted(source)} is a file: name a directory, or use file-unix`
      : `the folder of the module has no files below ${quoted(source)}`;
  }
  if (files.has(source)) return undefined;
  if (isDirectory) return `${quoted(source)} is a directory: name a file, or use directory-unix`;
  return `there is no file ${quoted(source)}${hint ? suggestion(source, [...files.keys()].slice(0, 500)) : ''}`;
}
