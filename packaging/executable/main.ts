import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { announce, prepare } from './programs.ts';
import { programFor } from './roles.ts';

// The `muster` executable: everything is in it, and what was typed first says which part it is this time.

const { program, words } = programFor(process.argv.slice(2));
process.argv = [process.execPath, process.execPath, ...words];
announce();
const start = prepare(program);
if (program === 'agent') {
  // It works seldom and idles for months: little room for young objects, and the collector at hand when work is done.
  // Not before its code is read: code compiled under other flags would not be taken.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--expose-gc');
  Object.assign(globalThis, { gc: runInNewContext('gc') });
}
start();
