import { parseArgs } from 'node:util';
import { bars, type Judged } from './bars.ts';
import { notJudged } from './judge.ts';
import { Launcher } from './launch.ts';
import { commitOfRun, placeOfRun } from './place.ts';
import { benches } from './programs.ts';
import { record } from './record.ts';
import { table } from './report.ts';
import { anyMissed, type Result, type Results, resultHeadings, resultRows, withRun } from './results.ts';

function withoutFigures(bench: string, reason: string): Result {
  const names = Object.keys(bars[bench as Judged]);
  const figures = Object.fromEntries(names.map((name) => [name, notJudged(reason)]));
  return { bench, sizes: '', figures, growth: [], comparisons: [] };
}

/**
 * Runs all benches in sequence, and prints one table of bars. A bench that fails does not stop the others.
 *
 *     npm run bench -- all [--smoke] [--only NAME[,NAME…]] [--write]
 *
 * `--write` adds the results to `bench/results.json` and `docs/performance.md`.
 */
export async function runAll(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: { smoke: { type: 'boolean' }, write: { type: 'boolean' }, only: { type: 'string' } },
  });
  if (values.smoke && values.write) throw new Error('--smoke judges no bar; run without it to use --write');
  const names = values.only?.split(',') ?? Object.keys(benches);
  for (const name of names)
    if (!Object.hasOwn(benches, name))
      throw new Error(`--only: unknown bench "${name}"; choose from ${Object.keys(benches).join(', ')}`);

  const launcher = new Launcher();
  const commit = commitOfRun();
  const failed: string[] = [];
  let measured: Results = {};
  for (const name of names) {
    if (launcher.ended !== null) break;
    console.log(`\n── ${name}`);
    const place = placeOfRun(commit);
    const { code, result } = await launcher.run(benches[name]!, values.smoke ? ['--smoke'] : []);
    const failure = result === null || code > 1 ? `${name} exited with code ${code}` : null;
    if (failure !== null) failed.push(failure);
    measured = withRun(measured, name, { ...place, ...(result ?? withoutFigures(name, failure!)) });
  }
  console.log(`\n── bars\n${placeOfRun(commit).machine}\ncommit ${commit}\n`);
  console.log(table(resultHeadings, resultRows(measured, names)));
  for (const failure of failed) console.log(`\n${failure}`);
  if (values.write) record(measured);
  process.exitCode = launcher.ended ?? (failed.length > 0 || anyMissed(measured) ? 1 : 0);
}
