import { createHash } from 'node:crypto';

/** Returns an input's file name in the corpus. */
export const nameOfInput = (input: Uint8Array): string => createHash('sha256').update(input).digest('hex').slice(0, 16);
