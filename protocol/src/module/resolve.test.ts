import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentFacts } from './conditions.ts';
import { conflictsBetween } from './conflicts-between.ts';
import type { Json, ModuleDocument } from './document.ts';
import { escapeExpressions } from './expression/expression.ts';
import type { ResourceBodies } from './kinds.ts';
import { parseModule } from './parse.ts';
import { type Resolution, resolveDesiredSet } from './resolve.ts';
import type { ResolvedResource } from './resolved.ts';
import { fillSecrets, type UnfilledResource } from './secrets.ts';

const agent: AgentFacts = {
  name: 'web-1',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', init_system: 'systemd', cpus: '4' },
  tags: { role: 'web', 'team/name': 'blue' },
};

function moduleOf(source: string, name = 'm'): ModuleDocument {
  const parsed = parseModule(`name: ${name}\nsupports: [{ platform: linux }]\n${source}`);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ path, message }) => `${path} ${message}`).join('\n'));
  return parsed.module;
}

const resolve = (source: string, facts: Partial<AgentFacts> = {}, parameters: Record<string, Json> = {}): Resolution =>
  resolveDesiredSet({ modules: [moduleOf(source)], agent: { ...agent, ...facts }, parameters: { m: parameters } });

function resourcesOf(resolution: Resolution): UnfilledResource[] {
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  return resolution.resources;
}

const faultsOf = (resolution: Resolution): string[] =>
  resolution.ok ? [] : [resolution.code, ...resolution.faults.map(({ path, message }) => `${path} ${message}`)];

const fileContent = (resources: readonly ResolvedResource[]): string | undefined =>
  (resources[0] as ResolvedResource & { body: ResourceBodies['file-unix'] }).body.content;

/** Returns a module with one file with this content. */
const file = (content: string, more = ''): string =>
  `${more}\nresources:\n  - { id: f, resource: { file-unix: { path: /f, content: ${JSON.stringify(content)} } } }\n`;

const contentOf = (resolution: Resolution): Json | undefined => resourcesOf(resolution)[0]?.body.content;

describe('supports clauses', () => {
  const supporting = (clauses: string) => {
    const parsed = parseModule(`name: m\nsupports: ${clauses}\n`);
    if (!parsed.ok) throw new Error('faults');
    return faultsOf(resolveDesiredSet({ modules: [parsed.module], agent }));
  };

  test('applies a module to an agent that matches one clause', () => {
    expect(supporting('[{ platform: windows }, { platform: linux, distro: debian }]')).toEqual([]);
    expect(supporting('[{ tag.role: web, tag.team/name: blue }]')).toEqual([]);
    expect(supporting('[{}]')).toEqual([]);
  });

  test('does not apply a module to an agent that matches no clause', () => {
    expect(supporting('[{ platform: linux, distro: fedora }, { tag.zone: x }]')).toEqual([
      'module_unresolved',
      '/modules/m/supports module "m": the agent has platform=linux distro=debian tag.zone=(none) and matches no supports clause: platform=linux distro=fedora | tag.zone=x',
    ]);
    expect(supporting('[]')).toEqual([
      'module_unresolved',
      '/modules/m/supports module "m": the module has no supports clause, so it matches no agent: add one',
    ]);
  });
});

describe('variants', () => {
  const variants = (...whens: string[]) =>
    resolve(
      `resources:\n  - variants:\n${whens.map((when, index) => `      - { when: ${when}, resource: { sysctl: { key: k, value: "${index}" } } }\n`).join('')}`,
    );

  test('chooses the matching variant with the most keys', () => {
    const chosen = (...whens: string[]) => resourcesOf(variants(...whens))[0]?.body.value;
    expect(chosen('{}', '{ platform: linux }')).toBe('1');
    expect(chosen('{ platform: linux, distro: debian }', '{ platform: linux }')).toBe('0');
    expect(chosen('{ platform: linux }', '{ platform: linux, distro: fedora }')).toBe('0');
    expect(chosen('{ tag.role: web, arch: x86_64 }', '{ platform: linux }')).toBe('0');
  });

  test('fails the resolution if variants tie or no variant matches', () => {
    expect(faultsOf(variants('{ distro: debian }', '{ arch: x86_64 }'))).toEqual([
      'module_unresolved',
      '/modules/m/resources/0/variants module "m": these variants match the agent with the same number of keys: distro=debian | arch=x86_64; add a key to one of them',
    ]);
    expect(faultsOf(variants('{ distro: fedora }', '{ arch: armv7 }'))).toEqual([
      'module_unresolved',
      '/modules/m/resources/0/variants module "m": no variant matches the agent; the variants are distro=fedora | arch=armv7',
    ]);
  });
});

describe('when', () => {
  test('skips a resource that does not match, and ignores dependencies on it', () => {
    const resources = resourcesOf(
      resolve(`resources:
  - { id: a, when: { distro: fedora }, resource: { file-unix: { path: /a } } }
  - { id: b, depends_on: [a], resource: { service-systemd: { name: b, reload_on: [a] } } }
`),
    );
    expect(resources).toHaveLength(1);
    expect(resources[0]).toMatchObject({ key: 'service-systemd:b', depends_on: [], reload_on: [] });
  });
});

