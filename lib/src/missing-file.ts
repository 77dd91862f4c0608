/**
 * Handles the failure of a file operation.
 * @returns null if the file does not exist
 * @throws every other error
 */
export function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
