import { basename } from 'node:path';
import { bars } from './bars.ts';
import { soakGraphFile } from './place.ts';
import { type Cell, formatNumber } from './report.ts';
import {
  comparisonHeadings,
  comparisonRows,
  growthHeadings,
  growthRows,
  type Results,
  type Run,
  resultHeadings,
  resultRows,
} from './results.ts';

const begin = '<!-- from bench/results.json, by npm run bench -- all --write -->';
const end = '<!-- until here -->';
const graphText = 'Resident memory, file sizes, API p99, and CPU time of the orchestrator during the soak';

/**
 * Updates the tables in the page, and preserves the handwritten text.
 * @param page the text of the page, which contains both marker lines
 */
export function performancePage(page: string, results: Results): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1)
    throw new Error(`docs/performance.md lacks the line ${from === -1 ? begin : end}; restore it`);
  const growth = growthRows(results);
  const comparisons = comparisonRows(Object.values(results).flatMap((runs) => runs.at(-1)?.comparisons ?? []));
  const made = [
    '## Bars',
    ...placesOf(results),
    markdownTable(resultHeadings, resultRows(results)),
    ...(growth.length > 0 ? ['## Growth', markdownTable(growthHeadings, growth)] : []),
    ...(comparisons.length > 0 ? ['## Side by side', markdownTable(comparisonHeadings, comparisons)] : []),
    ...('soak-fleet' in results ? ['## Over time', `![${graphText}](${basename(soakGraphFile)})`] : []),
  ];
  return `${page.slice(0, from)}${begin}\n\n${made.join('\n\n')}\n\n${page.slice(to)}`;
}

/** Returns the benches that have bars but no section that explains the limits of their figures. */
export function benchesWithoutSection(page: string): string[] {
  return Object.keys(bars).filter((bench) => !page.includes(`\n### ${bench}\n`));
}

function placesOf(results: Results): string[] {
  const lines = Object.entries(results).flatMap(([bench, runs]) => {
    const last = runs.at(-1);
    return last === undefined ? [] : [`- \`${bench}\`: ${placeText(runs, last)}`];
  });
  return lines.length === 0 ? [] : [lines.join('\n')];
}

function placeText(runs: readonly Run[], { at, commit, machine, sizes }: Run): string {
  const loads = runs.map(({ load }) => formatNumber(load)).join(', ');
  return `${sizes || 'no sizes'}; ${runs.length === 1 ? '1 run' : `${runs.length} runs`} of commit ${commit} until ${at.slice(0, 10)}, load before ${loads}; ${machine}`;
}

function markdownTable(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const text = (cell: Cell) => (typeof cell === 'number' ? formatNumber(cell) : (cell ?? '-')).replaceAll('|', '\\|');
  const line = (cells: readonly Cell[]) => `| ${cells.map(text).join(' | ')} |`;
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n');
}
