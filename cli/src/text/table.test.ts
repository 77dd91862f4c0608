import fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { style } from '../../test/examples.ts';
import { type Column, fitWidths, renderTable, wrap } from './table.ts';

interface Row {
  name: string;
  id: string;
  tags: string | null;
}
const columns: Column<Row>[] = [
  { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
  { heading: 'ID', text: ({ id }) => id },
  { heading: 'TAGS', text: ({ tags }) => tags, flexible: true },
];
const rows: Row[] = [
  { name: 'web-1', id: '3f8c2b0a9d7e', tags: 'role=web site=paris rack=12 owner=platform-team tier=gold zone=a' },
  { name: 'a-name-of-some-length-for-a-machine', id: '000000000000', tags: null },
  { name: '東京のサーバー', id: '111111111111', tags: 'x' },
];

const widest = (text: string) => Math.max(...text.split('\n').map((line) => stringWidth(line)));

test.each([80, 120])('fits a table into %i columns without truncating inflexible columns', (width) => {
  const text = renderTable(columns, rows, style({ width }));
  expect(widest(text)).toBeLessThanOrEqual(width);
  expect(text.split('\n')).toHaveLength(4);
  for (const { id } of rows) expect(text).toContain(id);
});

test('narrows the widest flexible column at 80 columns', () => {
  expect(renderTable(columns, rows, style({ width: 80 }))).toMatchInlineSnapshot(`
    "NAME                              ID            TAGS
    web-1                             3f8c2b0a9d7e  role=web site=paris rack=12 own…
    a-name-of-some-length-for-a-mac…  000000000000  -
    東京のサーバー                    111111111111  x"
  `);
});

test('truncates other columns before one that prefers more width', () => {
  const preferred = columns.map((column) => (column.heading === 'NAME' ? { ...column, wants: 40 } : column));
  const text = renderTable(preferred, rows, style({ width: 70 }));
  expect(text).toContain(rows[1]?.name);
  expect(text).toContain('role=web site=pari…');
});

test('continues text on the next line if its column wraps', () => {
  const wrapping = columns.map((column) => (column.heading === 'TAGS' ? { ...column, wraps: true } : column));
  expect(renderTable(wrapping, rows.slice(0, 2), style({ width: 80 }))).toMatchInlineSnapshot(`
    "NAME                              ID            TAGS
    web-1                             3f8c2b0a9d7e  role=web site=paris rack=12
                                                    owner=platform-team tier=gold
                                                    zone=a
    a-name-of-some-length-for-a-mac…  000000000000  -"
  `);
});

const sessions: Column<Row>[] = [
  { heading: 'SESSION', text: ({ id }) => id },
  { heading: 'AGENT', text: ({ name }) => name, flexible: true },
  { heading: 'STATUS', text: () => 'interrupted', paint: (text, _, { color }) => color.yellow(text) },
  { heading: 'OPENED', text: () => '12m ago', extra: true },
  { heading: 'ATTACHED', text: ({ tags }) => tags, flexible: true },
];

test('hides extra columns if there is no space, except with --verbose', () => {
  const at = (width: number, verbose = false) => renderTable(sessions, rows, style({ width, verbose }));
  expect(at(80)).toContain('OPENED');
  expect(at(60)).not.toContain('OPENED');
  expect(widest(at(60))).toBeLessThanOrEqual(60);
  expect(at(60)).toContain('interrupted');
  expect(at(60, true)).toContain('OPENED');
});

test('prints rows as cards without truncation if even truncated columns do not fit', () => {
  expect(renderTable(sessions, rows.slice(0, 2), style({ width: 40 }))).toMatchInlineSnapshot(`
    "SESSION   3f8c2b0a9d7e
    AGENT     web-1
    STATUS    interrupted
    OPENED    12m ago
    ATTACHED  role=web site=paris rack=12
              owner=platform-team tier=gold
              zone=a

    SESSION   000000000000
    AGENT     a-name-of-some-length-for-a-ma
              chine
    STATUS    interrupted
    OPENED    12m ago
    ATTACHED  -"
  `);
  const colored = renderTable(sessions, rows, style({ width: 40, colored: true }));
  expect(colored).toContain('\u001b[33minterrupted');
});

test('fits any table into any terminal', () => {
  const arbitrary = fc.array(
    fc.record({ name: fc.string({ unit: 'grapheme', maxLength: 60 }), id: fc.string(), tags: fc.option(fc.string()) }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(arbitrary, fc.integer({ min: 40, max: 120 }), (some, width) => {
      expect(widest(renderTable(sessions, some, style({ width })))).toBeLessThanOrEqual(width);
    }),
  );
});

test('keeps all text when wrapping it to lines that fit', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme-ascii', maxLength: 200 }),
      fc.integer({ min: 4, max: 40 }),
      (text, width) => {
        const lines = wrap(text, width);
        expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
        for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(width);
      },
    ),
  );
});

test('truncates nothing if there is no terminal', () => {
  const text = renderTable(columns, rows, style({ width: null }));
  expect(text).toContain(rows[0]?.tags);
  expect(text).not.toContain('…');
});

test('prevents a cell from adding a line or coloring later text', () => {
  const evil = { name: 'a\nb\u001b[31m', id: '\u202e', tags: '\r\u009b2J' };
  const text = renderTable(columns, [evil], style());
  expect(text.split('\n')).toHaveLength(2);
  expect(text.replace(/\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});

test('prints the same layout with and without colors', () => {
  const plain = renderTable(columns, rows, style());
  const colored = renderTable(columns, rows, style({ colored: true }));
  expect(colored).toContain('\u001b[1mweb-1');
  expect(colored.replace(/\u001b\[\d+m/g, '').replace(/ +$/gm, '')).toBe(plain);
});

test('respects minimum widths and uses the available width', () => {
  const arbitrary = fc.array(
    fc.record({ natural: fc.integer({ min: 0, max: 200 }), minWidth: fc.integer({ min: 0, max: 40 }) }),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(arbitrary, fc.integer({ min: 20, max: 300 }), (cells, width) => {
      const natural = cells.map((cell) => cell.natural);
      const fitted = fitWidths(natural, cells, width);
      const total = (all: readonly number[]) => all.reduce((sum, each) => sum + each, 0) + 2 * (all.length - 1);
      for (const [at, each] of fitted.entries()) {
        expect(each).toBeLessThanOrEqual(natural[at] ?? 0);
        expect(each).toBeGreaterThanOrEqual(Math.min(natural[at] ?? 0, cells[at]?.minWidth ?? 0));
      }
      if (total(natural) <= width) expect(fitted).toEqual(natural);
      else if (total(fitted) !== width) {
        expect(total(fitted)).toBeGreaterThan(width);
        for (const [at, each] of fitted.entries()) expect(each).toBeLessThanOrEqual(cells[at]?.minWidth ?? 0);
      }
    }),
  );
});
