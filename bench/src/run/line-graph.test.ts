import { expect, test } from 'vitest';
import { lineGraph } from './line-graph.ts';

const points = (...values: number[]) => values.map((value, at): [number, number] => [at * 50, value]);

test('draws one path for each line, scaled from zero to round maxima', () => {
  const svg = lineGraph([
    { title: 'Memory', unit: 'MB', lines: [{ name: 'a', points: points(0, 40, 80) }] },
    { title: 'Time', unit: 'ms', lines: [{ name: 'b', points: points(1) }, { name: 'c', points: [] }] }, // biome-ignore format: pairs
  ]);
  // The plot is 550 wide and 96 high, from (60, 28); its maxima are 100 min and 100 MB.
  expect(svg).toContain('<path d="M60 124L335 85.6L610 47.2" fill="none" stroke="#2563eb"');
  expect(svg.match(/fill="none"/g)).toHaveLength(2);
  expect(svg).toContain('>Memory, MB<');
  expect(svg).toContain('>100 min<');
  expect(svg).toContain('viewBox="0 0 760 300"');
  expect(svg).toContain('<title>Memory; ');
});

test('omits values that are not finite, and escapes names', () => {
  const svg = lineGraph([{ title: 'a < b', unit: '"&"', lines: [{ name: 'x', points: points(1, Number.NaN, 1) }] }]);
  expect(svg).not.toContain('NaN');
  expect(svg).toContain('a &lt; b, &quot;&amp;&quot;');
});

test('draws a graph without values', () => {
  expect(lineGraph([{ title: 'Memory', unit: 'MB', lines: [] }])).toContain('>1 min<');
});
