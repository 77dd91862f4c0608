import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nameOfInput } from './fuzz/name-of-input.ts';
import { runFuzz } from './fuzz/run.ts';
import { targets } from './fuzz/targets.ts';
import { benchOptions } from './run/options.ts';

/**
 * Fuzz: gives every parser of outside input the corpus, then random inputs near valid ones. A failure is an undeclared
 * exception, more than 100 ms of processor time, more than 64 MiB allocated, or a hang. The failing input is added to
 * `bench/corpus/TARGET`, which is in the repository: later runs and CI try it first.
 *
 *     npm run soak -- fuzz [--secs 60] [--seed N] [--only TARGET[,TARGET…]]
 *
 * `--secs` is per target. The seed is printed; the same seed tries the same inputs.
 */
const { secs, seed, only, smoke } = benchOptions({
  numbers: { secs: [60, 20], seed: [Math.floor(Math.random() * 2 ** 31), Math.floor(Math.random() * 2 ** 31)] },
  texts: { only: null },
});
const corpus = join(import.meta.dirname, '../corpus');
const names = only?.split(',') ?? Object.keys(targets);
for (const name of names)
  if (!Object.hasOwn(targets, name)) throw new Error(`there is no target ${name}; ${Object.keys(targets)}`);

console.log(`${secs} s for each of ${names.length} targets, --seed ${seed}`);
const found = await runFuzz({
  module: 'targets',
  names,
  seed,
  seconds: secs,
  corpus,
  ...(smoke ? { patience: 5, inputs: 150 } : {}),
  tell: (text) => console.log(`  ${text}`),
});
for (const { name, reason, input, seed } of found) {
  const bytes = Buffer.from(input, 'base64');
  const file = join(corpus, name, nameOfInput(bytes));
  console.log(`\nFAILED ${name}${seed === null ? '' : ` (--seed ${seed})`}: ${reason}\n  ${bytes.length} bytes`);
  console.log(`  ${JSON.stringify(bytes.toString('latin1').slice(0, 300))}`);
  if (smoke) continue;
  mkdirSync(join(corpus, name), { recursive: true });
  writeFileSync(file, bytes);
  console.log(`  kept as ${file}`);
}
process.exitCode = found.length > 0 ? 1 : 0;
