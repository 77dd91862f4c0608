// Starts the program in this folder whose name is in this file's name, with V8's code cache from an earlier run.
// Node.js's own compile cache contains only functions that V8 compiles while it parses a file. This cache contains every
// function that was called at startup, which saves a fifth of the CPU time.
const { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

const main = __filename.replace(/-cached\.cjs$/, '.cjs');
// The first word decides which functions are called at startup. A path or an address is not part of the name.
const word = /^[a-z-]{1,24}$/.exec(process.argv[2] ?? '')?.[0] ?? '';
/** A program that runs this many milliseconds has started. */
const startedMs = 30_000;

function read(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Stores the cache of a script. Ignores a failure, such as in a read-only clone. */
function save(script, cacheFile) {
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

/** Runs a file of this folder with its code cache. @returns its exports */
function run(file) {
  const cacheFile = `${file.slice(0, -'.cjs'.length)}.${word}.cache`;
  const cachedData = read(cacheFile);
  // esbuild writes only ASCII, which is faster to read as Latin-1.
  const script = new Script(`${head}${readFileSync(file, 'latin1')}\n})`, {
    filename: file,
    cachedData,
    columnOffset: -head.length,
  });
  if (cachedData === undefined || script.cachedDataRejected) {
    let saved = false;
    const saveOnce = () => {
      if (!saved) save(script, cacheFile);
      saved = true;
    };
    setTimeout(saveOnce, startedMs).unref();
    // During a failed startup, only some of the functions were called.
    process.once('exit', (code) => code === 0 && saveOnce());
  }
  const module = { exports: {} };
  script.runInThisContext().call(module.exports, module.exports, requireFrom, module, file, __dirname);
  return module.exports;
}

/** Loads the rest of a program with its own code cache, and all other modules as Node.js does. */
const requireFrom = Object.assign(
  (name) => (/^\.\/[a-z]+-rest\.cjs$/.test(name) ? run(`${__dirname}/${name.slice(2)}`) : require(name)),
  require,
);

process.argv[1] = main;
run(main);
