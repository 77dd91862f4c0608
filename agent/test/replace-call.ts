import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Replaces a function of `node:fs`, even for modules that import it by name, to simulate disk errors or observe system
 * calls.
 * @param make receives the real function
 * @returns a function that restores the real function
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
