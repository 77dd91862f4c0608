// Writes the compiled code of a program of the executable, as it is after the program did something:
//
//     node --hash-seed=1 --random-seed=1 --single-threaded packaging/compile.ts PROGRAM.cjs OUT [WORD...]
//
// The flags make it the same each time. What was run is in it, so that the same words cost no compiling later.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { Script } from 'node:vm';

const [, , file, out, ...words] = process.argv as [string, string, string, string, ...string[]];
/** Where the engine notes which of its flags were on: made under others it would not be taken. */
const flags = { from: 12, to: 16 };
/** What this engine notes without any, told by the caller. */
const plain = Buffer.from(process.env.MUSTER_PLAIN_FLAGS ?? '', 'hex');

const text = readFileSync(file, 'latin1');
const script = new Script(text, { filename: `muster:${file.replace(/^.*\/|\.cjs$/g, '')}` });
process.on('exit', () => {
  const code = script.createCachedData();
  plain.copy(code, flags.from);
  writeFileSync(out, code);
});
process.argv = [process.execPath, process.execPath, ...words];
const module = { exports: {} };
script.runInThisContext()(module.exports, createRequire(resolve(file)), module, file, '/');