describe('resources', () => {
  test('returns resources in execution order, with keys instead of ids', () => {
    const resolution = resolve(`resources:
  - { id: svc, name: "on \${{ agent.name }}", depends_on: [dir], resource: { service-systemd: { name: s, restart_on: [conf], reload_on: [dir] } } }
  - { id: dir, resource: { directory-unix: { path: /etc/s/ } } }
  - { resource: { package-apt: { name: curl } } }
  - { id: conf, resource: { file-unix: { path: /etc/s/conf } } }
  - { id: run, resource: { script: { program: sh, apply: "true", rerun_on: [conf] } } }
`);
    expect(resolution).toMatchObject({ ok: true, secrets: [], required_secrets: [] });
    const resources = resourcesOf(resolution);
    expect(resources.map(({ key }) => key)).toEqual([
      'path:/etc/s',
      'package-apt:curl',
      'path:/etc/s/conf',
      'service-systemd:s',
      'script:run',
    ]);
    expect(resources[0]).toEqual({
      key: 'path:/etc/s',
      identity: '/etc/s',
      module: 'm',
      id: 'dir',
      name: null,
      type: 'directory-unix',
      body: { path: '/etc/s' },
      deferred: [],
      depends_on: [],
      reload_on: [],
      restart_on: [],
      rerun_on: [],
      sensitive_fields: [],
    });
    expect(resources[3]).toMatchObject({
      name: 'on web-1',
      depends_on: ['path:/etc/s', 'path:/etc/s/conf'],
      reload_on: ['path:/etc/s'],
      restart_on: ['path:/etc/s/conf'],
      rerun_on: [],
      body: { name: 's' },
    });
    expect(resources[4]).toMatchObject({ id: 'run', rerun_on: ['path:/etc/s/conf'], body: { manages: 'run' } });
  });

  test('a template replaces the content of a file', () => {
    const resolution = resolve(`templates: [{ id: t, content: "Welcome to \${{ agent.name }}\\n" }]
resources: [{ resource: { file-unix: { path: /etc/motd, template: t } } }]
`);
    expect(resourcesOf(resolution)[0]?.body).toEqual({ path: '/etc/motd', content: 'Welcome to web-1\n' });
  });

  test('for_each yields a resource for each element', () => {
    const resolution = resolve(
      `parameters: { users: { type: list } }
resources:
  - id: u
    for_each: "\${{ param.users }}"
    name: "user \${{ each.name }}"
    resource: { user-unix: { name: "\${{ each.name }}", uid: "\${{ each.uid }}", home: "/home/\${{ each.home | default(\\"none\\") }}" } }
  - { id: after, depends_on: [u], resource: { hostname: { name: h } } }
`,
      {},
      {
        users: [
          { name: 'ada', uid: 1001 },
          { name: 'bob', uid: '1002', home: 'b' },
        ],
      },
    );
    const [ada, bob, after] = resourcesOf(resolution);
    expect(ada).toMatchObject({ id: 'u[0]', name: 'user ada', body: { name: 'ada', uid: 1001, home: '/home/none' } });
    expect(bob).toMatchObject({ id: 'u[1]', key: 'user-unix:bob', body: { name: 'bob', uid: 1002, home: '/home/b' } });
    expect(after?.depends_on).toEqual(['user-unix:ada', 'user-unix:bob']);
  });

  test('for_each refuses elements with the same identity', () => {
    const resolution = resolve(
      `parameters: { users: { type: list, default: [ada, ada] } }
resources:
  - { id: u, for_each: "\${{ param.users }}", resource: { user-unix: { name: "\${{ each }}" } } }
`,
    );
    expect(faultsOf(resolution)).toEqual([
      'module_conflict',
      '/modules/m/resources/0/resource/user-unix user-unix ada is declared twice in module "m" (id "u[0]") and module "m" (id "u[1]"): keep one of them',
    ]);
  });

  test('treats `ensure: present` like an absent `ensure`', () => {
    const bodies = resourcesOf(
      resolve(`resources:
  - { resource: { file-unix: { path: /a, ensure: present } } }
  - { resource: { file-unix: { path: /b, ensure: absent } } }
`),
    ).map(({ body }) => body);
    expect(bodies).toEqual([{ path: '/a' }, { path: '/b', ensure: 'absent' }]);
  });

  test('always redacts the password of a Windows user', () => {
    const [user] = resourcesOf(resolve('resources: [{ resource: { user-windows: { name: u, password: p } } }]'));
    expect(user?.sensitive_fields).toEqual(['password']);
  });
});

