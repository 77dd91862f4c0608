import { moduleJsonSchema } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { outlineOf } from './outline.ts';
import { proposalsAt } from './proposals.ts';
import type { JsonSchema } from './schema.ts';
import { hoverAt, type Known } from './vocabulary.ts';

const known: Known = { schema: moduleJsonSchema() as JsonSchema, secrets: ['db_password', 'token'], tags: ['role'] };

const at = (written: string) => {
  const offset = written.indexOf('¦');
  return proposalsAt(written.replace('¦', ''), offset, known)?.options ?? [];
};
const labels = (written: string) => at(written).map(({ label }) => label);
/** Returns the document after a proposal is accepted. */
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
      'require',
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
  test('proposes the keys of `only_if`', () => {
    expect(labels('resources:\n  - only_if: { ¦')).toEqual(['exists', 'command', 'not']);
    expect(labels('resources:\n  - only_if:\n      - not: { ¦')).toEqual(['exists', 'command', 'not']);
  });
  test('proposes the keys and the merge strategies of `require`', () => {
    expect(labels('require:\n  - ¦')).toEqual(['that', 'message']);
    expect(labels('parameters:\n  a:\n    merge: ¦')).toEqual(['replace', 'deep', 'append', 'unique']);
  });
  test('proposes the resource kinds', () =>
    expect(labels('resources:\n  - resource:\n      ¦')).toEqual(
      expect.arrayContaining(['file-unix', 'script', 'timezone']),
    ));
  test('does not propose a second kind for a resource', () =>
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
      'tag.role',
    ]));
  test('proposes scalar parameters as keys of a condition that already has a tag', () =>
    expect(
      labels(
        'parameters: { port: { type: integer }, hosts: { type: list } }\nresources:\n  - when:\n      tag.role: web\n      ¦',
      ),
    ).toEqual(expect.arrayContaining(['platform', 'param.port'])));
  test('proposes the keys of a parameter that is named like an Object property', () =>
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
  test('adds the closing braces of an open expression', () => {
    expect(taken(`${head}x: "\${{ par¦"`, 'param.port')).toBe(`${head}x: "\${{ param.port }}"`);
    expect(taken(`${head}x: "\${{ par¦ }}"`, 'param.port')).toBe(`${head}x: "\${{ param.port }}"`);
  });
  test('proposes nothing in an escaped expression', () => expect(labels('x: "$${{ ¦"')).toEqual([]));

  const loops = `parameters:
  users: { type: list, items: { properties: { name: { type: string } } }, default: [{ uid: 7 }] }
  ports: { type: map, default: { http: 80 } }
lookups: { nodes: { selector: role=web, of: agent.name } }
resources:
  - for_each: "\${{ param.users }}"
    resource: { file-unix: { path: "/\${{ EACH" } }
  - for_each: { user: param.users, key: user.keys }
    where: "WHERE"
    resource: { file-unix: { path: /x, content: "\${{ NESTED" } }
  - when: "WHEN"
    resource: { file-unix: { path: /x, content: "\${{ PLAIN" } }
`;
  const inLoops = (place: string, typed = '¦') => labels(loops.replace(place, typed));

  test('proposes the variables of the loop, with the keys of its elements', () => {
    expect(inLoops('EACH')).toEqual(expect.arrayContaining(['each', 'each.name', 'each.uid', 'index', 'lookup.nodes']));
    expect(inLoops('EACH')).not.toContain('user');
    expect(inLoops('NESTED')).toEqual(expect.arrayContaining(['user.name', 'key', 'param.ports.http']));
    for (const name of ['each', 'user', 'key']) expect(inLoops('PLAIN')).not.toContain(name);
  });

  test('proposes names and functions in conditions, without secrets', () => {
    expect(inLoops('WHERE')).toEqual(
      expect.arrayContaining(['user.name', 'param.users', 'size', 'startsWith'].slice(0, 3)),
    );
    const words = inLoops('WHEN', 'param.ports != {} && attr.¦');
    expect(words).toEqual(expect.arrayContaining(['attr.family', 'lookup.nodes', 'has']));
    for (const name of ['secrets.token', 'each']) expect(words).not.toContain(name);
    expect(taken(loops.replace('WHEN', 'si¦'), 'size')).toContain('when: "size("');
  });

  test('proposes functions after a pipe, and methods after a value', () => {
    expect(inLoops('PLAIN', 'param.users | ¦')).toEqual(expect.arrayContaining(['join', 'default', 'yaml']));
    expect(inLoops('PLAIN', 'param.users | ¦')).not.toContain('param.users');
    expect(taken(loops.replace('PLAIN', 'param.users | ¦'), 'yaml')).toContain('param.users | yaml"');
    expect(taken(loops.replace('PLAIN', 'param.users | ¦'), 'join')).toContain('param.users | join("');
    expect(inLoops('PLAIN', 'param.users.fi¦')).toContain('param.users.filter');
    expect(inLoops('PLAIN', 'param.ports.ht¦')).toEqual(
      expect.arrayContaining(['param.ports.http', 'param.ports.map']),
    );
    expect(inLoops('PLAIN', '("a" + "b").tr¦')).toContain('trim');
  });

  test('proposes nothing in a string inside an expression', () => {
    expect(inLoops('WHEN', "attr.family == 'de¦")).toEqual([]);
    expect(inLoops('WHEN', "attr.family == 'debian' && ¦")).toContain('attr.major');
  });

  test('proposes control words and the variables of open loops in a template', () => {
    const content = (typed: string) =>
      labels(loops.replace('path: /x, content: "${{ PLAIN" }', `path: /x, content: "${typed}`));
    expect(content('${{ ¦')).toEqual(expect.arrayContaining(['for', 'if', 'end', 'include']));
    expect(content('${{ for port in [1] }} ${{ ¦')).toContain('port');
    expect(content('${{ for port in [1] }} ${{ end }} ${{ ¦')).not.toContain('port');
    expect(inLoops('EACH')).not.toContain('for');
  });

  const described = (place: string, typed: string) => {
    const written = loops.replace(place, typed);
    return hoverAt(written.replace('¦', ''), written.indexOf('¦'), known)?.word;
  };
  test('describes the word below the pointer', () => {
    expect(described('PLAIN', 'param.us¦ers }}')).toMatchObject({ label: 'param.users', detail: 'list' });
    expect(described('EACH', 'each.¦name }}')).toMatchObject({ label: 'each.name' });
    expect(described('PLAIN', 'basen¦ame(attr.family) }}')).toMatchObject({
      detail: 'basename(path)',
      info: 'The last part of a path.',
    });
    expect(described('WHEN', 'param.users.exi¦sts(u, true)')).toMatchObject({ detail: 'list.exists(x, condition)' });
    expect(described('WHEN', "attr.fam¦ily == 'x'")).toMatchObject({ info: 'debian, redhat, suse, arch, or alpine' });
    expect(described('NESTED', 'secrets.tok¦en }}')).toMatchObject({ detail: 'secret' });
    expect(described('PLAIN', "'par¦am.users' }}")).toBeUndefined();
  });

  test('proposes names and functions in the conditions of `require`', () =>
    expect(labels('parameters: { port: { type: integer } }\nrequire:\n  - that: "param.port > 0 && ¦"')).toEqual(
      expect.arrayContaining(['param.port', 'attr.family', 'size']),
    ));

  test('describes the key below the pointer', () => {
    const of = (written: string) => hoverAt(written.replace('¦', ''), written.indexOf('¦'), known)?.word;
    const inResource = (typed: string) =>
      of(`resources:\n  - id: a\n    resource:\n      file-unix:\n        ${typed}`);
    expect(inResource('path: /x\n        mo¦de: "0644"')).toMatchObject({
      label: 'mode',
      detail: 'text',
      info: expect.stringMatching(/octal/),
    });
    expect(of('resources:\n  - resource: { file-un¦ix: { path: /x } }')).toMatchObject({
      label: 'file-unix',
      info: expect.stringMatching(/file/),
    });
    expect(of('resources:\n  - resource: { file-unix: { path: /x, ens¦ure: absent } }')).toMatchObject({
      detail: 'present | absent',
    });
    expect(of('{ "resources": [{ "depends¦_on": ["a"] }] }')).toMatchObject({ label: 'depends_on' });
    expect(of('supp¦orts: []')).toMatchObject({ label: 'supports' });
    for (const other of [
      'path: /mo¦de',
      'path: "mo¦de: x"',
      'nothing¦: x',
      '# mo¦de: x',
      'content: |\n          mo¦de: x',
    ])
      expect(inResource(other), other).toBeUndefined();
  });

  test('shows the value of a name on the chosen agent', () => {
    const agent = {
      ...{ name: 'web-1', node_id: 'a1', attributes: { family: 'debian', 'rack.row': '4' }, tags: { role: 'db' } },
      parameters: new Map<string, unknown>([['ports', { http: 8080 }]]),
    };
    const value = (place: string, typed: string, chosen: Known = { ...known, agent }) => {
      const written = loops.replace(place, typed);
      return hoverAt(written.replace('¦', ''), written.indexOf('¦'), chosen)?.value;
    };
    expect(value('WHEN', "attr.fam¦ily == 'x'")).toBe('"debian"');
    expect(value('WHEN', "attr.rack.r¦ow == 'x'")).toBe('"4"');
    expect(value('WHEN', "attr.code¦name == 'x'")).toBeNull();
    expect(value('PLAIN', 'tag.ro¦le }}')).toBe('"db"');
    expect(value('PLAIN', 'agent.na¦me }}')).toBe('"web-1"');
    expect(value('PLAIN', 'param.ports.ht¦tp }}')).toBe('8080');
    expect(value('PLAIN', 'param.us¦ers }}')).toMatch(/^\[/);
    expect(value('PLAIN', 'secrets.tok¦en }}')).toBeUndefined();
    expect(value('EACH', 'each.¦name }}')).toBeUndefined();
    expect(value('WHEN', "attr.fam¦ily == 'x'", known)).toBeUndefined();
  });
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
      lookups: [],
      loops: [[], []],
      parameters: [
        { name: 'port', type: 'integer', default: 80, description: 'd', keys: [] },
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
