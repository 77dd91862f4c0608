import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { block, line } from '../../converge/test/desired.ts';
import { edited as editedBlock, restored as restoredBlock } from '../block-unix/edit.ts';
import { findBlock } from '../block-unix/seen.ts';
import { rememberLine, restored } from '../line-unix/before.ts';
import { linesToChange } from '../line-unix/declared.ts';
import { edited, isDone } from '../line-unix/diff.ts';
import { replacements } from '../line-unix/every.ts';
import { placesOf } from '../line-unix/places.ts';
import type { SeenLine } from '../line-unix/seen.ts';
import { joinLines, positionOf, splitLines, type TextLine } from './lines.ts';

/** Generates text with repeated lines, all kinds of line endings, and bytes that are not UTF-8. */
const texts = fc
  .array(
    fc.tuple(
      fc.constantFrom('', 'a', 'a 1', 'a 2', 'b', '\xe9', '\r', '# BEGIN muster: m'),
      fc.constantFrom('\n', '\r\n'),
    ),
    { maxLength: 8 },
  )
  .chain((lines) =>
    fc.boolean().map((whole) => {
      const text = lines.map((one) => one.join('')).join('');
      return Buffer.from(whole ? text : text.replace(/\r?\n$/, ''), 'latin1');
    }),
  );

const lineResources = fc
  .record({
    text: fc.constantFrom('a', 'a 1', 'b', 'new'),
    match: fc.constantFrom(undefined, '^a', '^#', 'b$'),
    ensure: fc.constantFrom('present' as const, 'absent' as const),
  })
  .map(({ text, match, ensure }) => line('/f', text, { ensure, ...(match === undefined ? {} : { match }) }));

function seenIn(resource: Parameters<typeof linesToChange>[0], lines: readonly TextLine[]): SeenLine {
  const hits = linesToChange(resource, null, lines).map((index) => {
    const { text, end } = lines[index] as TextLine;
    return { text, end, ...positionOf(lines, index, 1) };
  });
  const end = positionOf(lines, lines.length, 0);
  return {
    type: 'file',
    kind: null,
    ownership: null,
    content: joinLines(lines),
    hits,
    end,
    previous: null,
    restored: null,
  };
}

function everySeenIn(resource: Parameters<typeof linesToChange>[0], lines: readonly TextLine[]): SeenLine {
  const managed = linesToChange(resource, null, lines);
  const hits = [...replacements(resource, managed, lines)].map(([index, to]) => {
    const { text, end } = lines[index] as TextLine;
    return { text, end, to, ...positionOf(lines, index, 1) };
  });
  return { ...seenIn(resource, lines), hits, managed: managed.length };
}

describe('a text', () => {
  test('preserves every byte when it splits and joins lines', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(joinLines(splitLines(text))).toEqual(text);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(joinLines(splitLines(Buffer.from(bytes)))).toEqual(Buffer.from(bytes));
      }),
    );
  });
});

