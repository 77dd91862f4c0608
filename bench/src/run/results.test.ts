import { describe, expect, test } from 'vitest';
import { bars } from './bars.ts';
import type { Figure } from './judge.ts';
import { notJudged } from './judge.ts';
import { benchesWithoutSection, performancePage } from './performance-page.ts';
import { anyMissed, comparisonRows, growthRows, type Results, type Run, resultRows, withRun } from './results.ts';

const runOf = (time: Figure, changes: Partial<Run> = {}): Run => ({
  commit: 'abc1234',
  machine: '2 × processor',
  at: '2026-01-02T03:04:05.000Z',
  load: 0.25,
  sizes: '10 agents',
  figures: { time, growth: 9 },
  growth: [{ what: 'CPU time', unit: 's', points: [[1000, 0.5], [10_000, 6]] }], // biome-ignore format: pairs
  comparisons: [{ what: 'CPU time, ms', muster: 1, peer: 'Other 2', value: 4, reason: null }],
  ...changes,
});
const recorded = (...runs: Run[]): Results =>
  runs.reduce<Results>((results, run) => withRun(results, 'fan-out', run), {});

describe('recorded results', () => {
  test('keeps the last three runs of one commit on one machine', () => {
    const values = (results: Results) => results['fan-out']!.map(({ figures }) => figures.time);
    expect(values(recorded(runOf(1), runOf(2), runOf(3), runOf(4)))).toEqual([2, 3, 4]);
    expect(values(recorded(runOf(1), runOf(2, { commit: 'def5678' })))).toEqual([2]);
    expect(values(recorded(runOf(1), runOf(2, { machine: 'other' })))).toEqual([2]);
  });

  test('reports a bar as met only if every run meets it, and ranks a miss above a run that is not judged', () => {
    const time = (...figures: Figure[]) =>
      resultRows(recorded(...figures.map((figure) => runOf(figure))), ['fan-out'])[0];
    expect(time(2, 3)).toEqual(['fan-out', bars['fan-out'].time.what, '2.00, 3.00', '≤ 3 × bare ws', 'met']);
    expect(time(2, 4, notJudged('x'))?.slice(2)).toEqual(['2.00, 4.00, -', '≤ 3 × bare ws', 'missed in 1 of 3 runs']);
    expect(time(4)?.[4]).toBe('missed');
    expect(time(2, notJudged('no server'))?.[4]).toBe('not judged: no server');
    expect(time()?.slice(2)).toEqual(['-', '≤ 3 × bare ws', 'not judged: not measured']);
  });

  test('lists each bar in one row, with and without results', () => {
    const count = Object.values(bars).flatMap((own) => Object.keys(own)).length;
    expect(resultRows({})).toHaveLength(count);
    expect(resultRows(recorded(runOf(2)))).toHaveLength(count);
  });

  test('recognizes a result that misses a bar', () => {
    expect(anyMissed(recorded(runOf(2)))).toBe(false);
    expect(anyMissed(recorded(runOf(4)))).toBe(true);
    expect(anyMissed(recorded(runOf(notJudged('x'))))).toBe(false);
  });

  test('reports growth with both sizes and their ratio', () => {
    expect(growthRows(recorded(runOf(2)))).toEqual([['fan-out', 'CPU time, s', '1,000', 0.5, '10,000', 6, 12]]);
  });
});

test('reports the ratio to the peer, or the reason why the peer was not measured', () => {
  const comparison = { what: 'memory, MB', muster: 10, peer: 'Other', value: 5, reason: null };
  expect(comparisonRows([comparison])).toEqual([['memory, MB', 10, 'Other', 5, 2]]);
  expect(comparisonRows([{ ...comparison, value: null, reason: 'needs root' }])).toEqual([
    ['memory, MB', 10, 'Other', 'not measured: needs root', null],
  ]);
});

describe('docs/performance.md', () => {
  const page =
    '# Performance\n\n<!-- from bench/results.json, by npm run bench -- all --write -->\nold\n<!-- until here -->\n\n### fan-out\n';

  test('replaces the text between the markers and keeps the text around them', () => {
    const text = performancePage(page, recorded(runOf(2)));
    expect(text.startsWith('# Performance\n\n<!-- from')).toBe(true);
    expect(text.endsWith('<!-- until here -->\n\n### fan-out\n')).toBe(true);
    expect(text).not.toContain('old');
    expect(text).toContain('| fan-out | time of an apply that changes nothing | 2.00 | ≤ 3 × bare ws | met |');
    expect(text).toContain('| CPU time, ms | 1.00 | Other 2 | 4.00 | 0.25 |');
    expect(text).toContain('commit abc1234 until 2026-01-02');
    expect(performancePage(text, recorded(runOf(2)))).toBe(text);
  });

  test('refuses a page without the markers', () => {
    expect(() => performancePage('# Performance\n', {})).toThrow('lacks the line');
  });

  test('finds benches without a section', () => {
    const without = benchesWithoutSection(page);
    expect(without).toContain('fleet');
    expect(without).not.toContain('fan-out');
  });
});
