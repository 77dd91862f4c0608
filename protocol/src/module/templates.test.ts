import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

const agent = { name: 'web-1', node_id: 'a', attributes: { platform: 'linux' }, tags: {} };

interface Options {
  templates?: Readonly<Record<string, string>>;
  parameters?: Readonly<Record<string, unknown>>;
  resource?: Readonly<Record<string, unknown>>;
}

const typeOf = (value: unknown): string =>
  Array.isArray(value)
    ? 'list'
    : typeof value === 'object'
      ? 'map'
      : typeof value === 'number'
        ? 'integer'
        : typeof value;

const sourceOf = (content: string, { templates = {}, parameters = {}, resource = {} }: Options = {}): string =>
  JSON.stringify({
    name: 'm',
    supports: [{ platform: 'linux' }],
    templates: Object.entries(templates).map(([id, text]) => ({ id, content: text })),
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, value]) => [name, { type: typeOf(value), default: value }]),
    ),
    resources: [{ id: 'f', resource: { 'file-unix': { path: '/x', content } }, ...resource }],
  });

/** Returns the content, or the first error. */
function rendered(content: string, options?: Options): unknown {
  const parsed = parseModule(sourceOf(content, options));
  if (!parsed.ok) return parsed.faults.map(({ path, message }) => `${path} ${message}`)[0];
  const resolution = resolveDesiredSet({ modules: [parsed.module], agent });
  if (!resolution.ok) return resolution.faults[0]?.message;
  const [first] = resolution.resources;
  return first?.deferred.length === 0 ? first.body.content : first?.deferred;
}

const users = { users: [{ name: 'ada', admin: true }, { name: 'bob' }], ports: { http: 80, https: 443 }, tls: true };

