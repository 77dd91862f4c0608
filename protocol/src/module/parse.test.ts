import { describe, expect, test } from 'vitest';
import { parseModule } from './parse.ts';

/** Returns each error's `line:column path` and message. */
function faultsOf(source: string | Uint8Array): string[] {
  const parsed = parseModule(source);
  if (parsed.ok) return [];
  return parsed.faults.map(({ line, column, path, message }) => `${line}:${column} ${path} ${message}`);
}

function warningsOf(source: string): string[] {
  return parseModule(source).warnings.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** Returns a module with resources in flow style, one per line, starting at line 4. */
const withResources = (...resources: string[]): string =>
  `name: m\nsupports: [{ platform: linux }]\nresources:\n${resources.map((resource) => `  - ${resource}\n`).join('')}`;

const motd = 'resource: { file-unix: { path: /etc/motd } }';

describe('parseModule accepts', () => {
  test('parses a module that has only a name', () => {
    const parsed = parseModule('name: m');
    expect(parsed).toEqual({
      ok: true,
      module: {
        name: 'm',
        supports: [],
        requires: [],
        templates: [],
        parameters: {},
        require: [],
        lookups: {},
        resources: [],
        verify: [],
      },
      warnings: [
        { path: '', line: 1, column: 1, message: 'the module has no supports clause, so it matches no agent' },
      ],
    });
  });

  test('parses bytes with a byte order mark and Windows line endings', () => {
    const parsed = parseModule(new TextEncoder().encode('\uFEFFname: m\r\nsupports: [{ platform: linux }]\r\n'));
    expect(parsed).toMatchObject({ ok: true, module: { name: 'm' }, warnings: [] });
  });

  test('parses null for every optional field', () => {
    const source = `
name: m
supports: null
templates: ~
parameters: null
verify: null
resources:
  - { id: null, name: null, depends_on: null, when: null, for_each: null, variants: null,
      resource: { sysctl: null, file-unix: { path: /etc/motd, content: null, template: null, owner: null, mode: ~, ensure: null } } }
  - { resource: null, variants: [{ when: null, resource: { service-systemd: { name: x, reload_on: null, environment: null } } }] }
`;
    const parsed = parseModule(source);
    expect(faultsOf(source)).toEqual([]);
    expect(parsed.ok && parsed.module.resources.map(({ variants }) => variants[0]?.resource?.body)).toEqual([
      { path: '/etc/motd' },
      { name: 'x' },
    ]);
  });

  test('accepts keys with the prefix x- at every level', () => {
    const source = `
name: m
x-note: { any: [thing, 1] }
supports: [{ platform: linux, x-a: 1 }]
templates: [{ id: t, content: c, x-a: 1 }]
parameters: { p: { type: string, x-a: 1 } }
resources:
  - { id: a, x-a: 1, resource: { x-a: 1, file-unix: { path: /a, template: t, x-a: { b: c } } } }
  - { id: b, variants: [{ x-a: 1, when: { x-a: 1 }, resource: { file-unix: { path: /b } } }] }
verify: [{ x-a: 1, tcp: { port: 22, x-a: 1 } }]
`;
    expect(faultsOf(source)).toEqual([]);
    const parsed = parseModule(source);
    expect(JSON.stringify(parsed)).not.toContain('x-a');
  });

  test('counts columns after a byte order mark', () => {
    expect(faultsOf('\uFEFFname: a/b\n')).toEqual(['1:7 /name must not contain "/"']);
  });

  test('accepts anchors within the limits', () => {
    const source = withResources(
      '{ id: a, resource: { user-unix: { name: a, additional_groups: &groups [audio, video] } } }',
      '{ id: b, resource: { user-unix: { name: b, additional_groups: *groups } } }',
    );
    const parsed = parseModule(source);
    expect(parsed.ok && parsed.module.resources[1]?.variants[0]?.resource?.body).toEqual({
      name: 'b',
      additional_groups: ['audio', 'video'],
    });
  });
});

describe('parseModule reports the path, line, and column of', () => {
  const cases: [string, string, string[]][] = [
    [
      'neither resource nor variants',
      withResources('{ id: a }'),
      ['4:5 /resources/0 needs either resource or variants'],
    ],
    [
      'both resource and variants',
      withResources(`{ id: a, ${motd}, variants: [{ ${motd} }] }`),
      ['4:60 /resources/0/variants only one can be given: resource or variants'],
    ],
    ['no kind', withResources('{ resource: {} }'), ['4:17 /resources/0/resource needs a kind, such as file-unix']],
    [
      'two kinds',
      withResources('{ resource: { hostname: { name: a }, timezone: { name: UTC } } }'),
      ['4:42 /resources/0/resource/timezone only one can be given: hostname or timezone'],
    ],
    [
      'two kinds in a variant',
      withResources('{ variants: [{ resource: { hostname: { name: a }, timezone: { name: UTC } } }] }'),
      ['4:55 /resources/0/variants/0/resource/timezone only one can be given: hostname or timezone'],
    ],
    [
      'an unknown kind',
      withResources('{ resource: { file-linux: { path: /a } } }'),
      ['4:19 /resources/0/resource/file-linux unknown kind "file-linux": did you mean "file-unix"?'],
    ],
    [
      'an unknown field of a kind',
      withResources('{ resource: { file-unix: { path: /a, contents: b } } }'),
      ['4:42 /resources/0/resource/file-unix/contents unknown field "contents": did you mean "content"?'],
    ],
    [
      'an unknown field of a module, also when null',
      'name: m\nresource: null\n',
      ['2:1 /resource unknown field "resource": did you mean "resources"?'],
    ],
    [
      'an unknown field of a resource',
      withResources(`{ id: a, dependson: [], ${motd} }`),
      ['4:14 /resources/0/dependson unknown field "dependson": did you mean "depends_on"?'],
    ],
    [
      'an unknown field of a template',
      'name: m\ntemplates:\n  - { id: a, content: b, contents: c }\n',
      ['3:26 /templates/0/contents unknown field "contents": did you mean "content"?'],
    ],
    [
      'an unknown key of a clause',
      'name: m\nsupports:\n  - { platform: linux, distribution: debian }\n',
      ['3:24 /supports/0/distribution unknown key "distribution": did you mean "distro"?'],
    ],
    [
      'a value of a clause that no agent has',
      'name: m\nsupports:\n  - platform: ubuntu\n    arch: amd64\n    init_system: upstart\n    version: 12\n',
      [
        '3:15 /supports/0/platform must be one of linux, windows, macos',
        '4:11 /supports/0/arch must be one of x86_64, aarch64, armv7',
        '5:18 /supports/0/init_system must be one of systemd, openrc, init.d, launchd, scm',
        '6:14 /supports/0/version must be text: write it in quotes, "12"',
      ],
    ],
    [
      'a duplicate id',
      withResources(
        '{ id: a, resource: { hostname: { name: a } } }',
        '{ id: a, resource: { timezone: { name: UTC } } }',
      ),
      ['5:11 /resources/1/id the id "a" is used twice: resource 1 has it too'],
    ],
    [
      'a duplicate template id',
      `name: m\ntemplates:\n  - { id: t, content: a }\n  - { id: t, content: b }\nresources:\n  - { resource: { file-unix: { path: /a, template: t } } }\n`,
      ['4:11 /templates/1/id the template id "t" is used twice: rename one of them, or give each a `when`'],
    ],
    [
      'an unknown id in depends_on',
      withResources(`{ id: motd, ${motd} }`, '{ depends_on: [mott], resource: { hostname: { name: a } } }'),
      ['5:20 /resources/1/depends_on/0 there is no resource with the id "mott": did you mean "motd"?'],
    ],
    [
      'unknown ids in reload_on and restart_on',
      withResources('{ resource: { service-systemd: { name: a, reload_on: [b], restart_on: [c] } } }'),
      [
        '4:59 /resources/0/resource/service-systemd/reload_on/0 there is no resource with the id "b"',
        '4:76 /resources/0/resource/service-systemd/restart_on/0 there is no resource with the id "c"',
      ],
    ],
    [
      'an unknown id in rerun_on',
      withResources('{ id: a, resource: { script: { program: sh, apply: "true", rerun_on: [b] } } }'),
      ['4:75 /resources/0/resource/script/rerun_on/0 there is no resource with the id "b": did you mean "a"?'],
    ],
    [
      'one id in both reload_on and restart_on',
      withResources(
        `{ id: a, ${motd} }`,
        '{ resource: { service-systemd: { name: a, reload_on: [a], restart_on: [a] } } }',
      ),
      [
        '5:76 /resources/1/resource/service-systemd/restart_on/0 "a" is also in reload_on: remove it there, because a restart includes a reload',
      ],
    ],
    [
      'an unknown template',
      withResources('{ resource: { file-unix: { path: /a, template: motd } } }'),
      ['4:52 /resources/0/resource/file-unix/template there is no template "motd"'],
    ],
    [
      'content with template',
      `name: m\ntemplates: [{ id: t, content: c }]\nresources:\n  - { resource: { file-unix: { path: /a, content: b, template: t } } }\n`,
      ['4:54 /resources/0/resource/file-unix/template cannot be combined with content; keep only one'],
    ],
    [
      'a cycle, named',
      withResources(
        '{ id: a, depends_on: [c], resource: { sysctl: { key: a, value: "1" } } }',
        '{ id: b, depends_on: [a], resource: { sysctl: { key: b, value: "1" } } }',
        '{ id: c, resource: { service-systemd: { name: c, restart_on: [b] } } }',
      ),
      ['4:5 /resources/0 dependency cycle: a -> c -> b -> a; remove one of these dependencies'],
    ],
    [
      'a resource that waits for itself',
      withResources('{ id: a, depends_on: [a], resource: { hostname: { name: a } } }'),
      ['4:5 /resources/0 dependency cycle: a -> a; remove one of these dependencies'],
    ],
    [
      'a mode that is not a string',
      withResources('{ resource: { file-unix: { path: /a, mode: 0644 } } }'),
      ['4:48 /resources/0/resource/file-unix/mode must be text: write it in quotes, "0644"'],
    ],
    ...['"644x"', '"00644"', '"64"', '"0o644"', '"0888"', 'u=rw', '""'].map((mode): [string, string, string[]] => [
      `the mode ${mode}`,
      withResources(`{ resource: { directory-unix: { path: /a, mode: ${mode} } } }`),
      [
        '4:53 /resources/0/resource/directory-unix/mode must be 3 or 4 octal digits in quotes, such as "0644", or set each class once, such as u=rw,go=r',
      ],
    ]),
    ...['etc/motd', './a', '""', '~/a', 'C:\\a'].map((path): [string, string, string[]] => [
      `the unix path ${path}`,
      withResources(`{ resource: { file-unix: { path: ${path} } } }`),
      ['4:38 /resources/0/resource/file-unix/path must be an absolute path, starting with "/"'],
    ]),
    ...['/etc/motd', 'a\\b', 'C:a', '\\\\host\\share'].map((path): [string, string, string[]] => [
      `the windows path ${path}`,
      withResources(`{ resource: { directory-windows: { path: '${path}' } } }`),
      [
        '4:46 /resources/0/resource/directory-windows/path must be an absolute path with a drive letter, such as C:\\ProgramData\\x',
      ],
    ]),
    [
      'paths that are not in canonical form',
      withResources(
        '{ resource: { file-unix: { path: /a/../b } } }',
        '{ resource: { file-unix: { path: /a/./b } } }',
        '{ resource: { file-unix: { path: /a//b } } }',
        '{ resource: { file-unix: { path: /a/ } } }',
        '{ resource: { file-unix: { path: "/a\\0b" } } }',
        '{ resource: { file-unix: { path: / } } }',
        "{ resource: { file-windows: { path: 'C:\\a\\..\\b' } } }",
      ),
      [
        '4:38 /resources/0/resource/file-unix/path must not contain "..": write the resulting path',
        '5:38 /resources/1/resource/file-unix/path must not contain ".": write the resulting path',
        '6:38 /resources/2/resource/file-unix/path must not contain "//" or end with "/"',
        '7:38 /resources/3/resource/file-unix/path must not contain "//" or end with "/"',
        '8:38 /resources/4/resource/file-unix/path must not contain a NUL character',
        '9:38 /resources/5/resource/file-unix/path must be a file, not "/"',
        '10:41 /resources/6/resource/file-windows/path must not contain "..": write the resulting path',
      ],
    ],
    [
      'two resources with one identity that differ',
      withResources(
        `{ ${motd} }`,
        '{ resource: { file-unix: { path: /etc/motd, content: a } } }',
        '{ resource: { file-unix: { path: /etc/motd, ensure: absent } } }',
      ),
      [
        '6:19 /resources/2/resource/file-unix file-unix "/etc/motd" is declared twice: resource 1 declares it too, both can apply to one agent, and the values of `ensure` differ; keep one of them, make them agree, or make them variants of one resource',
      ],
    ],
    [
      'a file and a directory at one path',
      withResources('{ resource: { file-unix: { path: /a } } }', '{ resource: { directory-unix: { path: /a/ } } }'),
      [
        '5:19 /resources/1/resource/directory-unix directory-unix "/a/" is declared twice: resource 1 declares it too, both can apply to one agent, and one is a file-unix and the other a directory-unix; keep one of them, make them agree, or make them variants of one resource',
      ],
    ],
    [
      'a part of a file that is declared as a whole, in any order',
      withResources(
        '{ resource: { line-unix: { path: /a, line: x } } }',
        '{ resource: { file-unix: { path: /a, content: y } } }',
        '{ resource: { block-unix: { path: /a, marker: m } } }',
        '{ resource: { file-unix: { path: /b, ensure: absent } } }',
        '{ resource: { line-unix: { path: /b, line: x } } }',
        '{ resource: { file-unix: { path: /c, mode: "0600" } } }',
        '{ resource: { line-unix: { path: /c, line: x } } }',
        '{ when: { distro: a }, resource: { file-unix: { path: "/d/${{ agent.name }}", symlink: y } } }',
        '{ when: { distro: b }, resource: { line-unix: { path: "/d/${{ agent.name }}", line: x } } }',
        '{ when: { arch: armv7 }, resource: { line-unix: { path: "/d/${{ agent.name }}", line: z } } }',
      ),
      [
        '4:19 /resources/0/resource/line-unix line-unix "/a" is a part of a file, and resource 2 declares the whole file, so each resource would undo the other at every apply: move the part into the content, or declare no content',
        '6:19 /resources/2/resource/block-unix block-unix "/a" is a part of a file, and resource 2 declares the whole file, so each resource would undo the other at every apply: move the part into the content, or declare no content',
        '8:19 /resources/4/resource/line-unix line-unix "/b" is a part of a file, and resource 4 declares that file absent: keep one of them',
        '13:42 /resources/9/resource/line-unix line-unix "/d/${{ agent.name }}" is a part of a file, and resource 8 declares the whole file, so each resource would undo the other at every apply: move the part into the content, or declare no content',
      ],
    ],
    [
      'two host names',
      withResources('{ resource: { hostname: { name: a } } }', '{ resource: { hostname: { name: b } } }'),
      [
        '5:19 /resources/1/resource/hostname hostname is declared twice: resource 1 declares it too, both can apply to one agent, and the values of `name` differ; keep one of them, make them agree, or make them variants of one resource',
      ],
    ],
    [
      'variants that are certain to tie: the same when',
      withResources(
        `{ variants: [{ when: { distro: a, arch: armv7 }, ${motd} }, { when: { arch: armv7, distro: a }, ${motd} }] }`,
      ),
      ['4:102 /resources/0/variants/1 ties with variant 1: both match arch=armv7 distro=a'],
    ],
    [
      'variants that are certain to tie for a clause',
      `name: m\nsupports: [{ platform: linux, distro: debian }]\nresources:\n  - variants:\n      - { when: { platform: linux }, ${motd} }\n      - { when: { distro: debian }, ${motd} }\n`,
      [
        '6:9 /resources/0/variants/1 ties with variant 1 for all agents of supports clause 1 (platform=linux distro=debian): add a key to one of them',
      ],
    ],
    [
      'variants that cannot match a clause',
      `name: m\nsupports: [{ platform: linux }, { platform: macos }]\nresources:\n  - variants:\n      - { when: { platform: linux }, ${motd} }\n`,
      [
        '4:5 /resources/0/variants no variant can match agents of supports clause 2 (platform=macos): add one, or narrow the clause',
      ],
    ],
    [
      'a script without manages and id',
      withResources('{ resource: { script: { program: sh, apply: "true" } } }'),
      ['4:19 /resources/0/resource/script a script needs an identity: add `manages`, or an id to its resource'],
    ],
    [
      'a script of an unknown program',
      withResources('{ id: a, resource: { script: { program: zsh, apply: "true" } } }'),
      [
        '4:45 /resources/0/resource/script/program must be sh, bash, pwsh, powershell, cmd, or an absolute path such as /usr/bin/python3',
      ],
    ],
    [
      'a required field that is missing or null',
      withResources('{ id: a, resource: { script: { program: sh, apply: null } } }', '{ resource: { user-unix: {} } }'),
      [
        '4:56 /resources/0/resource/script/apply "apply" is required',
        '5:30 /resources/1/resource/user-unix/name "name" is required',
      ],
    ],
    [
      'expressions that cannot resolve for any agent',
      withResources(
        '{ resource: { file-unix: { path: /a, content: "x ${{ atr.a }} y ${{ attr.a }} ${{ param.p }}" } } }',
        '{ resource: { file-unix: { path: /b, content: "${{ each }} ${{ agent.id }} ${{ secrets. }}" } } }',
        '{ resource: { file-unix: { path: "/c/${{ secrets.a }}", content: "${{ attr.a | upper }} ${{ attr.b" } } }',
      ),
      [
        '4:54 /resources/0/resource/file-unix/content unknown name "atr": did you mean "attr"?; write $${{ for a plain ${{',
        '4:83 /resources/0/resource/file-unix/content there is no parameter "p": declare it under parameters',
        '5:52 /resources/1/resource/file-unix/content "each" exists only in a resource with for_each',
        '5:64 /resources/1/resource/file-unix/content "agent.id" is not of the form agent.name or agent.node_id',
        '5:80 /resources/1/resource/file-unix/content "secrets." is not of the form secrets.<name>',
        '6:42 /resources/2/resource/file-unix/path a secret is not allowed here, because the value is shown, or checked before secrets are known: use a parameter',
        '6:71 /resources/2/resource/file-unix/content unknown function "upper": write x.upperAscii()',
        '6:93 /resources/2/resource/file-unix/content the expression is not closed with "}}"; write $${{ for a plain ${{',
      ],
    ],
    [
      'an expression in the middle of a block of text',
      'name: m\nresources:\n  - resource:\n      file-unix:\n        path: /a\n        content: |\n          first\n          a ${{ foo }}\n',
      [
        '8:13 /resources/0/resource/file-unix/content unknown name "foo": use one of agent, attr, tag, param, each, index, lookup, secrets; write $${{ for a plain ${{',
      ],
    ],
    [
      'an expression in a field that does not allow one',
      'name: m\nsupports: [{ distro: "${{ param.a }}" }]\n',
      ['2:22 /supports/0/distro cannot contain an expression'],
    ],
    [
      'values of the wrong type',
      withResources(
        '{ id: 5, resource: { user-unix: { name: a, uid: "5", system: "yes", additional_groups: [a, 7] } } }',
        '{ resource: { service-systemd: { name: a, environment: { A: 1, "b-c": d }, type: fast } } }',
        '{ depends_on: a, resource: { user-unix: { name: [a], uid: -1 } } }',
      ),
      [
        '4:11 /resources/0/id must be text: write it in quotes, "5"',
        '4:53 /resources/0/resource/user-unix/uid must be a whole number from 0 to 4294967294, not in quotes',
        '4:66 /resources/0/resource/user-unix/system must be true or false, not in quotes',
        '4:96 /resources/0/resource/user-unix/additional_groups/1 must be text: write it in quotes, "7"',
        '5:65 /resources/1/resource/service-systemd/environment/A must be text: write it in quotes, "1"',
        '5:68 /resources/1/resource/service-systemd/environment/b-c must be the name of an environment variable: letters, digits and "_", not starting with a digit',
        '5:86 /resources/1/resource/service-systemd/type must be one of simple, exec, forking, oneshot, notify, dbus, idle',
        '6:19 /resources/2/depends_on must be a list of ids',
        '6:53 /resources/2/resource/user-unix/name must be text, not a list: write one value, without brackets or a dash',
        '6:63 /resources/2/resource/user-unix/uid must be a whole number from 0 to 4294967294',
      ],
    ],
    ['no name', 'supports: []\n', ['1:1 /name "name" is required']],
    ['a name with a slash', 'name: a/b\n', ['1:7 /name must not contain "/"']],
    ['an empty name', 'name: ""\n', ['1:7 /name must not be empty']],
    ['a long name', `name: ${'a'.repeat(129)}\n`, ['1:7 /name is longer than 128 characters']],
    ['a name with a control character', 'name: "a\\tb"\n', ['1:7 /name must not contain control characters']],
    [
      'parameters with a wrong default, type, or name',
      'name: m\nparameters:\n  a: { type: integer, default: "80" }\n  b: { type: text }\n  1c: { type: string }\n',
      [
        '3:32 /parameters/a/default must be a whole number, to match its type',
        '4:14 /parameters/b/type must be one of string, integer, number, boolean, list, map',
        '5:3 /parameters/1c is not a valid name for a parameter: use letters, digits, "_", and "-", and do not begin with a digit',
      ],
    ],
    [
      'for_each over a value that is not a list',
      `name: m\nparameters: { p: { type: string } }\nresources:\n  - { id: a, for_each: "\${{ param.p }}", resource: { user-unix: { name: "\${{ each }}" } } }\n  - { id: b, for_each: "a", resource: { user-unix: { name: "\${{ each }}" } } }\n  - { id: c, for_each: "\${{ tag.x }}", resource: { user-unix: { name: "\${{ each }}" } } }\n`,
      [
        '4:25 /resources/0/for_each the parameter "p" is a string, which is not allowed here',
        '5:24 /resources/1/for_each must be one expression, such as "${{ param.users }}"',
        '6:25 /resources/2/for_each tag.x is text: a list comes from a parameter of type list',
      ],
    ],
    [
      'join of a value that is not a list, or in a field that is not text',
      `name: m\nparameters: { p: { type: string }, l: { type: list } }\nresources:\n  - { id: a, resource: { file-unix: { path: /a, content: "\${{ param.p | join(',') }}\${{ tag.x | join(',') }}" } } }\n  - { id: b, for_each: "\${{ param.l | join(',') }}", resource: { user-unix: { name: "\${{ each }}" } } }\n  - { id: c, resource: { file-unix: { path: /c, content: "\${{ param.l }}\${{ secrets.s | join(',') }}" } } }\n`,
      [
        '4:59 /resources/0/resource/file-unix/content the parameter "p" is a string: only a list can be joined',
        '4:85 /resources/0/resource/file-unix/content tag.x is text: only a list can be joined',
        '5:25 /resources/1/for_each join yields text, which is not allowed here',
        '6:59 /resources/2/resource/file-unix/content the parameter "l" is a list, which is not allowed here without | join("…")',
        '6:73 /resources/2/resource/file-unix/content secrets.s is text: only a list can be joined',
      ],
    ],
    [
      'a verification of an unknown kind',
      'name: m\nverify:\n  - {}\n  - { tcp: { port: 22 }, command: a }\n  - { tcp: { port: 0 } }\n  - { http: { url: ftp://a } }\n',
      [
        '3:5 /verify/0 needs one of http, tcp, or command',
        '4:26 /verify/1/command only one can be given: tcp or command',
        '5:20 /verify/2/tcp/port must be a whole number from 1 to 65535',
        '6:20 /verify/3/http/url must be an address that starts with http:// or https://',
      ],
    ],
  ];

  test.each(cases)('refuses %s', (_, source, faults) => {
    expect(faultsOf(source)).toEqual(faults);
  });

  test('reports all errors in order of position', () => {
    const found = faultsOf(`name: a/b
supprts: []
resources:
  - { id: a, resource: { file-unix: { path: a, mode: 644 } } }
  - { id: a, depends_on: [b], resource: { fle-unix: {} } }
`);
    expect(found.map((fault) => fault.split(' ').slice(0, 2).join(' '))).toEqual([
      '1:7 /name',
      '2:1 /supprts',
      '4:45 /resources/0/resource/file-unix/path',
      '4:54 /resources/0/resource/file-unix/mode',
      '5:11 /resources/1/id',
      '5:27 /resources/1/depends_on/0',
      '5:43 /resources/1/resource/fle-unix',
    ]);
  });

  test('reports at most 500 errors', () => {
    const found = faultsOf(`name: m\n${Array.from({ length: 600 }, (_, index) => `k${index}: 1\n`).join('')}`);
    expect(found).toHaveLength(501);
    expect(found.at(-1)).toContain('and 100 more errors after this one');
  });
});

describe('certain and possible conflicts', () => {
  test('accepts an identity that is declared twice if no agent gets both declarations', () => {
    const exclusive = [
      withResources(`{ when: { distro: debian }, ${motd} }`, `{ when: { distro: fedora }, ${motd} }`),
      withResources(`{ variants: [{ when: { arch: armv7 }, ${motd} }, { when: { arch: x86_64 }, ${motd} }] }`),
      // The first file never applies to an agent to which the second file applies, because the other variant has more
      // keys there.
      withResources(
        `{ variants: [{ when: { platform: linux }, ${motd} }, { when: { platform: linux, distro: debian }, resource: { hostname: { name: a } } }] }`,
        `{ when: { distro: debian }, ${motd} }`,
      ),
      // The first file does not apply to any agent that matches the clause.
      withResources(`{ when: { platform: windows }, ${motd} }`, `{ ${motd} }`),
    ];
    for (const source of exclusive) expect(faultsOf(source)).toEqual([]);
  });

  test('refuses an identity that is declared twice if some agent gets both declarations', () => {
    const other = 'resource: { file-unix: { path: /etc/motd, ensure: absent } }';
    const overlapping = [
      withResources(`{ when: { distro: debian }, ${motd} }`, `{ when: { tag.role: web }, ${other} }`),
      withResources(`{ variants: [{ when: { arch: armv7 }, ${motd} }] }`, `{ when: { platform: linux }, ${other} }`),
      withResources(
        '{ resource: { file-unix: { path: "/srv/${{ tag.a }}" } } }',
        '{ resource: { directory-unix: { path: "/srv/${{ tag.a }}" } } }',
      ),
      withResources(
        "{ resource: { file-windows: { path: 'C:\\a\\B', content: a } } }",
        "{ resource: { file-windows: { path: 'c:/A/b', content: b } } }",
      ),
    ];
    for (const source of overlapping) expect(faultsOf(source)).toHaveLength(1);
  });

  test('reports no tie if a variant with more keys may match', () => {
    const narrower = `name: m
supports: [{ platform: linux, distro: debian }]
resources:
  - variants:
      - { when: { platform: linux }, ${motd} }
      - { when: { distro: debian }, ${motd} }
      - { when: { platform: linux, tag.role: web }, ${motd} }
`;
    expect(faultsOf(narrower)).toEqual([]);
  });

  test('warns about a cycle through variants that may never apply together', () => {
    const source = withResources(
      '{ id: a, variants: [{ when: { distro: debian }, resource: { service-systemd: { name: a, restart_on: [b] } } }, { resource: { hostname: { name: a } } }] }',
      '{ id: b, variants: [{ when: { distro: fedora }, resource: { service-systemd: { name: b, restart_on: [a] } } }, { resource: { timezone: { name: UTC } } }] }',
    );
    expect(faultsOf(source)).toEqual([]);
    expect(warningsOf(source)).toEqual([
      '4:5 dependency cycle: a -> b -> a, if all of them apply to one agent; remove one of these dependencies',
    ]);
  });

  test('warns about a file without content, which would be created empty', () => {
    const empty = [
      '4:30 declares no content, so a missing file is created empty: to skip a missing file, add `only_if: { exists }` next to `resource`',
    ];
    expect(warningsOf(withResources('{ resource: { file-unix: { path: /a } } }'))).toEqual(empty);
    expect(warningsOf(withResources('{ resource: { file-unix: { path: /a, mode: "0600", content: null } } }'))).toEqual(
      empty,
    );
    for (const body of ['content: ""', 'content_base64: ""', 'symlink: b', 'ensure: absent'])
      expect(warningsOf(withResources(`{ resource: { file-unix: { path: /a, ${body} } } }`)), body).toEqual([]);
  });

  test('accepts `only_if` with a valid path, and refuses malformed conditions', () => {
    const resource = 'resource: { hostname: { name: a } }';
    const faults = (onlyIf: string) => faultsOf(withResources(`{ only_if: ${onlyIf}, ${resource} }`));
    for (const path of ['/', '/etc/nginx', '/etc/nginx/', '"${{ param.path }}/x"'])
      expect(
        faultsOf(
          `${withResources(`{ only_if: { exists: ${path} }, ${resource} }`)}parameters: { path: { type: string, default: /a } }\n`,
        ),
      ).toEqual([]);
    expect(faults('{ exists: etc }')).toEqual([
      '4:26 /resources/0/only_if/exists must be an absolute path, starting with "/"',
    ]);
    expect(faults('{ exists: "/a\\0" }')).toEqual([expect.stringContaining('must not contain a NUL character')]);
    expect(faults(`{ exists: /${'a'.repeat(4095)} }`)).toEqual([
      expect.stringContaining('is longer than 4095 characters'),
    ]);
    expect(faults('{ exists: /a/../b }')).toEqual([expect.stringContaining('must not contain ".."')]);
    expect(faults('{}')).toEqual([expect.stringContaining('needs exists, command, or not')]);
    expect(faults('/a')).toEqual([expect.stringContaining('must be a mapping of exists, command, or not, or a list')]);
    expect(faults('{ exist: /a }')).toContainEqual(expect.stringContaining('exists'));
    expect(faults('{ exists: "/${{ secrets.a }}" }')).toEqual([expect.stringContaining('secret')]);
    expect(faults('{ exists: "/${{ each }}" }')).toEqual([expect.stringContaining('"each"')]);
  });

  test('accepts commands, negations, and lists in `only_if`, and reports malformed conditions at their positions', () => {
    const faults = (onlyIf: string, more = '') =>
      faultsOf(`${withResources(`{ only_if: ${onlyIf}, resource: { hostname: { name: a } } }`)}${more}`);
    for (const onlyIf of [
      '{ command: "command -v nginx" }',
      '{ not: { exists: /a } }',
      '[{ exists: /a }, { command: "true" }]',
      '{ not: [{ not: [{ not: { exists: /a } }] }, { command: "true" }] }',
      `[${Array(16).fill('{ exists: /a }').join(', ')}]`,
    ])
      expect(faults(onlyIf), onlyIf).toEqual([]);
    const at = (place: string) => `/resources/0/only_if${place}`;
    const cases: [string, string][] = [
      ['{ command: "" }', `${at('/command')} must not be empty`],
      [
        '{ command: [nginx] }',
        `${at('/command')} must be text, not a list: write one value, without brackets or a dash`,
      ],
      [`{ command: "${'x'.repeat(4097)}" }`, `${at('/command')} is longer than 4096 characters`],
      ['{ command: "true ${{ secrets.a }}" }', `${at('/command')} a secret is not allowed here`],
      ['{ exists: /a, command: "true" }', `${at('')} has exists and command: write a list with a mapping for each`],
      ['{ not: { exists: etc } }', `${at('/not/exists')} must be an absolute path`],
      ['[{ exists: /a }, { not: { command: "" } }]', `${at('/1/not/command')} must not be empty`],
      ['[]', `${at('')} must have 1 to 16 conditions`],
      [`[${Array(17).fill('{ exists: /a }').join(', ')}]`, `${at('')} must have 1 to 16 conditions`],
      [
        `[${Array(4)
          .fill(`{ not: [${Array(5).fill('{ exists: /a }').join(', ')}] }`)
          .join(', ')}]`,
        `${at('')} must have at most 16 paths and commands`,
      ],
      ['[[{ exists: /a }]]', `${at('/0')} is a list in a list: write its conditions in the outer list`],
      [
        '{ not: { not: { not: { not: { exists: /a } } } } }',
        `${at('/not/not/not/not')} must not be nested more than 3`,
      ],
      ['{ not: "/a" }', `${at('/not')} must be a mapping of exists, command, or not, or a list`],
      ['{ missing: /a }', `${at('/missing')} unknown field "missing"`],
    ];
    for (const [onlyIf, fault] of cases) expect(faults(onlyIf).join('\n'), onlyIf).toContain(fault);
  });

  test('warns about unused templates, missing clauses, and expressions in defaults', () => {
    expect(warningsOf('name: m\ntemplates:\n  - { id: t, content: a }\n')).toEqual([
      '1:1 the module has no supports clause, so it matches no agent',
      '3:5 no resource uses the template "t"',
    ]);
    expect(
      warningsOf('name: m\nsupports: [{}]\nparameters: { p: { type: string, default: "${{ agent.name }}" } }\n'),
    ).toEqual(['3:43 expressions in a default are not evaluated']);
  });
});

describe('parseModule refuses YAML with', () => {
  const cases: [string, string, string[]][] = [
    ['nothing', '', ['1:1  the module is empty: it needs at least a name']],
    ['only comments', '# a\n\n', ['1:1  the module is empty: it needs at least a name']],
    ['a list', '- a\n', ['1:1  must be a mapping with at least a name']],
    ['a duplicate key', 'name: a\nname: b\n', ['2:1 /name the key "name" is set twice: keep one']],
    [
      'a duplicate key deep inside',
      withResources('{ resource: { file-unix: { path: /a, path: /b } } }'),
      ['4:42 /resources/0/resource/file-unix/path the key "path" is set twice: keep one'],
    ],
    ['a custom tag', 'name: !secret a\n', ['1:15 /name the tag "!secret" is not allowed: remove it']],
    [
      'a tag of another schema',
      'name: !!binary AAE=\n',
      ['1:16 /name the tag "tag:yaml.org,2002:binary" is not allowed: remove it'],
    ],
    [
      'a merge key',
      'x-a: &a { name: b }\n<<: *a\nname: c\n',
      ['2:1  merge keys (<<) are not part of YAML 1.2: repeat the fields'],
    ],
    [
      'a tab for indentation',
      'name: m\nresources:\n\t- id: a\n',
      ['3:1  YAML does not allow tabs for indentation: use spaces'],
    ],
    ['two documents', 'name: a\n---\nname: b\n', ['2:1  more than one document: upload each module separately']],
    ['YAML 1.1', '%YAML 1.1\n---\nname: yes\n', ['1:1  only YAML 1.2 is supported: remove the %YAML directive']],
    [
      'an unclosed bracket',
      'name: [a\n',
      [
        '2:1  not YAML: Flow sequence in block collection must be sufficiently indented and end with a ]; check the indentation',
      ],
    ],
    ['an unknown alias', 'name: *a\n', ['1:7 /name there is no anchor &a before this alias']],
    ['an alias in its own anchor', 'name: m\nx-a: &a [*a]\n', ['2:10 /x-a/0 the alias *a is inside its own anchor']],
    ['the key __proto__', 'name: m\nx-a: { __proto__: { a: b } }\n', ['2:8 /x-a "__proto__" cannot be a key']],
    ['a key that is a number', 'name: m\n1: a\n', ['2:1  a key must be text: write it in quotes']],
    ['two texts without a comma', 'name: ["a""b"]\n', [expect.stringMatching(/^1:\d+ {2}not YAML: Missing , /)]],
    ['a key that is a mapping', 'name: m\n? { a: b }\n: c\n', ['2:3  a key must be text: write it in quotes']],
    ['infinity', 'name: m\nx-a: .inf\n', ['2:6 /x-a a number must be finite']],
    ['a control character', 'name: a\nx-a: \u0007\n', ['2:6  the control character U+0007 is not allowed in YAML']],
    ['a lone surrogate', 'name: "\ud800"\n', ['1:1  the module is not Unicode text: it contains a lone surrogate']],
  ];

  test.each(cases)('refuses YAML with %s', (_, source, faults) => {
    expect(faultsOf(source)).toEqual(faults);
  });

  test('reports the position of bytes that are not UTF-8', () => {
    const bytes = new TextEncoder().encode('name: m\nx-ä: a?b\n');
    bytes[bytes.indexOf(0x3f)] = 0xff;
    expect(faultsOf(bytes)).toEqual(['2:7  the module is not UTF-8: save it in that encoding']);
    expect(faultsOf(Uint8Array.of(0x6e, 0xc3))).toEqual(['1:2  the module is not UTF-8: save it in that encoding']);
  });

  test('refuses an alias bomb without expanding it', () => {
    const names = [...'abcdefghijklmnopqrstuvwxyz'];
    const steps = names.slice(1).map((name, index) => `x-${name}: &${name} [${`*${names[index]},`.repeat(9)}]`);
    const bomb = `name: m\nx-a: &a [1,1,1,1,1,1,1,1,1]\n${steps.join('\n')}\n`;
    expect(faultsOf(bomb)).toEqual([
      '1:1  more than 10000 values: split the module (an alias counts each time it is used)',
    ]);
  });

  test('refuses aliases that expand to too much text', () => {
    const source = `name: m\nx-a: &a "${'y'.repeat(1_000_000)}"\nx-b: [${'*a,'.repeat(100)}]\n`;
    expect(faultsOf(source)).toEqual(['1:1  too much text with expanded aliases: use fewer aliases']);
  });

  test('accepts a module with 10,000 values, and refuses more', () => {
    const list = (values: number) => `name: m\nx-a:\n${'- a\n'.repeat(values)}`;
    // The mapping, the name, and the list also count as values.
    expect(faultsOf(list(9_997))).toEqual([]);
    expect(faultsOf(list(9_998))).toHaveLength(1);
    expect(faultsOf(list(300_000))).toEqual(['10001:1  more than 10000 values: split the module']);
  });

  test('accepts a module with 32 levels, and refuses more', () => {
    const nested = (levels: number) => `name: m\nx-a: ${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}\n`;
    expect(faultsOf(nested(32))).toEqual([]);
    expect(faultsOf(nested(33))).toEqual([expect.stringContaining('nested deeper than 32 levels')]);
    expect(faultsOf(nested(100_000))).toEqual([expect.stringContaining('nested deeper than 32 levels')]);
    const byAlias = `name: m\nx-a: &a ${'['.repeat(20)}${']'.repeat(20)}\nx-b: ${'['.repeat(12)}*a${']'.repeat(12)}\n`;
    expect(faultsOf(byAlias)).toEqual([expect.stringContaining('nested deeper than 32 levels')]);
  });

  test('accepts a module of 2 MiB, and refuses more', () => {
    const limit = 2 * 1024 * 1024;
    const prefix = 'name: m\nx-a: ';
    expect(faultsOf(prefix + 'y'.repeat(limit - prefix.length))).toEqual([]);
    expect(faultsOf(prefix + 'y'.repeat(limit - prefix.length + 1))).toEqual(['1:1  the module is larger than 2 MiB']);
    expect(faultsOf(prefix + 'ä'.repeat(limit / 2))).toEqual(['1:1  the module is larger than 2 MiB']);
  });
});
