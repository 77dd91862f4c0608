// Starts the program in this folder whose name is in this file's name, with V8's code cache from an earlier run.
// Node.js's own compile cache contains only functions that V8 compiles while it parses a file. This cache contains every
// function that was called at startup, which saves a fifth of the CPU time.
const { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

const file = __filename.replace(/-cached\.cjs$/, '.cjs');
// The first word decides which functions are called at startup. A path or an address is not part of the name.
const word = /^[a-z-]{1,24}$/.exec(process.argv[2] ?? '')?.[0] ?? '';
const cacheFile = `${file.slice(0, -'.cjs'.length)}.${word}.cache`;
/** A program that runs this many milliseconds has started. */
const startedMs = 30_000;

function read() {
  try {
    return readFileSync(cacheFile);
  } catch {
    return undefined;
  }
}

let saved = false;
/** Stores the cache. Ignores a failure, such as in a read-only clone. */
function save() {
  if (saved) return;
  saved = true;
  const temporary = `${cacheFile}.${process.pid}.tmp`;
  try {
    const descriptor = openSync(temporary, 'wx', 0o644);
    try {
      writeFileSync(descriptor, script.createCachedData());
      // V8 does not detect zeros that a power failure leaves in the file.
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, cacheFile);
  } catch {
    rmSync(temporary, { force: true });
  }
}

const head = '(function (exports, require, module, __filename, __dirname) {';
const cachedData = read();
// esbuild writes only ASCII, which is faster to read as Latin-1.
const script = new Script(`${head}${readFileSync(file, 'latin1')}\n})`, {
  filename: file,
  cachedData,
  columnOffset: -head.length,
});
if (cachedData === undefined || script.cachedDataRejected) {
  setTimeout(save, startedMs).unref();
  // During a failed startup, only some of the functions were called.
  process.once('exit', (code) => code === 0 && save());
}
process.argv[1] = file;
script.runInThisContext().call(module.exports, module.exports, require, module, file, __dirname);
