import { moduleJsonSchema } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { outlineOf } from './outline.ts';
import { type Known, proposalsAt } from './proposals.ts';
import type { JsonSchema } from './schema.ts';

const known: Known = { schema: moduleJsonSchema() as JsonSchema, secrets: ['db_password', 'token'], tags: ['role'] };

const at = (written: string) => {
  const offset = written.indexOf('¦');
  return proposalsAt(written.replace('¦', ''), offset, known)?.options ?? [];
};
const labels = (written: string) => at(written).map(({ label }) => label);
/** Returns the document after accepting this proposal. */
const taken = (written: string, label: string) => {
  const offset = written.indexOf('¦');
  const text = written.replace('¦', '');
  const found = proposalsAt(text, offset, known);
  const option = found?.options.find((one) => one.label === label);
  return option && text.slice(0, found?.from) + option.apply + text.slice(offset);
};

describe('keys', () => {
  test('proposes the missing keys at the top level', () =>
    expect(labels('name: x\n¦')).toEqual([
      'supports',
      'requires',
      'templates',
      'parameters',
      'lookups',
      'packages',
      'resources',
      'verify',
    ]));
  test("proposes a resource's keys", () =>
    expect(labels('resources:\n  - id: a\n    ¦')).toEqual([
      'name',
      'depends_on',
      'notify',
      'when',
      'only_if',
      'for_each',
      'where',
      'resource',
      'variants',
    ]));
  test('proposes the keys of only_if', () => {
    expect(labels('resources:\n  - only_if: { ¦')).toEqual(['exists', 'command', 'not']);
    expect(labels('resources:\n  - only_if:\n      - not: { ¦')).toEqual(['exists', 'command', 'not']);
  });
  test('proposes the resource kinds', () =>
    expect(labels('resources:\n  - resource:\n      ¦')).toEqual(
      expect.arrayContaining(['file-unix', 'script', 'timezone']),
    ));
  test('proposes no second kind for a resource', () =>
    expect(labels('resources:\n  - resource:\n      script: {}\n      ¦')).toEqual([]));
  test("proposes a kind's fields with type and description", () => {
    const fields = at('resources:\n  - resource:\n      file-unix:\n        path: /x\n        ¦');
    expect(fields.map(({ label }) => label)).not.toContain('path');
    expect(fields.find(({ label }) => label === 'mode')).toMatchObject({
      detail: 'text',
      info: expect.stringMatching(/octal/),
    });
    expect(fields.find(({ label }) => label === 'ensure')).toMatchObject({ detail: 'present | absent' });
  });
  test('proposes the keys of a variant in flow style', () =>
    expect(labels('resources:\n  - variants:\n      - { when: { ¦')).toEqual([
      'platform',
      'distro',
      'version',
      'arch',
      'init_system',
      'family',
      'major',
      'codename',
      'systemd_version',
      'virtualization',
      'container',
      'selinux',
      'efi',
    ]));
  test('proposes the keys of a parameter named like a property of Object', () =>
    expect(labels('parameters:\n  constructor:\n    ¦')).toEqual(
      expect.arrayContaining(['type', 'default', 'description', 'variants', 'minimum', 'items']),
    ));
  test('inserts a dash before the first key of a list item', () =>
    expect(taken('resources:\n  ¦', 'id')).toBe('resources:\n  - id: '));
  test('proposes nothing below a key that the schema lacks', () => {
    expect(labels('nonsense:\n  ¦')).toEqual([]);
    expect(labels('x-own:\n  ¦')).toEqual([]);
  });
});

