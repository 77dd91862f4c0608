import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../tools/suite/cli.ts';
import { performancePage } from './performance-page.ts';
import { recordedFiles } from './place.ts';
import { type Results, withRun } from './results.ts';

/** Adds runs to bench/results.json, and updates docs/performance.md. */
export function record(measured: Results): void {
  const [resultsFile, pageFile] = recordedFiles.map((path) => join(root, path)) as [string, string];
  let results: Results = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
  for (const [bench, runs] of Object.entries(measured)) for (const run of runs) results = withRun(results, bench, run);
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(pageFile, performancePage(readFileSync(pageFile, 'utf8'), results));
}
