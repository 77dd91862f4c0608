import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nameOfInput } from './fuzz/name-of-input.ts';
import { runFuzz } from './fuzz/run.ts';
import { targets } from './fuzz/targets.ts';
import { benchOptions } from './run/options.ts';

/**
 * Fuzzes all parsers of untrusted input, first with the corpus and then with random mutations of valid inputs. A failure is
 * an undeclared exception, more CPU time or allocated memory than the target's bound (usually 100 ms and 64 MiB), or a
 * hang. The bench adds a failing input to `bench/corpus/TARGET` in the repository, so that later runs and CI try it first.
 *
 *     npm run soak -- fuzz [--secs 60] [--seed N] [--only TARGET[,TARGET…]]
 *
 * `--secs`: seconds for each target. `--seed`: the seed, which the bench prints; the same seed yields the same inputs.
 */
const { secs, seed, only, smoke } = benchOptions({
  numbers: { secs: [60, 20], seed: [Math.floor(Math.random() * 2 ** 31), Math.floor(Math.random() * 2 ** 31)] },
  texts: { only: null },
});
const corpus = join(import.meta.dirname, '../corpus');
const names = only?.split(',') ?? Object.keys(targets);
for (const name of names)
  if (!Object.hasOwn(targets, name))
    throw new Error(`--only: unknown target "${name}"; choose from ${Object.keys(targets).join(', ')}`);

console.log(`${secs} s for each of ${names.length} targets, --seed ${seed}`);
const found = await runFuzz({
  module: 'targets',
  names,
  seed,
  seconds: secs,
  corpus,
  ...(smoke ? { patience: 5, inputs: 50 } : {}),
  print: (text) => console.log(`  ${text}`),
});
for (const { name, reason, input, seed } of found) {
  const bytes = Buffer.from(input, 'base64');
  const file = join(corpus, name, nameOfInput(bytes));
  console.log(`\nFAILED ${name}${seed === null ? '' : ` (--seed ${seed})`}: ${reason}\n  ${bytes.length} bytes`);
  console.log(`  ${JSON.stringify(bytes.toString('latin1').slice(0, 300))}`);
  if (smoke) continue;
  mkdirSync(join(corpus, name), { recursive: true });
  writeFileSync(file, bytes);
  console.log(`  saved as ${file}`);
}
process.exitCode = found.length > 0 ? 1 : 0;
