import { createHash } from 'node:crypto';

/** Returns the file name of an input in the corpus. */
export const nameOfInput = (input: Uint8Array): string => createHash('sha256').update(input).digest('hex').slice(0, 16);
