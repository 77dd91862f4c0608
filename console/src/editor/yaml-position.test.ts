import { describe, expect, test } from 'vitest';
import { positionAt } from './yaml-position.ts';

/** Returns the position at the `¦` in the text. */
const at = (written: string) => {
  const offset = written.indexOf('¦');
  const position = positionAt(written.replace('¦', ''), offset);
  return (
    position && {
      path: position.path.join('/'),
      kind: position.kind,
      present: position.present,
      back: offset - position.from,
    }
  );
};

describe('by indentation', () => {
  test.each([
    ['an empty document', '¦', '', 'open', []],
    ['a key at the top', 'name: x\nre¦', '', 'open', ['name']],
    [
      'a key between others',
      'name: x\nre¦\nsupports: []\nresources:\n  - id: a\n',
      '',
      'open',
      ['name', 'supports', 'resources'],
    ],
    ['the value of a key', 'supports:\n  - platform: li¦', 'supports/0/platform', 'value', []],
    ['a value without text', 'supports:\n  - platform: ¦', 'supports/0/platform', 'value', []],
    ['a list without items', 'resources:\n  ¦', 'resources', 'open', []],
    ['a list item', 'resources:\n  - ¦', 'resources/0', 'open', []],
    ['a further key of a list item', 'resources:\n  - id: a\n    ¦', 'resources/0', 'open', ['id']],
    ['the second list item', 'resources:\n  - id: a\n    name: b\n  - ¦', 'resources/1', 'open', []],
    ['a list item at the column of its list', 'resources:\n- id: a\n- id: b\n  ¦', 'resources/1', 'open', ['id']],
    [
      'a mapping with a partly typed first key',
      'resources:\n  - resource:\n      file¦',
      'resources/0/resource',
      'open',
      [],
    ],
    [
      'a deeply nested key',
      'name: x\nresources:\n  - id: a\n    resource:\n      file-unix:\n        path: /x\n        mo¦',
      'resources/0/resource/file-unix',
      'open',
      ['path'],
    ],
    [
      'a key after a deeply nested mapping',
      'resources:\n  - resource:\n      file-unix:\n        path: /x\n    ¦',
      'resources/0',
      'open',
      ['resource'],
    ],
    ['a scalar list item', 'resources:\n  - depends_on:\n      - ¦', 'resources/0/depends_on/0', 'open', []],
    [
      'a nested list at the column of its key',
      'resources:\n  - depends_on:\n    - a\n    - ¦',
      'resources/0/depends_on/1',
      'open',
      [],
    ],
    [
      'a key after a block scalar',
      'templates:\n  - content: |\n      a: b\n        c\n    ¦',
      'templates/0',
      'open',
      ['content'],
    ],
    ['a block scalar', 'templates:\n  - content: |\n      a: ${{ ¦', 'templates/0/content', 'text', []],
    [
      'a value in quotes',
      'resources:\n  - resource:\n      file-unix:\n        mode: "06¦',
      'resources/0/resource/file-unix/mode',
      'value',
      [],
    ],
    ['a key in quotes', '"name": x\n¦', '', 'open', ['name']],
    ['comments and empty lines', '# one: two\n\nname: x # three: four\n¦', '', 'open', ['name']],
  ])('finds the path and keys at the cursor: %s', (_, written, path, kind, present) =>
    expect(at(written)).toMatchObject({ path, kind, present }),
  );

  test.each([
    ['a comment', 'name: x # re¦'],
    ['a colon without a space', 'name:¦'],
    ['below a value', 'name: x\n    ¦'],
    ['indentation without a parent', '  ¦'],
  ])('finds nothing to propose: %s', (_, written) => expect(at(written)).toBeNull());

  test('finds the start of the typed word', () => {
    expect(at('name: x\nresou¦')?.back).toBe(5);
    expect(at('supports:\n  - platform: li¦')?.back).toBe(2);
    expect(at('supports:\n  - plat¦')?.back).toBe(4);
  });
});

describe('in a flow', () => {
  test.each([
    ['an empty mapping', 'supports: [{ ¦', 'supports/0', 'open', [], 0],
    ['a key', 'supports: [{ plat¦', 'supports/0', 'open', [], 4],
    ['a value', 'supports: [{ platform: li¦', 'supports/0/platform', 'value', [], 2],
    ['a further key', 'supports: [{ platform: linux, ¦ }]', 'supports/0', 'open', ['platform'], 0],
    ['the next element', 'supports: [{ platform: linux }, { ¦', 'supports/1', 'open', [], 0],
    ['a list', 'resources:\n  - depends_on: [a, b¦', 'resources/0/depends_on/1', 'open', [], 1],
    [
      'a key in a nested mapping',
      'resources:\n  - id: a\n    resource: { file-unix: { path: "/x, {y", mo¦',
      'resources/0/resource/file-unix',
      'open',
      ['path'],
      2,
    ],
    ['a key on a later line', 'supports: [\n  { platform: linux },\n  { dis¦', 'supports/1', 'open', [], 3],
    [
      'in quotes',
      'resources: [{ resource: { file-unix: { mode: "06¦',
      'resources/0/resource/file-unix/mode',
      'value',
      [],
      2,
    ],
  ])('finds the path and keys in a flow collection: %s', (_, written, path, kind, present, back) =>
    expect(at(written)).toEqual({ path, kind, present, back }),
  );

  test('reads block style after the end of a flow collection', () =>
    expect(at('supports: [{ platform: linux }]\nna¦')).toMatchObject({ path: '', present: ['supports'] }));

  test('reads a block list item after a flow list item', () =>
    expect(at('resources:\n  - { id: a, resource: { x: {} } }\n  - { ¦')).toMatchObject({
      path: 'resources/1',
      kind: 'open',
    }));
});

test('reads arbitrary text in linear time', () => {
  const hostile = `${'['.repeat(20_000)}${'{ a: '.repeat(20_000)}`;
  expect(positionAt(hostile, hostile.length)?.kind).toBe('value');
  const deep = Array.from({ length: 3_000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n');
  expect(positionAt(`${deep} `, deep.length + 1)?.path).toHaveLength(3_000);
});
