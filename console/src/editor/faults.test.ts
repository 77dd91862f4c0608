import { describe, expect, test } from 'vitest';
import { judge, marksOf, maxMarks, syntaxFaults } from './faults.ts';

const text = 'name: web\nresources:\n  - id: a\n    nmae: "x y"\n';
const expression = 'name: "/${{ param.prot }}-${{ tag.a }}"\n';
const fault = (line?: number, column?: number, message = 'wrong') => ({
  ...{ path: '/x', message },
  ...(line === undefined ? {} : { line }),
  ...(column === undefined ? {} : { column }),
});
const marked = (line?: number, column?: number) => {
  const [mark] = marksOf(text, [fault(line, column)]);
  return mark && text.slice(mark.from, mark.to);
};

describe('marks', () => {
  test.each([
    [4, 5, 'nmae'],
    [4, 11, '"x y"'],
    [1, 1, 'name'],
    [2, 10, ':'],
    // Errors that concern the whole text are shown on the first line.
    [undefined, undefined, 'name'],
    // An error at the end of a line has no character to underline.
    [1, 40, ''],
    // Positions after the end of the text, and invalid positions.
    [400, 2, ''],
    [-3, -1, 'name'],
  ])('marks an error at line %s, column %s: %j', (line, column, word) => expect(marked(line, column)).toBe(word));

  test('marks the whole expression', () => {
    const [mark] = marksOf(expression, [fault(1, 9)]);
    expect(expression.slice(mark?.from, mark?.to)).toBe('${{ param.prot }}');
  });

  test('orders marks by position, errors before warnings', () => {
    const marks = marksOf(text, [fault(4, 5, 'b'), fault(1, 1, 'a')], [fault(4, 5, 'c'), fault(2, 1, 'd')]);
    expect(marks.map(({ message }) => message)).toEqual(['a', 'd', 'b', 'c']);
    expect(marks.map(({ severity }) => severity)).toEqual(['error', 'warning', 'error', 'warning']);
  });

  test('limits the number of marked errors', () =>
    expect(
      marksOf(
        text,
        Array.from({ length: 10_000 }, () => fault(1, 1)),
      ),
    ).toHaveLength(maxMarks));
});

describe('syntax', () => {
  test('reports the line and column of a syntax error', () =>
    expect(syntaxFaults('name: "x\n')).toEqual([
      { path: '', message: expect.stringMatching(/quote/i), line: expect.any(Number), column: expect.any(Number) },
    ]));
  test('reports duplicate keys', () => expect(syntaxFaults('a: 1\na: 2\n')).toMatchObject([{ line: 2, column: 1 }]));
  test('accepts any valid YAML', () => expect(syntaxFaults('- 1\n- { a: b }\n')).toEqual([]));
  test('does not parse text that is too long or too deeply nested', () => {
    expect(syntaxFaults('['.repeat(100_000))).toMatchObject([{ message: expect.stringMatching(/deep/) }]);
    expect(syntaxFaults(`a: [\n${'#'.repeat(300_000)}`)).toEqual([]);
  });
});

describe('validating a text', () => {
  const verdict = { text, faults: [fault(4, 5)], warnings: [] };
  test('reports the state "checking" before the first verdict', () =>
    expect(judge(text, null)).toEqual({ marks: [], state: 'checking' }));
  test('shows the verdict for the current text', () =>
    expect(judge(text, verdict)).toMatchObject({ state: 'faulty', marks: [{ line: 4 }] }));
  test('reports the state "valid" if there are only warnings', () =>
    expect(judge(text, { text, faults: [], warnings: [fault(1, 1)] })).toMatchObject({
      state: 'valid',
      marks: [{ severity: 'warning' }],
    }));
  test('shows the errors of the earlier text while the current text is checked', () =>
    expect(judge(`${text}# more\n`, verdict)).toMatchObject({ state: 'checking', marks: [{ line: 4 }] }));
  test('shows only the syntax errors if the text has any', () =>
    expect(judge('a: [', verdict)).toMatchObject({ state: 'faulty', marks: [{ path: '' }] }));
});
