// Runs a program in the executable, and then writes its V8 code cache:
//
//     node --hash-seed=1 --random-seed=1 --single-threaded packaging/compile.ts PROGRAM.cjs OUT [WORD...]
//
// The flags make the output reproducible. The cache contains the functions that ran, so that V8 does not compile them
// again.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { Script } from 'node:vm';

const [, , file, out, ...words] = process.argv as [string, string, string, string, ...string[]];
/** Byte range of the V8 flag hash in the code cache. V8 rejects a cache created with other flags. */
const flags = { from: 12, to: 16 };
/** The flag hash of a V8 that runs without flags, passed by the caller. */
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
