import { describe, expect, test } from 'vitest';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

const agent = { name: 'web-1', node_id: 'a', attributes: { platform: 'linux' }, tags: {} };

const moduleOf = (resources: string, parameters = ''): string =>
  `name: m\nsupports: [{ platform: linux }]\n${parameters}resources:\n${resources}`;

/** Returns the IDs and bodies of the resources, or the errors. */
function resolved(source: string, given: Record<string, never> = {}, attributes: Record<string, string> = {}) {
  const parsed = parseModule(source);
  if (!parsed.ok) return parsed.faults.map(({ path, message }) => `${path} ${message}`);
  const resolution = resolveDesiredSet({
    modules: [parsed.module],
    agent: { ...agent, attributes: { ...agent.attributes, ...attributes } },
    parameters: { m: given },
  });
  if (!resolution.ok) return resolution.faults.map(({ path, message }) => `${path} ${message}`);
  return resolution.resources.map(({ id, body }) => [id, body]);
}

const warningsOf = (source: string): string[] =>
  parseModule(source).warnings.map(({ path, message }) => `${path} ${message}`);

const file = (loop: string, path: string, content: string): string =>
  `  - { id: f, ${loop}, resource: { file-unix: { path: '${path}', content: '${content}' } } }\n`;

describe('for_each', () => {
  test('repeats a resource in place for each element of a list', () => {
    expect(resolved(moduleOf(file('for_each: [a, 2]', '/x/${{ each }}', '${{ index }}')))).toEqual([
      ['f[0]', { path: '/x/a', content: '0' }],
      ['f[1]', { path: '/x/2', content: '1' }],
    ]);
  });

  test('warns about an expression in a key of a literal map, which stays text', () => {
    const loop = (elements: string) => moduleOf(file(`for_each: ${elements}`, '/x/${{ index }}', '${{ each.key }}'));
    const written = loop('{ "${{ agent.name }}": 1 }');
    expect(warningsOf(written)).toEqual([
      '/resources/0/for_each expressions are not evaluated in keys: write a list of mappings, with the key as a value',
    ]);
    expect(resolved(written)).toEqual([['f[0]', { path: '/x/0', content: '${{ agent.name }}' }]]);
    const escaped = loop('{ "$${{ a }}": 1 }');
    expect(warningsOf(escaped)).toEqual([]);
    expect(resolved(escaped)).toEqual([['f[0]', { path: '/x/0', content: '$${{ a }}' }]]);
  });

  test('warns about a type with the same name as the variable of an enclosing loop, and resolves it as a type', () => {
    const written = moduleOf(
      file('for_each: { list: "[[1], 2]" }, where: "type(each.list) != list"', '/x/${{ index }}', '${{ each.list }}'),
    );
    expect(warningsOf(written)).toEqual([expect.stringContaining('"list" is a type in expressions')]);
    expect(resolved(written)).toEqual([['f[1]', { path: '/x/1', content: '2' }]]);
  });

  test('resolves a name as a type in a template outside the loop that defines the name', () => {
    const source = (loop: string) =>
      `name: m\nsupports: [{ platform: linux }]\ntemplates: [{ id: t, content: '\${{ type([1]) == list }}' }]\nresources:\n` +
      `  - { id: t, ${loop} resource: { file-unix: { path: /t, template: t } } }\n` +
      file('for_each: { list: "[1]" }', '/x/${{ index }}', '${{ each.list }}');
    expect(warningsOf(source(''))).toEqual([]);
    expect(resolved(source(''))).toEqual([
      ['t', { path: '/t', content: 'true' }],
      ['f[0]', { path: '/x/0', content: '1' }],
    ]);
    expect(warningsOf(source('for_each: { list: "[1]" },'))).toEqual([
      expect.stringContaining('/templates/0/content "list" is a type in expressions'),
    ]);
  });

  test('repeats a resource for each key and value of a map', () => {
    const parameters = 'parameters: { m: { type: map, default: { a: 1, b c: 2 } } }\n';
    const source = moduleOf(file('for_each: "${{ param.m }}"', '/x/${{ each.value }}', '${{ each.key }}'), parameters);
    expect(resolved(source)).toEqual([
      ['f[a]', { path: '/x/1', content: 'a' }],
      ['f[1]', { path: '/x/2', content: 'b c' }],
    ]);
  });

  const users = `parameters:
  users:
    type: list
    default:
      - { name: ada, keys: [k1, k2], uid: 7 }
      - { name: bob, keys: [], uid: 8 }
      - { name: cy, keys: [k3] }
`;

  test('nests loops in order, with outer variables available in inner loops', () => {
    const loop = 'for_each: { user: "param.users", key: "user.keys" }';
    expect(
      resolved(moduleOf(file(loop, '/${{ user.name }}/${{ key }}', '${{ index }} ${{ each.user.name }}'), users)),
    ).toEqual([
      ['f[0,0]', { path: '/ada/k1', content: '0 ada' }],
      ['f[0,1]', { path: '/ada/k2', content: '1 ada' }],
      ['f[2,0]', { path: '/cy/k3', content: '2 cy' }],
    ]);
  });

  test('leaves out a field if the element lacks the key', () => {
    const resources = `  - id: u
    for_each: "\${{ param.users }}"
    resource: { user-unix: { name: "\${{ each.name }}", uid: "\${{ each.uid | omit }}" } }
`;
    expect(resolved(moduleOf(resources, users))).toEqual([
      ['u[0]', { name: 'ada', uid: 7 }],
      ['u[1]', { name: 'bob', uid: 8 }],
      ['u[2]', { name: 'cy' }],
    ]);
  });

  test('leaves out elements that `where` excludes, and keeps the positions of the other elements', () => {
    const loop = 'for_each: "${{ param.users }}", where: "has(each.uid) && each.uid > 7"';
    expect(resolved(moduleOf(file(loop, '/${{ each.name }}', '${{ index }}'), users))).toEqual([
      ['f[1]', { path: '/bob', content: '1' }],
    ]);
    const nested = 'for_each: { user: "param.users", key: "user.keys" }, where: "key != \'k1\'"';
    expect(resolved(moduleOf(file(nested, '/${{ key }}', 'x'), users))).toHaveLength(2);
  });

  test.each([
    [
      'a name that is a variable',
      'for_each: { each: "param.users" }',
      '/${{ each }}',
      '/resources/0/for_each/each "each" has another meaning in expressions: choose another name',
    ],
    [
      'an unknown name',
      'for_each: { u: "param.users" }',
      '/${{ user.name }}',
      '/resources/0/resource/file-unix/path unknown name "user": use one of agent, attr, tag, param, each, index, lookup, secrets, u; write $${{ for a plain ${{',
    ],
    [
      'an inner variable in an outer loop',
      'for_each: { u: "k", k: "param.users" }',
      '/${{ k }}',
      '/resources/0/for_each/u unknown name "k": use one of agent, attr, tag, param, each, index, lookup, secrets; write $${{ for a plain ${{',
    ],
    [
      'an unknown parameter',
      'for_each: { u: "param.user" }',
      '/${{ u }}',
      '/resources/0/for_each/u there is no parameter "user": did you mean "users"?',
    ],
    [
      'a condition without a loop',
      'where: "true"',
      '/x',
      '/resources/0/where filters the elements of for_each: add it',
    ],
    [
      'a condition that is no condition',
      'for_each: [1], where: "size(param.users)"',
      '/${{ each }}',
      '/resources/0/where the condition yields int, not true or false: use a comparison, such as param.x == "y"',
    ],
    [
      'a text without an expression',
      'for_each: users',
      '/${{ each }}',
      '/resources/0/for_each must be one expression, such as "${{ param.users }}"',
    ],
    [
      'a number',
      'for_each: 3',
      '/${{ each }}',
      '/resources/0/for_each must be a single expression, such as "${{ param.users }}", a list, a map, or nested loops',
    ],
    [
      'a map of texts and other values',
      'for_each: { a: param.l, b: 1 }',
      '/${{ each }}',
      '/resources/0/for_each/b is not text, but other values are: write all values as expressions in quotes for nested loops, or each text as { value: "…" } for a map',
    ],
    [
      'a value that is no list',
      'for_each: "${{ agent.name + \\"\\" }}"',
      '/${{ each }}',
      '/resources/0/for_each the expression yields string, which is not allowed here',
    ],
  ])('refuses %s', (_what, loop, path, message) => {
    expect(resolved(moduleOf(file(loop, path, 'x'), users))).toContain(message);
  });

  test('names the missing key of an element', () => {
    expect(resolved(moduleOf(file('for_each: "${{ param.users }}"', '/${{ each.uid }}', 'x'), users))).toEqual([
      '/modules/m/resources/0/resource/file-unix/path module "m": resource "f[2]" ({"name":"cy","keys":["k3"]}): each.uid has no value: fix the list, or give the expression | default("…"), or | omit to leave the field out',
    ]);
  });

  test('limits the elements of nested loops before expanding them', () => {
    const parameters = `parameters: { l: { type: list, default: [${'1,'.repeat(200)}] } }\n`;
    const loop = 'for_each: { a: "param.l", b: "param.l", c: "param.l", d: "param.l" }';
    expect(resolved(moduleOf(file(loop, '/${{ a }}${{ b }}', 'x'), parameters))).toEqual([
      '/modules/m/resources/0/for_each/b module "m": resource "f": for_each has more than 20000 elements: shorten its lists',
    ]);
  });

  test('treats prototype property names as ordinary keys and names', () => {
    const parameters = 'parameters: { m: { type: map, default: { constructor: 1, toString: 2 } } }\n';
    expect(
      resolved(moduleOf(file('for_each: { constructor: "param.m" }', '/${{ constructor.key }}', 'x'), parameters)),
    ).toEqual([
      ['f[constructor]', { path: '/constructor', content: 'x' }],
      ['f[toString]', { path: '/toString', content: 'x' }],
    ]);
    expect(resolved(moduleOf(file('for_each: [1]', '/${{ toString.x }}', 'x')))[0]).toContain(
      'unknown name "toString"',
    );
  });

  test('reports an element that JSON cannot represent, and leaves out omitted elements', () => {
    const loop = (list: string) => `for_each: { v: "${list}", w: "[1]" }`;
    const faults = resolved(
      moduleOf(file(loop('[int(attr.cpus)]'), '/${{ v }}', 'x')),
      {},
      { cpus: '9007199254740993' },
    );
    expect(faults).toEqual([expect.stringContaining('/modules/m/resources/0/for_each')]);
    expect(resolved(moduleOf(file(loop('[attr.x | omit, 1]'), '/${{ v }}', 'x')))).toHaveLength(1);
  });
});
