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
  // Limits the heap for young objects and allows garbage collection after work, because the agent is idle most of the
  // time. Sets the flags after the code is loaded, because V8 rejects a code cache that was created with other flags.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--expose-gc');
  Object.assign(globalThis, { gc: runInNewContext('gc') });
}
start();