describe('evaluating expressions', () => {
  test('expressions yield attributes, tags, parameters, and agent properties', () => {
    const content =
      '${{ agent.node_id }} ${{ attr.distro }} ${{ tag.team/name }} ${{ param.port }} ${{ param.on }} ${{ tag.no | default("d") }}';
    const more = 'parameters: { port: { type: integer, default: 80 }, on: { type: boolean } }';
    expect(contentOf(resolve(file(content, more), {}, { on: true }))).toBe(
      '0123456789abcdef0123456789abcdef debian blue 80 true d',
    );
  });

  test('expressions yield numbers, booleans, lists, and mappings for fields of these types', () => {
    const [user, service] = resourcesOf(
      resolve(
        `parameters: { uid: { type: integer }, groups: { type: list }, env: { type: map }, on: { type: boolean } }
resources:
  - { resource: { user-unix: { name: u, uid: "\${{ param.uid }}", system: "\${{ tag.no | default('true') }}", additional_groups: "\${{ param.groups }}" } } }
  - { resource: { service-systemd: { name: s, enabled: "\${{ param.on }}", environment: "\${{ param.env }}", type: "\${{ tag.no | default('exec') }}" } } }
`,
        {},
        { uid: 7, groups: ['a', 5], env: { A: 1, B: 'x' }, on: false },
      ),
    );
    expect(user?.body).toEqual({ name: 'u', uid: 7, system: true, additional_groups: ['a', '5'] });
    expect(service?.body).toEqual({ name: 's', enabled: false, environment: { A: '1', B: 'x' }, type: 'exec' });
  });

  test('join converts a list to text', () => {
    const list = (content: string, given: Json) =>
      resolve(file(content, 'parameters: { p: { type: list, default: [] } }'), {}, { p: given });
    expect(contentOf(list('{ ${{ param.p | join(", ") }} }', [22, 'ssh', true]))).toBe('{ 22, ssh, true }');
    expect(contentOf(list('<${{ param.p | join("\\n") }}>', []))).toBe('<>');
    expect(contentOf(list('${{ param.p | join("-") }}', ['${{ agent.name }}', '$&']))).toBe('${{ agent.name }}-$&');
    expect(faultsOf(list('${{ param.p | join(",") }}', ['a', { b: 1 }]))[1]).toContain(
      'element 1 of param.p is not a plain value, so join cannot use it',
    );
    const each = (element: Json) =>
      resolve(
        `parameters: { p: { type: list } }
resources: [{ for_each: "\${{ param.p }}", resource: { file-unix: { path: /f, content: "\${{ each.k | join(',') | default('none') }}" } } }]`,
        {},
        { p: [element] },
      );
    expect(contentOf(each({ k: [1, 2] }))).toBe('1,2');
    expect(contentOf(each({}))).toBe('none');
    expect(faultsOf(each({ k: 'a' }))[1]).toContain('each.k is not a list, so join cannot use it');
  });

  test('reports a missing value, and suggests a correction', () => {
    const more = 'parameters: { p: { type: string } }';
    const fault = (content: string, facts: Partial<AgentFacts> = {}) =>
      faultsOf(resolve(file(content, more), facts))[1];
    const path = '/modules/m/resources/0/resource/file-unix/content module "m": resource "f":';
    const otherwise = 'or give the expression | default("…")';
    expect(fault('${{ attr.x }}')).toBe(`${path} the agent reports no attribute "x": fix the name, ${otherwise}`);
    expect(fault('${{ tag.x }}')).toBe(`${path} the agent has no tag "x": set it, ${otherwise}`);
    expect(fault('${{ param.p }}')).toBe(
      `${path} the parameter "p" has neither value nor default: set it in the assignment, ${otherwise}`,
    );
    expect(fault('${{ agent.name }}', { name: null })).toBe(
      `${path} agent.name has no value yet: approve the agent under a name, ${otherwise}`,
    );
    expect(fault('${{ attr.constructor }}')).toContain('reports no attribute');
    const each = `parameters: { p: { type: list, default: [{ a: b }] } }
resources: [{ for_each: "\${{ param.p }}", resource: { user-unix: { name: "\${{ each.constructor }}" } } }]`;
    expect(faultsOf(resolve(each))[1]).toContain('each.constructor has no value: fix the list');
  });

  test('reports a parameter with a wrong value once, and other parameters that have no value', () => {
    const more = 'parameters: { p: { type: integer }, q: { type: string } }';
    const wrong = (content: string) =>
      faultsOf(resolve(file(content, `${more}\nverify: [{ command: "test ${'${{ param.p }}'}" }]`), {}, { p: 'x' }));
    expect(wrong('${{ param.p }}').join('\n')).not.toContain('neither value nor default');
    expect(wrong('${{ param.p }}').join('\n')).toContain('parameter p: must be');
    expect(wrong('${{ param.q }}').join('\n')).toContain('the parameter "q" has neither value nor default');
  });

  test('refuses evaluated values that do not have the format of their field', () => {
    const bad: [string, string][] = [
      ['file-unix: { path: "${{ tag.t }}" }', 'path module "m": must be an absolute path, starting with "/"'],
      ['file-unix: { path: "/srv/${{ tag.t }}" }', 'path module "m": must not contain "..": write the resulting path'],
      [
        'file-unix: { path: /a, mode: "${{ tag.t }}" }',
        'mode module "m": must be 3 or 4 octal digits in quotes, such as "0644"',
      ],
      ['user-unix: { name: u, uid: "${{ tag.t }}" }', 'uid module "m": must be a whole number from 0 to 4294967294'],
      [
        'service-systemd: { name: s, type: "${{ tag.t }}" }',
        'type module "m": must be one of simple, exec, forking, oneshot, notify, dbus, idle',
      ],
      [
        'service-systemd: { name: s, description: "${{ tag.u }}" }',
        'description module "m": must be one line, without line breaks',
      ],
      ['sysctl: { key: k, value: "${{ tag.u }}" }', 'value module "m": must be one line, without line breaks'],
    ];
    for (const [resource, fault] of bad) {
      const resolution = resolve(`resources: [{ resource: { ${resource} } }]`, { tags: { t: '../..', u: 'a\nb' } });
      expect(faultsOf(resolution)[1]).toContain(`/${fault}`);
    }
  });

  test('expressions that yield the same identity cause a conflict', () => {
    const resolution = resolve(`resources:
  - { id: a, resource: { file-unix: { path: "/srv/\${{ tag.role }}" } } }
  - { resource: { directory-unix: { path: /srv/web } } }
`);
    expect(faultsOf(resolution)).toEqual([
      'module_conflict',
      '/modules/m/resources/1/resource/directory-unix directory-unix /srv/web is declared differently in module "m" (id "a") and module "m" (/resources/1/resource/directory-unix): one is a file-unix and the other a directory-unix; keep one of them, or make them agree',
    ]);
  });
});

