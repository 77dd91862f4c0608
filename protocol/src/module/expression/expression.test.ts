import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeExpressions, parseExpressions, soleExpression } from './expression.ts';

const expression = (
  root: string,
  key: string,
  offset = 0,
  fallback: string | null = null,
  separator: string | null = null,
) => ({
  kind: 'expression',
  root,
  key,
  fallback,
  separator,
  offset,
});

const faultOf = (text: string): string | undefined => parseExpressions(text).faults[0]?.message;

describe('parseExpressions', () => {
  test.each([
    ['${{ secrets.db-password }}', expression('secrets', 'db-password')],
    ['${{agent.name}}', expression('agent', 'name')],
    ['${{ agent.node_id }}', expression('agent', 'node_id')],
    ['${{ attr.init_system }}', expression('attr', 'init_system')],
    ['${{ attr.disk.sda.size }}', expression('attr', 'disk.sda.size')],
    ['${{ tag.team/role }}', expression('tag', 'team/role')],
    ['${{\n param.port\t}}', expression('param', 'port')],
    ['${{ each }}', expression('each', '')],
    ['${{ each.home.dir }}', expression('each', 'home.dir')],
    ['${{ tag.a | default("x y") }}', expression('tag', 'a', 0, 'x y')],
    ['${{tag.a|default( \'it is "x"\' )}}', expression('tag', 'a', 0, 'it is "x"')],
    ['${{ tag.a | default("") }}', expression('tag', 'a', 0, '')],
    ['${{ param.a | join(", ") }}', expression('param', 'a', 0, null, ', ')],
    ['${{param.a|default("none")|join("")}}', expression('param', 'a', 0, 'none', '')],
    ['${{ each.a | join("\\n") | default("x") }}', expression('each', 'a', 0, 'x', '\n')],
    ['${{ tag.a | default("\\"}} ${{ \\\\ \\n") }}', expression('tag', 'a', 0, '"}} ${{ \\ \n')],
  ])('reads the expression %s', (text, part) => {
    expect(parseExpressions(text)).toEqual({ parts: [part], blocks: null, faults: [] });
  });

  test('splits text into plain text and expressions', () => {
    expect(parseExpressions('a ${{ tag.b }}c$${{ d }} $${{{')).toEqual({
      parts: [{ kind: 'text', text: 'a ' }, expression('tag', 'b', 2), { kind: 'text', text: 'c${{ d }} ${{{' }],
      blocks: null,
      faults: [],
    });
  });

  test.each([
    ['${{ }}', 'the expression is empty; write $${{ for a plain ${{'],
    ['${{ agent }}', '"agent" is not of the form agent.name or agent.node_id'],
    ['${{ tag.1a }}', '"tag.1a" is not of the form tag.<key>'],
    ['${{ each. }}', 'write each, or each.<key> if the elements are mappings'],
    ['${{ tag.a tag.b }}', 'the expression is not valid CEL at "tag.b": write an operator, or remove it'],
    ['${{ param.a + }}', 'the expression is not valid CEL: it ends too early'],
    ['${{ (param.a }}', 'the expression has a bracket that is not closed with ")"'],
    ['${{ "a }}', 'a text in the expression is not closed with its quote'],
    ['${{ param.a | }}', 'after "|" write a function, such as | default("…")'],
    ['${{ param.a | default("x") + "y" }}', 'a pipe ends the expression: write (param.a | default("x")) before "+"'],
    [
      '${{ size(["a", param.l | join("-") == "b"]) }}',
      'a pipe ends the expression: write (param.l | join("-")) before "=="',
    ],
    [
      '${{ true && param.a | default("x") == "y" }}',
      'a pipe ends the expression: put parentheses around the value with the pipe, such as (a | default("x")), or write default(a, "x")',
    ],
    ['${{ (param.l | join(",") }}', 'the expression has a bracket that is not closed with ")"'],
    [
      '${{ param.a | default("a", true) }}',
      'no function takes these types: default(dyn, string, bool); write x | default("…")',
    ],
    ['${{ param.a | d("a") }}', 'unknown function "d": write x | default("…")'],
    ['${{ param.l | first }}', 'unknown function "first": write x[0]'],
    ['${{ not param.a }}', 'the expression is not valid CEL at "param.a": write !x for not x'],
    ['${{ param.a ~ "b" }}', 'the expression is not valid CEL at "~ \\"b\\"": write + to join texts'],
    [
      '${{ param.l | map(attribute="name") }}',
      'the expression is not valid CEL at "=\\"name\\")": write x.map(e, e.name) for the names of the elements',
    ],
    [
      '${{ param.a ?? "b" }}',
      'the expression is not valid CEL at "? \\"b\\"": write | default("…") for a missing value',
    ],
    [
      '${{ param.a || "b" }}',
      'an operand of || or && is not true or false: use a comparison; for a missing value, write | default("…")',
    ],
    ['${{ param.a.uniqe() }}', 'unknown function "uniqe": did you mean "unique"?'],
    [
      '${{ 1 + "a" }}',
      'no operator takes these types: int + string; convert one of them, such as with string(…) or int(…)',
    ],
    ['${{ upper(1) }}', 'unknown function "upper": write x.upperAscii()'],
    ['${{ basename(1) }}', 'no function takes these types: basename(int); write basename(path)'],
    [
      `\${{ [${'1,'.repeat(501)}] }}`,
      'the expression is too large or too deep for CEL (maxListElements is 500): split it',
    ],
    [
      `\${{ ${'('.repeat(60)}1${')'.repeat(60)} }}`,
      'the expression is too large or too deep for CEL (maxDepth is 48): split it',
    ],
    [`\${{ ${'1+'.repeat(5000)}1 }}`, 'an expression has at most 8192 characters'],
    ['${{ tag.a | default }}', 'no function takes these types: default(dyn); write x | default("…")'],
    ['${{ tag.a | default("a" }}', 'default("…") is not closed with ")"'],
    ['${{ tag.a | upper("a") }}', 'unknown function "upper": write x.upperAscii()'],
    [
      '${{ param.a | join(",") | join(";") }}',
      'no function takes these types: join(string, string); write join(list, separator)',
    ],
    ['${{ tag.a | default("a }}', 'default requires a text in quotes: | default("…")'],
    ['${{ tag.a', 'the expression is not closed with "}}"; write $${{ for a plain ${{'],
  ])('refuses the expression %s', (text, message) => {
    expect(faultOf(text)).toBe(message);
  });

  test('reports all faulty expressions in a text', () => {
    expect(parseExpressions('${{ 1+ }} ${{ tag.b }} ${{ 2+ }}').faults.map(({ offset }) => offset)).toEqual([0, 23]);
  });

  test('returns the sole expression only if there is no other text', () => {
    const sole = (text: string) => {
      const found = soleExpression(parseExpressions(text).parts);
      return found?.kind === 'cel' ? found.source : found?.key;
    };
    expect(sole(' ${{ tag.a }}\n')).toBe('a');
    expect(sole('${{ tag.a }}${{ tag.a }}')).toBeUndefined();
    expect(sole('x${{ tag.a }}')).toBeUndefined();
    expect(sole('x')).toBeUndefined();
  });
});

