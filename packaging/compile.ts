// Writes the V8 code cache of a program in the executable, taken after the program ran:
//
//     node --hash-seed=1 --random-seed=1 --single-threaded packaging/compile.ts PROGRAM.cjs OUT [WORD...]
//
// The flags make the output reproducible. Functions that ran are in the cache, so the same words need no compilation later.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { Script } from 'node:vm';

const [, , file, out, ...words] = process.argv as [string, string, string, string, ...string[]];
/** Where the engine notes which of its flags were on: made under others it would not be taken. */
const flags = { from: 12, to: 16 };
/** The flag hash that V8 records without flags, from the caller. */
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