describe('parameters', () => {
  test('refuses values of undeclared parameters and values of the wrong type', () => {
    const source = 'parameters: { port: { type: integer, default: 80 } }';
    expect(faultsOf(resolve(source, {}, { port: '80', prot: 1 }))).toEqual([
      'module_unresolved',
      '/modules/m/parameters/port module "m": parameter port: must be a whole number, to match its type',
      '/modules/m/parameters/prot module "m": the module has no parameter "prot": did you mean "port"?',
    ]);
    expect(faultsOf(resolveDesiredSet({ modules: [moduleOf('')], agent, parameters: { other: {} } }))).toEqual([
      'module_unresolved',
      '/parameters/other there is no module "other" in the desired set',
    ]);
  });

  test('uses the default for a parameter that is set to null', () => {
    const more = 'parameters: { p: { type: string, default: d } }';
    expect(contentOf(resolve(file('${{ param.p }}', more), {}, { p: null }))).toBe('d');
  });
});

describe('several modules', () => {
  const both = (one: string, other: string): Resolution =>
    resolveDesiredSet({ modules: [moduleOf(one, 'one'), moduleOf(other, 'other')], agent });

  test('merges equal declarations in two modules', () => {
    const resources = resourcesOf(
      both(
        `resources:
  - { id: d, resource: { directory-unix: { path: /d } } }
  - { id: f, resource: { file-unix: { path: /f, content: "\${{ secrets.s }}", mode: "0644" } } }
  - { id: s, resource: { service-systemd: { name: s, restart_on: [f] } } }
`,
        `resources:
  - { id: z, resource: { file-unix: { path: /z } } }
  - { id: g, depends_on: [z], resource: { file-unix: { mode: "0644", content: "\${{ secrets.s }}", path: /f, ensure: present } } }
  - { id: t, resource: { service-systemd: { name: s, restart_on: [g] } } }
`,
      ),
    );
    expect(resources.map(({ key, module }) => `${module} ${key}`)).toEqual([
      'one path:/d',
      'other path:/z',
      'one path:/f',
      'one service-systemd:s',
    ]);
    expect(resources[2]?.depends_on).toEqual(['path:/z']);
  });

  test.each([
    ['its content', 'content: a', 'line-unix: { path: /f, line: x }', '/f#x', 'the whole file'],
    ['a secret', 'content: "${{ secrets.s }}"', 'block-unix: { path: /f, marker: m }', '/f#m', 'the whole file'],
    [
      'its absence',
      'ensure: absent',
      `line-unix: { path: "/\${{ attr.none | default('f') }}", line: x }`,
      '/f#x',
      'that file absent',
    ],
  ])('a part of a file conflicts with another module that declares %s', (_, whole, part, identity, all) => {
    const resolution = both(
      `resources: [{ resource: { ${part} } }]`,
      `resources: [{ id: x, resource: { file-unix: { path: /f, ${whole} } } }]`,
    );
    const type = part.split(':')[0];
    expect(faultsOf(resolution)).toEqual([
      'module_conflict',
      expect.stringMatching(
        `^/modules/one/resources/0/resource/${type} ${type} ${identity} in module "one" \\(/resources/0/resource/${type}\\) is a part of a file, and module "other" \\(id "x"\\) declares ${all}`,
      ),
    ]);
  });

  test('a part of a file does not conflict with declared permissions', () => {
    const resolution = both(
      'resources: [{ resource: { file-unix: { path: /f, mode: "0600" } } }]',
      'resources: [{ resource: { line-unix: { path: /f, line: x } } }]',
    );
    expect(resolution.ok).toBe(true);
  });

  test.each([
    ['content', 'file-unix: { path: /f, content: b }', 'the values of `content` differ'],
    ['kind', 'directory-unix: { path: /f }', 'one is a file-unix and the other a directory-unix'],
    ['presence', 'file-unix: { path: /f, content: a, ensure: absent }', 'the values of `ensure` differ'],
    ['secret', 'file-unix: { path: /f, content: "a${{ secrets.s }}" }', 'the values of `content` differ'],
    ['form', 'file-unix: { path: /f, content_base64: "AAE=" }', '`content` cannot be combined with `content_base64`'],
  ])('reports declarations that differ in %s as a conflict, with both positions', (_, resource, reason) => {
    const resolution = both(
      'resources: [{ id: x, resource: { file-unix: { path: /f, content: a } } }]',
      `resources: [{ resource: { ${resource} } }]`,
    );
    const type = resource.split(':')[0];
    expect(faultsOf(resolution)).toEqual([
      'module_conflict',
      `/modules/other/resources/0/resource/${type} ${type} /f is declared differently in module "one" (id "x") and module "other" (/resources/0/resource/${type}): ${reason}; keep one of them, or make them agree`,
    ]);
  });

  test('reports a conflict between declarations that use different secrets', () => {
    expect(faultsOf(both(file('${{ secrets.a }}'), file('${{ secrets.b }}')))[0]).toBe('module_conflict');
    expect(faultsOf(both(file('${{ secrets.a }}'), file('${{ secrets.a }}')))).toEqual([]);
  });

  test('reports a conflict between two host names', () => {
    const hostname = (name: string) => `resources: [{ resource: { hostname: { name: ${name} } } }]`;
    expect(faultsOf(both(hostname('a'), hostname('b')))[0]).toBe('module_conflict');
    expect(faultsOf(both(hostname('a'), hostname('a')))).toEqual([]);
  });

  test('reports a cycle through two modules', () => {
    const resolution = both(
      `resources:
  - { id: a, depends_on: [b], resource: { sysctl: { key: a, value: "1" } } }
  - { id: b, resource: { sysctl: { key: b, value: "1" } } }
`,
      `resources:
  - { id: b, depends_on: [a], resource: { sysctl: { key: b, value: "1" } } }
  - { id: a, resource: { sysctl: { key: a, value: "1" } } }
`,
    );
    expect(faultsOf(resolution)).toEqual([
      'module_unresolved',
      '/modules/one/resources/0/resource/sysctl module "one": dependency cycle: one/a -> one/b -> one/a; remove one of these dependencies',
    ]);
  });

  test('resolves a module only once if it is listed twice', () => {
    const module = moduleOf(file('a'));
    expect(resourcesOf(resolveDesiredSet({ modules: [module, module], agent }))).toHaveLength(1);
  });
});