describe('accepting a key', () => {
  test.each([
    ['na¦', 'name', 'name: '],
    ['reso¦', 'resources', 'resources:\n  - '],
    ['resources:\n  - res¦', 'resource', 'resources:\n  - resource:\n      '],
    [
      'resources:\n  - resource:\n      fi¦',
      'file-unix',
      'resources:\n  - resource:\n      file-unix:\n        path: ',
    ],
    ['resources:\n  - resource: { fi¦', 'file-unix', 'resources:\n  - resource: { file-unix: { path: '],
    ['resources:\n  - dep¦', 'depends_on', 'resources:\n  - depends_on:\n      - '],
    ['resources: [{ dep¦ }]', 'depends_on', 'resources: [{ depends_on: [ }]'],
    // A colon already follows the typed key.
    ['na¦: x', 'name', 'name: x'],
  ])('completes %j with %j', (written, label, becomes) => expect(taken(written, label)).toBe(becomes));
});

describe('values', () => {
  test.each([
    ['supports:\n  - platform: ¦', ['linux', 'windows', 'macos']],
    ['resources:\n  - resource:\n      service-systemd:\n        enabled: ¦', ['true', 'false']],
    ['resources:\n  - resource: { script: { program: ¦', ['sh', 'bash', 'pwsh', 'powershell', 'cmd']],
    ['resources:\n  - id: a\n  - id: b\n    depends_on:\n      - ¦', ['a', 'b']],
    ['resources:\n  - id: a\n    resource: { service-systemd: { reload_on: [¦', ['id', 'immediately', 'a']],
    [
      'templates:\n  - { id: motd, content: x }\nresources:\n  - resource:\n      file-unix:\n        template: ¦',
      ['motd'],
    ],
    [
      'parameters: { users: { type: list }, n: { type: integer } }\nresources:\n  - for_each: ¦',
      ['"${{ param.users }}"'],
    ],
    ['resources:\n  - resource:\n      file-unix:\n        owner: ¦', []],
  ])('proposes the values of %j', (written, values) => expect(labels(written)).toEqual(values));
});

describe('expressions', () => {
  const head = 'parameters: { port: { type: integer, description: where it listens } }\n';
  test('proposes all names to which an expression can refer', () => {
    const options = at(`${head}templates:\n  - id: t\n    content: |\n      port \${{ ¦`);
    expect(options.map(({ label }) => label)).toEqual(
      expect.arrayContaining([
        'param.port',
        'secrets.db_password',
        'secrets.token',
        'agent.name',
        'attr.distro',
        'tag.role',
      ]),
    );
    expect(options[0]).toMatchObject({ label: 'param.port', detail: 'integer', info: 'where it listens' });
  });
  test('closes an open expression', () => {
    expect(taken(`${head}x: "\${{ par¦"`, 'param.port')).toBe(`${head}x: "\${{ param.port }}"`);
    expect(taken(`${head}x: "\${{ par¦ }}"`, 'param.port')).toBe(`${head}x: "\${{ param.port }}"`);
  });
  test('proposes nothing in an escaped expression', () => expect(labels('x: "$${{ ¦"')).toEqual([]));
});

describe('outline', () => {
  test('reads ids, templates, and parameters with their defaults', () =>
    expect(
      outlineOf(
        'name: web\nparameters:\n  port: { type: integer, default: 80, description: d }\n  users: { type: list, default: [a, b] }\n  none: { type: string }\nresources:\n  - id: a\n  - { id: b\n',
      ),
    ).toMatchObject({
      name: 'web',
      ids: ['a', 'b'],
      parameters: [
        { name: 'port', type: 'integer', default: 80, description: 'd' },
        { name: 'users', type: 'list', default: ['a', 'b'], description: null },
        { name: 'none', type: 'string', default: undefined },
      ],
    }));
  test('does not expand aliases', () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 30 }, (_, n) => `k${n}: &k${n} [${`*${n === 0 ? 'a' : `k${n - 1}`},`.repeat(9)}x]`).join('\n')}\nparameters: { p: { type: list, default: *k29 } }\n`;
    expect(outlineOf(bomb).parameters).toMatchObject([{ name: 'p', default: undefined }]);
    expect(outlineOf('['.repeat(100_000))).toMatchObject({ name: null });
  });
});
