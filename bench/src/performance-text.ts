// Prints, as JSON, docs/performance.md with the tables of the recorded results, and the names of benches without a
// section.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../tools/suite/cli.ts';
import { benchesWithoutSection, performancePage } from './run/performance-page.ts';

const page = readFileSync(join(root, 'docs/performance.md'), 'utf8');
const results = JSON.parse(readFileSync(join(root, 'bench/results.json'), 'utf8'));
console.log(JSON.stringify({ page: performancePage(page, results), withoutSection: benchesWithoutSection(page) }));