describe('size limits', () => {
  test('refuses a desired state that is too large', () => {
    const source = `templates: [{ id: t, content: "${'x'.repeat(1_500_000)}\${{ tag.role }}" }]
resources:
${Array.from({ length: 1000 }, (_, index) => `  - { resource: { file-unix: { path: /f${index}, template: t } } }\n`).join('')}`;
    expect(faultsOf(resolve(source))).toEqual([
      'module_unresolved',
      '/modules/m/resources/22 module "m": the desired set has more than 32 MiB of text, including inserted templates: remove modules or shorten templates',
    ]);
    const each = `parameters: { p: { type: list } }
resources: [{ for_each: "\${{ param.p }}", resource: { user-unix: { name: "u\${{ each }}" } } }]`;
    expect(faultsOf(resolve(each, {}, { p: [...Array(20_001).keys()] }))[1]).toContain('more than 20000 resources');
    const long = 'x'.repeat(1_000_000);
    const tooMuch = 'has more than 32 MiB of text';
    const repeated = (field: string) => `parameters: { long: { type: string } }
resources:
  - for_each: ${JSON.stringify(Array.from({ length: 40 }, (_, index) => index))}
    ${field}
    resource: { user-unix: { name: "u\${{ each }}" } }`;
    expect(faultsOf(resolve(repeated('name: "${{ param.long }}"'), {}, { long }))[1]).toContain(tooMuch);
    const command = `${'${{ param.long }}'.repeat(2)}`;
    const verify = `parameters: { long: { type: string } }
verify:
${`  - command: "${command}"\n`.repeat(20)}`;
    expect(faultsOf(resolve(verify, {}, { long }))[1]).toContain(tooMuch);
  });
});

