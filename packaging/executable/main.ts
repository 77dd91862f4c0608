import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { announce, prepare } from './programs.ts';
import { programFor } from './roles.ts';

// Entry point of the `muster` executable: the first word selects the program to run.

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