describe('a template', () => {
  test('repeats text for a list, and removes lines that contain only control words', () => {
    const content = 'users:\n${{ for u in param.users }}\n  - ${{ u.name }}\n  ${{ end }}  \nend\n';
    expect(rendered(content, { parameters: users })).toBe('users:\n  - ada\n  - bob\nend\n');
  });

  test('repeats text for keys and values, for keys only, and for positions', () => {
    const map = '${{ for name, port in param.ports }}${{ name }}=${{ port }};${{ end }}';
    expect(rendered(map, { parameters: users })).toBe('http=80;https=443;');
    const keys = '${{ for name in param.ports }}${{ name }};${{ end }}';
    expect(rendered(keys, { parameters: users })).toBe('http;https;');
    const positions = '${{ for i, u in param.users }}${{ i }}${{ u.name }};${{ end }}';
    expect(rendered(positions, { parameters: users })).toBe('0ada;1bob;');
  });

  test('chooses the first branch whose condition is true', () => {
    const content = (n: number) => `\${{ if ${n} == 1 }}one\${{ elif ${n} == 2 }}two\${{ else }}many\${{ end }}`;
    expect([1, 2, 3].map((n) => rendered(content(n)))).toEqual(['one', 'two', 'many']);
    expect(rendered('a\n${{ if has(tag.x) }}\nb\n${{ end }}\nc\n')).toBe('a\nc\n');
  });

  test('nests loops and conditions in text with CRLF line breaks', () => {
    const content =
      '${{ for u in param.users }}\r\n${{ if has(u.admin) && u.admin }}\r\n${{ u.name }}\r\n${{ end }}\r\n${{ end }}\r\n';
    expect(rendered(content, { parameters: users })).toBe('ada\r\n');
  });

  test('includes other templates, in which loop variables are available', () => {
    const templates = { head: '# ${{ agent.name }}\n', line: 'user ${{ u.name }}\n' };
    const content = '${{ include "head" }}\n${{ for u in param.users }}\n  ${{ include "line" }}\n${{ end }}\n';
    expect(rendered(content, { parameters: users, templates })).toBe('# web-1\nuser ada\nuser bob\n');
  });

  test('keeps the line break of a line that contains more than control words', () => {
    expect(rendered('a ${{ if true }}b${{ end }} c\n')).toBe('a b c\n');
    expect(rendered('$${{ if x }}\n')).toBe('${{ if x }}\n');
  });

  test('defers secrets in loops, and refuses them in conditions', () => {
    const content = '${{ for u in param.users }}${{ u.name }}=${{ secrets.pw }};${{ end }}';
    expect(rendered(content, { parameters: users })).toMatchObject([
      { parts: [{ text: 'ada=' }, { secret: 'pw' }, { text: ';bob=' }, { secret: 'pw' }, { text: ';' }] },
    ]);
    const condition = '${{ if secrets.pw == "x" }}a${{ end }}';
    expect(rendered(condition)).toContain('a secret cannot be the argument of a function or an operator');
  });

  test.each([
    ['an if without end', '${{ if true }}', '"if" is not closed: write ${{ end }} after its text'],
    ['an end without a block', 'a ${{ end }}', '"end" has no for or if before it'],
    ['an else without an if', '${{ else }}', '"else" has no if before it'],
    [
      'an else in a loop',
      '${{ for x in [1] }}${{ else }}${{ end }}',
      '"else" has no matching if: write ${{ end }} of the inner block before it',
    ],
    [
      'an else after else',
      '${{ if true }}${{ else }}${{ else }}${{ end }}',
      '"else" follows else: an if can have only one else, and it must come last',
    ],
    [
      'a loop without a list',
      '${{ for x }}a${{ end }}',
      'write ${{ for x in param.list }}, or ${{ for key, value in param.map }}',
    ],
    [
      'a loop over a reserved name',
      '${{ for param in [1] }}a${{ end }}',
      '"param" has another meaning in expressions: choose another name',
    ],
    ['a loop over a number', '${{ for x in 3 }}a${{ end }}', 'the expression yields int, which is not allowed here'],
    [
      'a condition that is a number',
      '${{ if 3 }}a${{ end }}',
      'the condition yields int, not true or false: use a comparison, such as param.x == "y"',
    ],
    ['an if without a condition', '${{ if }}a${{ end }}', 'write a condition: ${{ if param.x }}'],
    ['an include of an unknown template', '${{ include "x" }}', 'there is no template "x"'],
    ['an include without quotes', '${{ include x }}', 'write ${{ include "id" }} with the id of a template'],
    [
      'a variable outside of its loop',
      '${{ for x in [1] }}${{ end }}${{ x }}',
      'unknown name "x": use one of agent, attr, tag, param, each, index, lookup, secrets; write $${{ for a plain ${{',
    ],
    [
      'a condition after else',
      '${{ if true }}${{ else if false }}${{ end }}',
      'after "else" write "}}"; for another condition write elif',
    ],
  ])('refuses %s', (_what, content, message) => {
    expect(rendered(content)).toBe(`/resources/0/resource/file-unix/content ${message}`);
  });

  test('reports no unknown names in a text whose control words have errors', () => {
    const text =
      '${{ for x, y in {"a": 1} }}${{ if x | default("b") == y }}${{ x }}${{ include "t" }}${{ end }}${{ end }}';
    const faultsOf = (content: string, options: Options) => {
      const parsed = parseModule(sourceOf(content, options));
      return parsed.ok ? [] : parsed.faults.map(({ path, message }) => `${path} ${message}`);
    };
    const message = 'a pipe ends the expression: write (x | default("b")) before "=="';
    expect(faultsOf(text, { templates: { t: '${{ x }}' } })).toEqual([
      `/resources/0/resource/file-unix/content ${message}`,
    ]);
    const resource = { resource: { 'file-unix': { path: '/x', template: 't' } } };
    const alone = text.replace('${{ include "t" }}', '');
    expect(faultsOf('', { templates: { t: alone }, resource })).toEqual([`/templates/0/content ${message}`]);
  });

  test('warns where a loop variable with the name of a type is used', () => {
    const warningsIn = (content: string) => parseModule(sourceOf(content)).warnings.map(({ message }) => message);
    expect(warningsIn('${{ for map in [1] }}a${{ end }}')).toEqual([]);
    expect(warningsIn('${{ for map in [{"a": 1}] }}${{ map.a }}${{ end }}')).toEqual([
      '"map" is a type in expressions, not the variable of the loop: choose another name for the variable',
    ]);
  });

  test('refuses control words in other fields', () => {
    const resource = { name: '${{ if true }}a${{ end }}' };
    expect(rendered('a', { resource })).toBe('/resources/0/name "if" is possible only in content and templates');
  });

  test('adds a missing line break to the end of an included template if the control word ends a line', () => {
    const templates = { a: 'one', b: 'two\n', none: '', secret: 'key=${{ secrets.a }}' };
    const included = (content: string) => rendered(content, { templates });
    expect(included('${{ include "a" }}\nlast')).toBe('one\nlast');
    expect(included('${{ include "b" }}\nlast')).toBe('two\nlast');
    expect(included('${{ include "none" }}\nlast')).toBe('last');
    expect(included('x ${{ include "a" }}\nlast')).toBe('x one\nlast');
    expect(included('${{ include "a" }}${{ include "b" }}')).toBe('onetwo\n');
    expect(included('${{ if true }}${{ include "a" }}${{ end }}\nlast')).toBe('one\nlast');
    expect(included('${{ include "secret" }}\nlast')).toEqual([
      { path: ['content'], parts: [{ text: 'key=' }, { secret: 'a', default: null }, { text: '\nlast' }] },
    ]);
  });

  test('refuses templates that include each other, and a template with an undefined variable', () => {
    expect(rendered('${{ include "a" }}', { templates: { a: '${{ include "b" }}', b: 'x ${{ include "a" }}' } })).toBe(
      '/templates/1/content templates include each other: "a" -> "b" -> "a"',
    );
    const templates = { a: '${{ for x in [1] }}${{ include "b" }}${{ end }}', b: '${{ x }}' };
    expect(rendered('${{ include "a" }}', { templates })).toBe('1');
    expect(rendered('${{ include "b" }}', { templates })).toBe(
      '/resources/0/resource/file-unix/content the template uses "x", which no loop defines here',
    );
  });

  test('uses the `each` of the resource to which the template belongs', () => {
    const templates = { t: '${{ for x in each }}${{ x }}${{ end }}' };
    const resource = { for_each: [[1, 2]], resource: { 'file-unix': { path: '/x${{ index }}', template: 't' } } };
    expect(rendered('', { templates, resource })).toBe('12');
    const alone = { resource: { 'file-unix': { path: '/x', template: 't' } } };
    expect(rendered('', { templates, resource: alone })).toBe(
      '/resources/0/resource/file-unix/template the template uses "each", which exists only in a resource with for_each',
    );
  });

  test('stops loops that multiply work or text', () => {
    const list = `[${Array.from({ length: 400 }, () => '1').join(',')}]`;
    const nest = (depth: number, inner: string): string =>
      depth === 0 ? inner : `\${{ for x${depth} in ${list} }}${nest(depth - 1, inner)}\${{ end }}`;
    expect(rendered(nest(4, ''))).toContain('do more work than is allowed');
    expect(rendered(nest(2, 'x'.repeat(1000)))).toContain('the text has more than 4 MiB');
    const deep = (levels: number) => '${{ if true }}'.repeat(levels) + '${{ end }}'.repeat(levels);
    expect(rendered(deep(16))).toBe('');
    expect(rendered(deep(17))).toContain('nested at most 16 deep');
  });

  test('warns about the braces of other template languages, except in scripts', () => {
    const warningsOf = (resource: unknown) => {
      const parsed = parseModule(sourceOf('', { resource: { resource } }));
      return parsed.ok ? parsed.warnings.map(({ path, message }) => `${path} ${message}`) : parsed;
    };
    expect(warningsOf({ 'file-unix': { path: '/x', content: 'a {{ user }}\n{% if x %}' } })).toEqual([
      '/resources/0/resource/file-unix/content "{{" has no meaning here: to insert a value, write ${{ … }}',
    ]);
    expect(warningsOf({ script: { program: 'sh', apply: 'docker ps --format "{{ .ID }}"', check: 'true' } })).toEqual(
      [],
    );
    expect(warningsOf({ 'file-unix': { path: '/x', content: '${{ agent.name }} $${{ x }}' } })).toEqual([]);
  });

  test('accepts or refuses any text with control words without throwing', () => {
    const word = fc.constantFrom(
      '${{ for x in [1, 2] }}',
      '${{ for k, v in {"a": 1} }}',
      '${{ if x == 1 }}',
      '${{ if true }}',
      '${{ elif false }}',
      '${{ else }}',
      '${{ end }}',
      '${{ x }}',
      '${{ include "t" }}',
      '\n',
      ' ',
      'text',
      '\r\n',
      '$${{ end }}',
      '${{',
      '}}',
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        const result = rendered(words.join(''), { templates: { t: 'T' } });
        expect(typeof result).toBe('string');
      }),
      { numRuns: 500 },
    );
  });
});