describe('resolving secrets', () => {
  const source = `resources:
  - { id: f, resource: { file-unix: { path: /f, mode: "0600", content: "user=\${{ tag.role }} password=\${{ secrets.db }}!\\n" } } }
  - { id: s, resource: { service-systemd: { name: s, environment: { A: plain, TOKEN: "\${{ secrets.token | default('none') }}" } } } }
  - { id: run, resource: { script: { program: sh, apply: "login \${{ secrets.db }}", check: "true" } } }
  - { id: l, resource: { service-launchd: { name: l, program_arguments: [x, "--t=\${{ secrets.token }}"] } } }
`;
  const lookup = (name: string): string | undefined => ({ db: 'hunter2', token: 'tok' })[name];

  test('lists secrets without inserting them', () => {
    const resolution = resolve(source);
    expect(resolution).toMatchObject({ ok: true, secrets: ['db', 'token'], required_secrets: ['db', 'token'] });
    const [file, service, script, job] = resourcesOf(resolution);
    expect(file?.body).toEqual({ path: '/f', mode: '0600', content: '' });
    expect(file?.sensitive_fields).toEqual(['content']);
    expect(service?.sensitive_fields).toEqual(['environment']);
    expect(script?.sensitive_fields).toEqual(['apply', 'check']);
    expect(job?.sensitive_fields).toEqual(['program_arguments']);
  });

  test('does not require secrets with a default', () => {
    expect(resolve(file('${{ secrets.a | default("x") }} ${{ secrets.b }}'))).toMatchObject({
      secrets: ['a', 'b'],
      required_secrets: ['b'],
    });
  });

  test('fillSecrets inserts secrets into resources that were stored as JSON', () => {
    const stored = JSON.parse(JSON.stringify(resourcesOf(resolve(source)))) as UnfilledResource[];
    const filled = fillSecrets(stored, lookup);
    if (!filled.ok) throw new Error(JSON.stringify(filled.faults));
    const [file, service, script, job] = filled.resources;
    const bodies = [file, service, script, job].map((resource) => resource?.body);
    expect(bodies[0]).toEqual({ path: '/f', mode: '0600', content: 'user=web password=hunter2!\n' });
    expect(bodies[1]).toEqual({ name: 's', environment: { A: 'plain', TOKEN: 'tok' } });
    expect(bodies[2]).toMatchObject({ apply: 'login hunter2', check: 'true' });
    expect(bodies[3]).toEqual({ name: 'l', program_arguments: ['x', '--t=tok'] });
    expect(Object.keys(file as object)).not.toContain('deferred');
    // The resources that were stored are not changed.
    expect(JSON.stringify(stored)).not.toContain('hunter2');
  });

  test('replaces missing secrets with their defaults, or reports their names', () => {
    const filled = fillSecrets(resourcesOf(resolve(file('${{ secrets.a | default("x") }}'))), () => undefined);
    expect(filled.ok && fileContent(filled.resources)).toBe('x');
    expect(fillSecrets(resourcesOf(resolve(file('${{ secrets.a }}'))), () => undefined)).toEqual({
      ok: false,
      faults: [
        {
          path: '/modules/m/f/content',
          message: 'path:/f of module m: the secret "a" is missing, has expired, or is not allowed for this agent',
        },
      ],
    });
  });

  test('refuses a secret in the wrong format without showing it', () => {
    const unfilled = resourcesOf(
      resolve('resources: [{ resource: { service-systemd: { name: s, exec_start: "/bin/x ${{ secrets.a }}" } } }]'),
    );
    const filled = fillSecrets(unfilled, () => 'hunter2\nExecStartPre=/bin/evil');
    expect(filled).toMatchObject({ ok: false, faults: [{ path: '/modules/m/service-systemd:s/exec_start' }] });
    expect(JSON.stringify(filled)).not.toContain('hunter2');
  });

  test('does not insert the secrets for verifications into the resolved resources', () => {
    const resolution = resolve('verify: [{ command: "check ${{ secrets.v }}" }, { tcp: { port: 22 } }]');
    expect(resolution).toMatchObject({
      ok: true,
      secrets: ['v'],
      verify: [
        {
          module: 'm',
          type: 'command',
          deferred: [{ path: ['command'], parts: [{ text: 'check ' }, { secret: 'v' }] }],
        },
        { module: 'm', type: 'tcp', body: { port: 22 }, deferred: [] },
      ],
    });
  });
});

