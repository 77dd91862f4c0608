import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Puts another function in place of one of `node:fs`, for whoever imports it by name: for faults that no disk of a test
 * makes on demand, and for seeing what is asked of the system.
 * @param make is given the real one
 * @returns puts the real one back
 */
export function replaceCall<Name extends keyof typeof fs>(
  name: Name,
  make: (real: (typeof fs)[Name]) => (typeof fs)[Name],
): () => void {
  const real = fs[name];
  fs[name] = make(real);
  syncBuiltinESMExports();
  return () => {
    fs[name] = real;
    syncBuiltinESMExports();
  };
}