describe('a line', () => {
  test('applies a line idempotently, and restores the text byte for byte', () => {
    let changed = 0;
    fc.assert(
      fc.property(texts, lineResources, (text, resource) => {
        const lines = splitLines(text);
        const seen = seenIn(resource, lines);
        const hits = linesToChange(resource, null, lines);
        const declared = resource.body as { line: string; ensure: string };
        const asDeclared =
          declared.ensure === 'absent' ? hits.length === 0 : lines[hits[0] ?? -1]?.text === declared.line;
        if (asDeclared) return;
        changed++;
        const after = splitLines(joinLines(edited(resource, lines, hits)));
        const now = linesToChange(resource, null, after);
        if (declared.ensure === 'absent') expect(now).toEqual([]);
        else expect(after[now[0] as number]?.text).toBe(declared.line);
        const back = restored(resource, rememberLine(resource, seen, null), after);
        expect(joinLines(back?.lines ?? after)).toEqual(text);
      }),
      { numRuns: 500 },
    );
    expect(changed).toBeGreaterThan(50);
  });

  test('replaces every match idempotently, and restores the text byte for byte', () => {
    const everyResources = fc.constantFrom(
      line('/f', 'a', { match: '^a', replaces: 'every_line' }),
      line('/f', 'new', { match: '^(a|b)', replaces: 'every_line' }),
      line('/f', 'c\\1', { match: '^a(.*)', replaces: 'every_line', backrefs: true }),
      line('/f', 'x', { match: '[a1]', replaces: 'every_part' }),
      line('/f', '<\\1', { match: 'a( ?)', replaces: 'every_part', backrefs: true }),
    );
    let changed = 0;
    fc.assert(
      fc.property(texts, everyResources, fc.boolean(), (text, resource, isShifted) => {
        fc.pre(!text.toString('latin1').includes('\xe9'));
        const lines = splitLines(text);
        const seen = everySeenIn(resource, lines);
        if (isDone(resource, lines, linesToChange(resource, null, lines))) return;
        changed++;
        const after = splitLines(joinLines(edited(resource, lines, linesToChange(resource, null, lines))));
        expect(isDone(resource, after, linesToChange(resource, null, after))).toBe(true);
        // After a shift, lines that equal the agent's are ambiguous.
        const isClear = seen.managed === seen.hits.length;
        const shift: TextLine[] = isShifted && isClear ? [{ text: 'more', end: '\n' }] : [];
        const back = restored(resource, rememberLine(resource, seen, null), [...shift, ...after]);
        expect(joinLines(back?.lines ?? [...shift, ...after])).toEqual(Buffer.concat([joinLines(shift), text]));
      }),
      { numRuns: 1000 },
    );
    expect(changed).toBeGreaterThan(100);
  });

  test("finds the agent's lines among many equal lines in a few steps for each line", () => {
    let reads = 0;
    const lines = Array.from(
      { length: 20_000 },
      (_, index): TextLine => ({
        get text() {
          reads++;
          return index % 2 === 0 ? 'x' : 'y';
        },
        end: '\n',
      }),
    );
    const entries = Array.from({ length: 256 }, (_, index) => ({
      ...{ index: 70 * index, above: `gone ${index}`, below: 'y', text: 'a', by: index % 2 === 0 ? 'x' : 'gone' },
    }));
    const places = placesOf(
      entries,
      lines,
      lines.flatMap((_, index) => (index % 2 === 0 ? [] : [index])),
    );
    expect(places.size).toBe(128);
    expect(reads).toBeLessThan(10 * lines.length);
  });

  test('restores a line to its position after others changed the file', () => {
    const resource = line('/f', 'UMASK 027', { match: '^UMASK' });
    const lines = splitLines(Buffer.from('one\nUMASK 022\ntwo\n'));
    const before = rememberLine(resource, seenIn(resource, lines), null);
    const back = (now: string): string =>
      joinLines(restored(resource, before, splitLines(Buffer.from(now)))?.lines ?? []).toString();
    expect(back('zero\nnew\nUMASK 027\ntwo\nthree\n')).toBe('zero\nnew\nUMASK 022\ntwo\nthree\n');
    // The line was removed by hand, and the next apply added it at the end.
    expect(back('zero\none\ntwo\nthree\nUMASK 027\n')).toBe('zero\none\nUMASK 022\ntwo\nthree\n');
    expect(back('zero\none\ntwo\n')).toBe('zero\none\nUMASK 022\ntwo\n');
    // No neighbor of the line remains, so the line keeps its current position.
    expect(back('x\ny\nz\nUMASK 027')).toBe('x\ny\nz\nUMASK 022');
  });
});

describe('a block', () => {
  const resources = fc
    .record({ content: fc.constantFrom('', 'x', 'x\ny\n', '\n'), ensure: fc.constantFrom('present', 'absent') })
    .map((body) => block('/f', 'n', body as { content: string; ensure: 'present' | 'absent' }));
  const existing = fc.constantFrom(
    '',
    '# BEGIN muster: n\nold\n# END muster: n\n',
    '# BEGIN muster: n\r\n# END muster: n\r\n',
  );

  test('applies a block idempotently, and restores the text byte for byte', () => {
    fc.assert(
      fc.property(texts, existing, texts, resources, (head, middle, tail, resource) => {
        const ended = /(^|\n)$/.test(head.toString('latin1')) ? head : Buffer.concat([head, Buffer.from('\n')]);
        const text = Buffer.concat([ended, Buffer.from(middle), tail]);
        // In a file with mixed line endings, a restored block gets the prevailing ending.
        const mixed = /\r\n/.test(text.toString('latin1')) && /[^\r]\n|^\n/.test(text.toString('latin1'));
        fc.pre(!mixed);
        const lines = splitLines(text);
        const found = findBlock(resource, lines);
        const old = found.is === 'whole' ? found.block : null;
        const after = splitLines(joinLines(editedBlock(resource, lines, old)));
        expect(splitLines(joinLines(editedBlock(resource, after, whole(resource, after))))).toEqual(after);
        const before =
          old === null
            ? ({ was: 'absent' } as const)
            : { was: 'present' as const, lines: old.lines, ...positionOf(lines, old.index, old.lines.length + 2) };
        expect(joinLines(restoredBlock(resource, before, after)?.lines ?? after)).toEqual(text);
      }),
      { numRuns: 500 },
    );
  });

  const whole = (resource: Parameters<typeof findBlock>[0], lines: readonly TextLine[]) => {
    const found = findBlock(resource, lines);
    return found.is === 'whole' ? found.block : null;
  };
});