describe('values are data', () => {
  const tricky = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '$',
          '{',
          '}',
          '$${{',
          '${{',
          '}}',
          '${{ secrets.x }}',
          '${{ agent.name }}',
          '"',
          '\\',
          '\n',
          '"}}',
        ),
        fc.string({ unit: 'grapheme' }),
      ),
    )
    .map((pieces) => pieces.join(''));
  const secret = 'the secret value';

  test('does not evaluate a value that looks like an expression', () => {
    const module = moduleOf(`parameters: { p: { type: string }, l: { type: list } }
resources:
  - { id: plain, resource: { file-unix: { path: /plain, content: "\${{ tag.t }}|\${{ attr.a }}|\${{ param.p }}" } } }
  - { id: mixed, resource: { file-unix: { path: /mixed, content: "\${{ tag.t }}|\${{ secrets.x }}|\${{ attr.a }}|\${{ param.p }}" } } }
  - { id: each, for_each: "\${{ param.l }}", resource: { script: { program: sh, apply: "\${{ each }}", check: "\${{ secrets.x }}" } } }
  - { id: map, resource: { service-systemd: { name: s, exec_start: a, environment: { deferred: "\${{ param.p }}", S: "\${{ secrets.x }}" } } } }
`);
    fc.assert(
      fc.property(tricky, tricky, tricky, (tag, attribute, parameter) => {
        const value = parameter.replaceAll('\0', '');
        const resolution = resolveDesiredSet({
          modules: [module],
          agent: { ...agent, tags: { t: tag }, attributes: { ...agent.attributes, a: attribute } },
          parameters: { m: { p: value, l: [value] } },
        });
        const stored = JSON.parse(JSON.stringify(resourcesOf(resolution))) as UnfilledResource[];
        expect(resolution.ok && resolution.secrets).toEqual(['x']);
        const filled = fillSecrets(stored, (name) => (name === 'x' ? secret : undefined));
        if (!filled.ok) throw new Error(JSON.stringify(filled.faults));
        const bodies = Object.fromEntries(filled.resources.map(({ id, body }) => [id, body])) as never as {
          plain: ResourceBodies['file-unix'];
          mixed: ResourceBodies['file-unix'];
          'each[0]': ResourceBodies['script'];
          map: ResourceBodies['service-systemd'];
        };
        expect(bodies.plain.content).toBe(`${tag}|${attribute}|${value}`);
        expect(bodies.mixed.content).toBe(`${tag}|${secret}|${attribute}|${value}`);
        expect(bodies['each[0]']).toMatchObject({ apply: value, check: secret });
        expect(bodies.map.environment).toEqual({ deferred: value, S: secret });
      }),
    );
  });

  test('does not evaluate a secret that looks like an expression', () => {
    const unfilled = resourcesOf(resolve(file('${{ secrets.a }}${{ secrets.b }}')));
    fc.assert(
      fc.property(tricky, tricky, (a, b) => {
        const filled = fillSecrets(unfilled, (name) => (name === 'a' ? a : b));
        expect(filled.ok && fileContent(filled.resources)).toBe(a + b);
      }),
    );
  });

  test('resolves any escaped text to the original text', () => {
    fc.assert(
      fc.property(tricky, (text) => {
        const content = [...escapeExpressions(text)]
          .map((character) => `\\U${(character.codePointAt(0) as number).toString(16).padStart(8, '0')}`)
          .join('');
        fc.pre(text.isWellFormed());
        const source = `resources: [{ resource: { file-unix: { path: /f, content: "${content}" } } }]`;
        expect(contentOf(resolve(source))).toBe(text);
      }),
    );
  });
});

describe('packages', () => {
  const versions = (packages: string, parameters: Record<string, Json> = {}) => {
    const source = `
parameters: { fresh: { type: boolean, default: false } }
packages: ${packages}
resources:
  - resource: { package-apt: { name: pa } }
  - resource: { package-apt: { name: pb, version: "1.2" } }
  - resource: { package-apt: { name: pc, ensure: absent } }
  - resource: { hostname: { name: d } }
`;
    return resolveDesiredSet({ modules: [moduleOf(source, 'm')], agent, parameters: { m: parameters } });
  };
  const given = (resolution: ReturnType<typeof versions>) =>
    resourcesOf(resolution).map(({ body }) => ('version' in body ? body.version : undefined));

  test('sets the version of packages that declare none', () => {
    expect(given(versions('latest'))).toEqual(['latest', '1.2', undefined, undefined]);
    expect(given(versions('any'))).toEqual([undefined, '1.2', undefined, undefined]);
    const byParameter = "\"${{ param.fresh ? 'latest' : 'any' }}\"";
    expect(given(versions(byParameter))).toEqual([undefined, '1.2', undefined, undefined]);
    expect(given(versions(byParameter, { fresh: true }))[0]).toBe('latest');
  });

  test('accepts any version for "*", even if the default is latest', () => {
    const source = (packages: string) =>
      `packages: ${packages}\nresources: [{ resource: { package-apt: { name: pa, version: "*" } } }, { resource: { package-dnf: { name: pb, version: "*" } } }]`;
    for (const packages of ['any', 'latest'])
      expect(given(resolveDesiredSet({ modules: [moduleOf(source(packages), 'm')], agent }))).toEqual([
        undefined,
        undefined,
      ]);
  });

  test('sets no default version for packages from files', () => {
    const file = `url: "https://x.example/a.deb", sha256: ${'A'.repeat(64)}`;
    const source = `packages: latest\nresources: [{ resource: { package-apt: { name: pa, ${file} } } }]`;
    const [resource] = resourcesOf(resolveDesiredSet({ modules: [moduleOf(source, 'm')], agent }));
    expect(resource?.body).toMatchObject({ sha256: 'a'.repeat(64) });
    expect(resource?.body).not.toHaveProperty('version');
  });

  test('reports invalid values of `packages` at their positions', () => {
    expect(faultsOf(versions('"${{ param.fresh }}"'))).toEqual([
      'module_unresolved',
      '/modules/m/packages module "m": must be one of any, latest',
    ]);
    expect(() => moduleOf('packages: newest', 'm')).toThrow('must be one of any, latest');
  });

  test('merges with a module that declares the same package without a version, and conflicts with another version', () => {
    const one = moduleOf('packages: latest\nresources: [{ resource: { package-apt: { name: pa } } }]', 'one');
    const plain = moduleOf('resources: [{ resource: { package-apt: { name: pa } } }]', 'plain');
    const exact = moduleOf('resources: [{ resource: { package-apt: { name: pa, version: "1" } } }]', 'exact');
    expect(given(resolveDesiredSet({ modules: [one, plain], agent }))).toEqual(['latest']);
    expect(faultsOf(resolveDesiredSet({ modules: [one, exact], agent }))[0]).toBe('module_conflict');
    expect(conflictsBetween([one, exact])).toHaveLength(1);
    expect(conflictsBetween([one, plain])).toEqual([]);
  });
});

