import {
  ensurePrivateDirectory,
  readPrivateFile,
  removePrivateFile,
  writePrivateFile,
} from '../../../lib/src/private-file.ts';
import { hostFailure } from '../host/failure.ts';
import type { PrivateFiles } from '../resources/provider/provider.ts';

/**
 * Opens the files in which providers store secrets in the data directory. Creates the directory with the first file.
 */
export function openPrivateFiles(directory: string): PrivateFiles {
  const guarded = <T>(doing: string, name: string, action: (path: string) => T): T => {
    try {
      return action(`${directory}/${name}`);
    } catch (error) {
      throw hostFailure(error, `${doing} ${directory}/${name}`);
    }
  };
  return {
    read: (name) => guarded('read', name, readPrivateFile),
    write: (name, text) =>
      guarded('write', name, (path) => {
        ensurePrivateDirectory(directory);
        writePrivateFile(path, text, 'replace');
      }),
    remove: (name) => guarded('remove', name, removePrivateFile),
  };
}
