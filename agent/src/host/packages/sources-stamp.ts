import { namesIn, stampOf } from '../read-system.ts';

/**
 * Returns a stamp that changes whenever a file that configures repositories changes.
 * @param file main configuration
 * @param directories directories with further files
 */
export const sourcesStamp = (file: string, directories: readonly string[]): string =>
  [file, ...directories.flatMap((directory) => namesIn(directory).map((name) => `${directory}/${name}`))]
    .map((path) => `${path} ${stampOf(path)}`)
    .join('\n');