describe('only_if', () => {
  const source = (onlyIf: string, more = '') =>
    `${more}\nresources:\n  - { id: f, only_if: { exists: ${onlyIf} }, resource: { file-unix: { path: /f, content: a } } }\n`;

  test('evaluates the only_if path for each for_each element', () => {
    expect(resourcesOf(resolve(source('/etc/x/')))[0]).toMatchObject({ only_if: { exists: '/etc/x' } });
    const each = `
parameters: { sites: { type: list, default: [a, b] } }
resources:
  - for_each: "\${{ param.sites }}"
    when: { platform: linux }
    only_if: { exists: "/srv/\${{ each }}" }
    resource: { directory-unix: { path: "/srv/\${{ each }}/log" } }
  - when: { platform: windows }
    only_if: { exists: /x }
    resource: { hostname: { name: a } }
`;
    expect(resourcesOf(resolve(each)).map(({ only_if }) => only_if)).toEqual([
      { exists: '/srv/a' },
      { exists: '/srv/b' },
    ]);
    expect(resourcesOf(resolve(file('a')))[0]).not.toHaveProperty('only_if');
  });

  test('only_if refuses an evaluated path that is not absolute', () => {
    const path = 'parameters: { path: { type: string, default: etc } }';
    expect(faultsOf(resolve(source('"${{ param.path }}"', path)))).toEqual([
      'module_unresolved',
      '/modules/m/resources/0/only_if/exists module "m": resource "f": must be an absolute path, starting with "/"',
    ]);
    expect(faultsOf(resolve(source('"/${{ attr.none }}"')))).toEqual(['module_unresolved', expect.any(String)]);
  });

  test('evaluates commands in only_if, leaves out omitted parts, and writes one condition without a list', () => {
    const onlyIfOf = (onlyIf: string) =>
      resourcesOf(
        resolve(`
parameters: { program: { type: string, default: nginx }, none: { type: string } }
resources: [{ only_if: ${onlyIf}, resource: { hostname: { name: a } } }]
`),
      )[0]?.only_if;
    const command = '{ command: "command -v ${{ param.program }}" }';
    const omitted = '{ exists: "${{ param.none | omit }}" }';
    expect(onlyIfOf(command)).toEqual({ command: 'command -v nginx' });
    expect(onlyIfOf(`[${command}, { not: [{ exists: /a/ }] }]`)).toEqual([
      { command: 'command -v nginx' },
      { not: { exists: '/a' } },
    ]);
    // Agents of protocol version 6 support this form only.
    expect(onlyIfOf(`[{ exists: /a }, ${omitted}]`)).toEqual({ exists: '/a' });
    expect(onlyIfOf(`[{ not: ${omitted} }]`)).toBeUndefined();
    expect(
      faultsOf(
        resolve(
          'parameters: { p: { type: string, default: "" } }\nresources: [{ only_if: [{ exists: /a }, { not: { command: "${{ param.p }}" } }], resource: { hostname: { name: a } } }]',
        ),
      )[1],
    ).toMatch(/resources\/0\/only_if\/1\/not\/command module "m": .*must not be empty/);
  });

  test('only_if conflicts if two modules declare different paths', () => {
    const laid = (...paths: string[]) =>
      resolveDesiredSet({ modules: paths.map((path, i) => moduleOf(source(path), `m${i}`)), agent });
    expect(resourcesOf(laid('/a', '/a'))).toHaveLength(1);
    expect(faultsOf(laid('/a', '/b'))).toEqual(['module_conflict', expect.stringContaining('is declared differently')]);
  });
});