/** Text with many characters that have a special meaning in expressions. */
const tricky = fc
  .array(fc.oneof(fc.constantFrom('$', '{', '}', '$${{', '${{', '}}', ' ', '|', '"', '\\', 'secrets.x'), fc.string()))
  .map((pieces) => pieces.join(''));

describe('parseExpressions with any text', () => {
  test('parses escaped text back to the original text', () => {
    fc.assert(
      fc.property(tricky, (text) => {
        const { parts, faults } = parseExpressions(escapeExpressions(text));
        expect(faults).toEqual([]);
        expect(parts).toEqual(text === '' ? [] : [{ kind: 'text', text }]);
      }),
    );
  });

  test('accepts any quoted text as a default', () => {
    fc.assert(
      fc.property(tricky, (text) => {
        const { parts, faults } = parseExpressions(`\${{ tag.a | default("${text.replace(/[\\"]/g, '\\$&')}") }}`);
        expect(faults).toEqual([]);
        expect(parts).toEqual([expression('tag', 'a', 0, text)]);
      }),
    );
  });

  test('records the offset of every part in the source', () => {
    fc.assert(
      fc.property(tricky, (text) => {
        const { parts } = parseExpressions(text);
        for (const part of parts) {
          if (part.kind === 'expression') expect(text.startsWith('${{', part.offset)).toBe(true);
        }
      }),
    );
  });
});
