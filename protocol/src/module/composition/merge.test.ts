import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentFacts } from '../conditions.ts';
import { conflictsBetween } from '../conflicts-between.ts';
import type { ModuleDocument } from '../document.ts';
import { parseModule } from '../parse.ts';
import { type Resolution, resolveDesiredSet } from '../resolve.ts';
import { declaredOrder } from '../resource-order.ts';
import { fillSecrets, type UnfilledResource } from '../secrets.ts';

const agent: AgentFacts = { name: 'web-1', node_id: '', attributes: { platform: 'linux' }, tags: {} };

function moduleOf(name: string, resources: string): ModuleDocument {
  const parsed = parseModule(`name: "${name}"\nsupports: [{ platform: linux }]\nresources:\n${resources}`);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ path, message }) => `${path} ${message}`).join('\n'));
  return parsed.module;
}

const resolve = (...modules: ModuleDocument[]): Resolution => resolveDesiredSet({ modules, agent });

function resourcesOf(resolution: Resolution): UnfilledResource[] {
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  return resolution.resources;
}

const faultsOf = (resolution: Resolution): string[] =>
  resolution.ok ? [] : [resolution.code, ...resolution.faults.map(({ path, message }) => `${path} ${message}`)];

const uploadFaults = (resources: string): string[] => {
  const parsed = parseModule(`name: m\nsupports: [{ platform: linux }]\nresources:\n${resources}`);
  return parsed.ok ? [] : parsed.faults.map(({ path, message }) => `${path} ${message}`);
};

const find = (resources: readonly UnfilledResource[], key: string): UnfilledResource => {
  const found = resources.find((resource) => resource.key === key);
  if (found === undefined) throw new Error(`${key} is missing`);
  return found;
};

describe('one resource in two modules', () => {
  const nginx = moduleOf(
    'nginx',
    `  - { id: conf, resource: { file-unix: { path: /etc/nginx/nginx.conf, content: a } } }
  - { id: service, resource: { service-systemd: { name: nginx, enabled: true, reload_on: [conf] } } }
`,
  );
  const site = moduleOf(
    'site',
    `  - { id: vhost, resource: { file-unix: { path: /etc/nginx/vhost, content: b } } }
  - { id: unit, depends_on: [vhost], resource: { service-systemd: { name: nginx, running: true, enabled: true, restart_on: [vhost] } } }
`,
  );

  test('combines fields that only one module sets, dependencies, and triggers', () => {
    const service = find(resourcesOf(resolve(nginx, site)), 'service-systemd:nginx');
    expect(service).toMatchObject({
      module: 'nginx',
      id: 'service',
      body: { name: 'nginx', enabled: true, running: true },
      reload_on: ['path:/etc/nginx/nginx.conf'],
      restart_on: ['path:/etc/nginx/vhost'],
      depends_on: ['path:/etc/nginx/nginx.conf', 'path:/etc/nginx/vhost'],
    });
    expect(conflictsBetween([nginx, site])).toEqual([]);
  });

  test('keeps the fields of the other module when one module is removed', () => {
    const [, service] = resourcesOf(resolve(site));
    expect(service).toMatchObject({
      module: 'site',
      id: 'unit',
      body: { name: 'nginx', running: true, enabled: true },
    });
  });

  test('names the module that set a field to which a third module gives another value', () => {
    const owner = moduleOf('owner', '  - { id: o, resource: { file-unix: { path: /f, owner: root } } }\n');
    const mode = moduleOf('mode', '  - { id: m, resource: { file-unix: { path: /f, mode: "0644" } } }\n');
    const other = moduleOf('other', '  - { id: x, resource: { file-unix: { path: /f, mode: "0600" } } }\n');
    expect(faultsOf(resolve(owner, mode, other))).toEqual([
      'module_conflict',
      '/modules/other/resources/0/resource/file-unix file-unix /f is declared differently in module "mode" (id "m") and module "other" (id "x"): the values of `mode` differ; keep one of them, or make them agree',
    ]);
  });

  const file = (name: string, fields: string, more = '') =>
    moduleOf(name, `  - { ${more}resource: { file-unix: { path: /f, ${fields} } } }\n`);

  test.each([
    ['permissions in two spellings', 'mode: "0644"', 'mode: "644"', null],
    ['presence as the default and as written', 'ensure: present, mode: "0644"', 'owner: root', null],
    ['a link and content', 'symlink: /a', 'content: a', '`symlink` cannot be combined with `content`'],
    ['a link and permissions', 'mode: "0644"', 'symlink: /a', '`mode` cannot be combined with `symlink`'],
    ['absence and content', 'ensure: absent', 'content: a', 'the values of `ensure` differ'],
  ])('compares declarations: %s', (_, one, other, reason) => {
    const modules = [file('one', one), file('two', other)];
    const [code, fault] = faultsOf(resolve(...modules));
    const [conflict] = conflictsBetween(modules);
    if (reason === null) expect([code, conflict]).toEqual([undefined, undefined]);
    else {
      expect(fault).toContain(reason);
      expect(conflict?.message).toContain(reason);
    }
  });

  test('reports a conflict if only one declaration has a condition, because the other declaration applies without a condition', () => {
    const modules = [file('one', 'owner: root'), file('two', 'group: root', 'only_if: { exists: /x }, ')];
    expect(faultsOf(resolve(...modules))[1]).toContain('the conditions `only_if` differ');
    expect(conflictsBetween(modules)[0]?.message).toContain('the conditions `only_if` differ');
  });

  test('hides a field with a secret that only the later module sets', () => {
    const [merged] = resourcesOf(resolve(file('one', 'owner: root'), file('two', 'content: "${{ secrets.s }}"')));
    expect(merged?.sensitive_fields).toEqual(['content']);
    const filled = fillSecrets([merged as UnfilledResource], () => 'hunter2');
    expect(filled.ok && filled.resources[0]?.body).toEqual({ path: '/f', owner: 'root', content: 'hunter2' });
  });

  test('hides all bodies of a script if a part that the later module sets contains a secret', () => {
    const script = (name: string, undo: string) =>
      moduleOf(name, `  - { resource: { script: { program: sh, manages: x, apply: run${undo} } } }\n`);
    const [merged] = resourcesOf(resolve(script('one', ''), script('two', ', undo: "x ${{ secrets.s }}"')));
    expect(merged?.sensitive_fields).toEqual(['apply', 'undo']);
  });

  test('compares the content of a template with literal content', () => {
    const source = 'name: t\nsupports: [{ platform: linux }]\ntemplates: [{ id: t, content: a }]\n';
    const templated = parseModule(`${source}resources: [{ resource: { file-unix: { path: /f, template: t } } }]`);
    if (!templated.ok) throw new Error('faults');
    const same = [templated.module, file('two', 'content: a, mode: "0600"')];
    expect(faultsOf(resolve(...same))).toEqual([]);
    expect(conflictsBetween(same)).toEqual([]);
    expect(conflictsBetween([templated.module, file('two', 'content: b')])).toHaveLength(1);
  });

  test('merges to the same resources for any order of the modules', () => {
    const fields = fc.record(
      {
        enabled: fc.boolean(),
        running: fc.boolean(),
        user: fc.constantFrom('web', 'db'),
        type: fc.constantFrom('notify', 'exec'),
      },
      { requiredKeys: [] },
    );
    const triggers = fc.subarray(['a', 'b', 'c']);
    type Part = { fields: object; reload: string[]; restart: string[]; after: string[] };
    const part: fc.Arbitrary<Part> = fc.record({ fields, reload: triggers, restart: triggers, after: triggers });
    const files = ['a', 'b', 'c']
      .map((id) => `  - { id: ${id}, resource: { file-unix: { path: /${id} } } }\n`)
      .join('');
    const documentOf = ({ fields, reload, restart, after }: Part, name: string) => {
      const reloading = reload.filter((id) => !restart.includes(id));
      const body = JSON.stringify({ name: 's', ...fields, reload_on: reloading, restart_on: restart });
      return moduleOf(
        name,
        `${files}  - { depends_on: ${JSON.stringify(after)}, resource: { service-systemd: ${body} } }\n`,
      );
    };
    const shown = (resolution: Resolution) =>
      resolution.ok
        ? resolution.resources
            .map(({ key, body, reload_on, restart_on, depends_on }) => [
              key,
              Object.entries(body).sort(),
              ...[reload_on, restart_on, depends_on].map((keys) => [...keys].sort()),
            ])
            .sort()
        : resolution.code;
    fc.assert(
      fc.property(part, part, (one, two) => {
        const [first, second] = [documentOf(one, 'one'), documentOf(two, 'two')];
        const merged = resolve(first, second);
        expect(shown(merged)).toEqual(shown(resolve(second, first)));
        expect(conflictsBetween([first, second]).length === 0).toBe(merged.ok);
        if (!merged.ok) return;
        const positions = new Map(merged.resources.map(({ key }, index) => [key, index]));
        for (const { key, depends_on } of merged.resources)
          for (const before of depends_on) expect(positions.get(before)).toBeLessThan(positions.get(key) as number);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a certificate with further files', () => {
  const pem = (name: string) => `"-----BEGIN ${name}-----\\nx\\n-----END ${name}-----"`;
  const secrets = `certificate: ${pem('CERTIFICATE')}, key: ${pem('PRIVATE KEY')}`;
  const placed = (path: string, key: string) => `certificate-file: { path: "${path}", key_path: "${key}", ${secrets} }`;
  const acme = (path: string) =>
    `certificate-acme: { path: "${path}", domains: [a.example.org], directory: "https://ca.example.org/", agree_terms: true, webroot: /www }`;
  const entry = (resource: string) => `  - { resource: { ${resource} } }\n`;

  test.each([
    ['the key of another certificate', placed('/a.pem', '/x.key'), placed('/b.pem', '/x.key'), '/x.key'],
    ['the certificate of another key', placed('/a.pem', '/x.key'), placed('/x.key', '/b.key'), '/x.key'],
    ['a file', placed('/a.pem', '/x.key'), 'file-unix: { path: /x.key, mode: "0600" }', '/x.key'],
    ['an absent file', placed('/a.pem', '/x.key'), 'file-unix: { path: /x.key, ensure: absent }', '/x.key'],
    ['a directory', placed('/a.pem', '/x.key'), 'directory-unix: { path: /x.key/ }', '/x.key'],
    ['the key of a requested certificate', acme('/tls'), placed('/a.pem', '/tls/privkey.pem'), '/tls/privkey.pem'],
    ['the chain of a requested certificate', acme('/tls'), placed('/tls/chain.pem', '/a'), '/tls/chain.pem'],
    ['a requested certificate', acme('/tls'), 'file-unix: { path: /tls/cert.pem, content: x }', '/tls/cert.pem'],
    [
      'an expression',
      placed('/a.pem', '/${{ agent.name }}'),
      'file-unix: { path: "/${{ agent.name }}", content: x }',
      '/${{ agent.name }}',
    ],
  ])('reports a conflict with %s, within one module and between two', (_, one, other, file) => {
    const pairs = [
      [one, other],
      [other, one],
    ] as const;
    for (const [first, second] of pairs) {
      const declared = `both declare "${file}": choose another path in one of them, or remove one`;
      expect(uploadFaults(entry(first) + entry(second))).toEqual([expect.stringContaining(declared)]);
      const modules = [moduleOf('one', entry(first)), moduleOf('two', entry(second))];
      expect(conflictsBetween(modules)).toMatchObject([{ module: 1, message: expect.stringContaining(declared) }]);
      const found = `both declare "${file.replace('${{ agent.name }}', 'web-1')}"`;
      expect(faultsOf(resolve(...modules))).toEqual(['module_conflict', expect.stringContaining(found)]);
    }
  });

  test('names both resources in a conflict', () => {
    const [one, two] = [placed('/a.pem', '/x.key'), placed('/b.pem', '/x.key')];
    expect(uploadFaults(entry(one) + entry(two))[0]).toContain(
      'certificate-file "/b.pem" and resource 1 (certificate-file "/a.pem") both declare "/x.key"',
    );
    const modules = [moduleOf('one', entry(one)), moduleOf('two', entry(two))];
    expect(conflictsBetween(modules)[0]?.message).toContain(
      'certificate-file "/b.pem" and certificate-file "/a.pem" in module "one" (resource 1) both declare "/x.key"',
    );
  });

  test.each([
    ['keys', placed('/a.pem', '/x.key'), 'line-unix: { path: /x.key, line: x }'],
    ['certificates', placed('/x.pem', '/x.key'), 'block-unix: { path: /x.pem, marker: m }'],
    ['requested keys', acme('/tls'), 'line-unix: { path: /tls/privkey.pem, line: x }'],
  ])('reports a conflict with parts of %s', (_, whole, part) => {
    const says = expect.stringMatching(/is a part of a file, and .* declares the whole file/);
    expect(uploadFaults(entry(whole) + entry(part))).toEqual([says]);
    const modules = [moduleOf('one', entry(whole)), moduleOf('two', entry(part))];
    expect(conflictsBetween(modules)).toMatchObject([{ message: says }]);
    expect(faultsOf(resolve(...modules))).toEqual(['module_conflict', says]);
  });

  test('accepts equal declarations in two modules, declarations for different agents, and a declaration of the directory of the files', () => {
    const same = [placed('/a.pem', '/x.key'), placed('/a.pem', '/x.key')].map(entry);
    const tree = [acme('/tls'), 'directory-unix: { path: /tls, mode: "0750" }'].map(entry);
    const agents = [placed('/a.pem', '/x.key'), placed('/b.pem', '/x.key')].map(
      (resource, i) => `  - { when: { distro: d${i} }, resource: { ${resource} } }\n`,
    );
    for (const entries of [same, tree, agents]) {
      expect(uploadFaults(entries.join(''))).toEqual([]);
      const modules = entries.map((text, i) => moduleOf(`m${i}`, text));
      expect(conflictsBetween(modules)).toEqual([]);
      expect(faultsOf(resolve(...modules))).toEqual([]);
    }
  });

  test('reports a conflict within a list once the list is known', () => {
    const resource = placed('/${{ each }}.pem', '/x.key');
    const module = moduleOf('m', `  - { for_each: "\${{ ['a', 'b'] }}", resource: { ${resource} } }\n`);
    expect(faultsOf(resolve(module))).toEqual(['module_conflict', expect.stringContaining('both declare "/x.key"')]);
  });
});

describe('references to other modules', () => {
  const nginx = moduleOf('nginx', '  - { id: service, resource: { service-systemd: { name: nginx } } }\n');
  const user = (reference: string) =>
    `  - { id: a, depends_on: ["${reference}"], resource: { file-unix: { path: /a } } }\n`;

  test('orders and triggers resources across modules', () => {
    const site = moduleOf(
      'site',
      `  - { id: page, depends_on: ["nginx:service"], resource: { file-unix: { path: /page } } }
  - { id: cache, resource: { script: { program: sh, apply: x, check: x, rerun_on: ["nginx:service"] } } }
`,
    );
    const resources = resourcesOf(resolve(site, nginx));
    expect(resources.map(({ key }) => key)).toEqual(['service-systemd:nginx', 'path:/page', 'script:cache']);
    expect(resources[2]?.rerun_on).toEqual(['service-systemd:nginx']);
    const written = declaredOrder([site, nginx]);
    expect(written.ok && written.order.resources.map(({ id }) => id)).toEqual(['service', 'page', 'cache']);
  });

  test('refuses a reference to a missing resource during resolution, and suggests a correction', () => {
    expect(faultsOf(resolve(moduleOf('site', user('nginx:service'))))).toEqual([
      'module_unresolved',
      '/modules/site/resources/0/depends_on/0 module "site": "nginx:service" names a resource of the module "nginx", which this agent does not have: assign it, add it to `requires`, or write "nginx:service?" if it may be missing',
    ]);
    expect(faultsOf(resolve(moduleOf('site', user('nginx:servce')), nginx))).toEqual([
      'module_unresolved',
      '/modules/site/resources/0/depends_on/0 module "site": the module "nginx" has no resource with the id "servce"; write "nginx:servce?" if it may be missing: did you mean "service"?',
    ]);
  });

  test.each(['nginx:service?', 'nginx:other?', 'nothing?', 'nothing:at:all?'])(
    'ignores a missing resource: %s',
    (reference) => {
      const site = moduleOf('site', user(reference));
      expect(faultsOf(resolve(site))).toEqual([]);
      expect(find(resourcesOf(resolve(site, nginx)), 'path:/a').depends_on).toEqual(
        reference === 'nginx:service?' ? ['service-systemd:nginx'] : [],
      );
    },
  );

  test('prefers a resource with this ID in the module that contains the reference', () => {
    const own = moduleOf(
      'site',
      `  - { id: "nginx:service", resource: { file-unix: { path: /own } } }
  - { id: "b?", resource: { file-unix: { path: /b } } }
  - { id: a, depends_on: ["nginx:service", "b?"], resource: { file-unix: { path: /a } } }
`,
    );
    expect(find(resourcesOf(resolve(own, nginx)), 'path:/a').depends_on).toEqual(['path:/own', 'path:/b']);
  });

  test('resolves references to modules and IDs that contain colons', () => {
    const odd = moduleOf('a:b', '  - { id: "c:d", resource: { file-unix: { path: /odd } } }\n');
    expect(find(resourcesOf(resolve(moduleOf('site', user('a:b:c:d')), odd)), 'path:/a').depends_on).toEqual([
      'path:/odd',
    ]);
  });

  test('accepts references that name their own module, and checks them during the upload', () => {
    const own = (id: string) => uploadFaults(`${user(id)}  - { id: b, resource: { file-unix: { path: /b } } }\n`);
    expect(own('m:b')).toEqual([]);
    expect(own('m:x')).toEqual(['/resources/0/depends_on/0 there is no resource with the id "m:x": use one of a, b']);
    expect(own('m:a')).toEqual(['/resources/0 dependency cycle: a -> a; remove one of these dependencies']);
  });

  test('ignores a dependency on a resource that another module declares only for other machines', () => {
    const only = moduleOf(
      'nginx',
      '  - { id: service, when: { distro: none }, resource: { file-unix: { path: /n } } }\n',
    );
    expect(find(resourcesOf(resolve(moduleOf('site', user('nginx:service')), only)), 'path:/a').depends_on).toEqual([]);
  });

  test('reports a cycle through two modules with all its members', () => {
    const modules = [
      moduleOf('one', '  - { id: a, depends_on: ["two:b"], resource: { file-unix: { path: /a } } }\n'),
      moduleOf('two', '  - { id: b, depends_on: ["one:a"], resource: { file-unix: { path: /b } } }\n'),
    ];
    expect(faultsOf(resolve(...modules))[1]).toContain('dependency cycle: one/a -> two/b -> one/a');
    expect(declaredOrder(modules)).toMatchObject({
      ok: false,
      faults: [
        {
          path: '/modules/one',
          message: 'dependency cycle: one/a -> two/b -> one/a; remove one of these dependencies',
        },
      ],
    });
  });
});

describe('notify', () => {
  const target = (kind: string) => moduleOf('base', `  - { id: t, resource: { ${kind} } }\n`);
  const notifier = (entry: string) =>
    moduleOf('site', `  - { id: a, notify: [{ ${entry} }], resource: { file-unix: { path: /a } } }\n`);
  const systemd = 'service-systemd: { name: s }';
  const openrc = 'service-openrc: { name: s }';
  const script = 'script: { program: sh, apply: x, check: x }';

  test.each([
    ['reload', systemd, 'reload_on'],
    ['restart', systemd, 'restart_on'],
    ['restart', openrc, 'restart_on'],
    ['reload', openrc, 'restart_on'],
    ['rerun', script, 'rerun_on'],
  ] as const)('`notify` with %s triggers %s through %s', (verb, kind, list) => {
    const modules = [target(kind), notifier(`${verb}: "base:t"`)];
    const last = resourcesOf(resolve(...modules)).at(-1);
    expect(last).toMatchObject({ module: 'base', [list]: ['path:/a'], depends_on: ['path:/a'] });
    const written = declaredOrder(modules);
    expect(written.ok && written.order.resources[1]).toMatchObject({ module: 'base', [list]: [0], depends_on: [0] });
  });

  test('refuses to notify a resource that does not have the trigger', () => {
    expect(faultsOf(resolve(target(script), notifier('reload: "base:t"')))).toEqual([
      'module_unresolved',
      '/modules/site/resources/0/notify/0/reload module "site": script t cannot be reloaded: notify a service',
    ]);
    expect(
      uploadFaults(`  - { id: a, notify: [{ rerun: b }], resource: { file-unix: { path: /a } } }
  - { id: b, resource: { service-systemd: { name: s } } }
  - { id: c, notify: [{ reload: d }], resource: { file-unix: { path: /c } } }
`),
    ).toEqual([
      '/resources/0/notify/0/rerun "b" is a service-systemd, which cannot be rerun: notify a script',
      '/resources/2/notify/0/reload there is no resource with the id "d": did you mean "a"?',
    ]);
  });

  test('refuses a notification that completes a cycle', () => {
    expect(
      uploadFaults(`  - { id: a, depends_on: [b], notify: [{ reload: b }], resource: { file-unix: { path: /a } } }
  - { id: b, resource: { service-systemd: { name: s } } }
`),
    ).toEqual(['/resources/0 dependency cycle: a -> b -> a; remove one of these dependencies']);
  });

  test('requires exactly one of reload, restart, and rerun', () => {
    expect(
      uploadFaults(`  - { id: a, notify: [{}, { reload: b, restart: b }], resource: { file-unix: { path: /a } } }
  - { id: b, resource: { service-systemd: { name: s } } }
`),
    ).toEqual([
      '/resources/0/notify/0 needs one of reload, restart, and rerun',
      '/resources/0/notify/1/restart only one can be given: reload or restart',
    ]);
  });

  test('triggers a resource once even if all elements of a list notify it', () => {
    const each = moduleOf(
      'site',
      `  - { id: a, for_each: "\${{ ['x', 'y'] }}", notify: [{ reload: "base:t" }], resource: { file-unix: { path: "/\${{ each }}" } } }\n`,
    );
    expect(resourcesOf(resolve(target(systemd), each)).at(-1)?.reload_on).toEqual(['path:/x', 'path:/y']);
  });
});

describe('immediate triggers', () => {
  const site = (triggers: string) => `  - { id: pkg, resource: { package-apt: { name: nginx } } }
  - { id: cert, depends_on: [http], resource: { script: { program: sh, apply: x, check: x } } }
  - { id: http, resource: { file-unix: { path: /http } } }
  - { id: tls, depends_on: [cert], resource: { file-unix: { path: /tls } } }
  - { id: service, depends_on: [pkg], resource: { service-systemd: { name: nginx, reload_on: [${triggers}] } } }
`;

  test('puts the dependencies of a service before the resources that trigger it immediately', () => {
    const resources = resourcesOf(resolve(moduleOf('site', site('{ id: http, immediately: true }, tls, { id: pkg }'))));
    expect(resources.map(({ id }) => id)).toEqual(['pkg', 'http', 'cert', 'tls', 'service']);
    expect(resources.at(-1)).toMatchObject({
      reload_on: ['path:/http', 'path:/tls', 'package-apt:nginx'],
      immediate_on: ['path:/http'],
    });
    const without = resourcesOf(resolve(moduleOf('site', site('{ id: http }, tls'))));
    expect(without.every((resource) => !Object.hasOwn(resource, 'immediate_on'))).toBe(true);
  });

  test('puts the explicit dependencies of a service before a resource that is declared earlier', () => {
    const early = moduleOf(
      'early',
      `  - { id: conf, resource: { file-unix: { path: /conf } } }
  - { id: user, resource: { user-unix: { name: web } } }
  - { id: s, depends_on: [user], resource: { service-systemd: { name: s, restart_on: [{ id: conf, immediately: true }] } } }
`,
    );
    expect(resourcesOf(resolve(early)).map(({ id }) => id)).toEqual(['user', 'conf', 's']);
  });

  test('combines immediate triggers from other modules and from notify', () => {
    const base = moduleOf('base', '  - { id: s, resource: { service-systemd: { name: s } } }\n');
    const one = moduleOf(
      'one',
      '  - { id: a, notify: [{ reload: "base:s", immediately: true }], resource: { file-unix: { path: /a } } }\n',
    );
    const two = moduleOf(
      'two',
      `  - { id: b, resource: { file-unix: { path: /b } } }
  - { resource: { service-systemd: { name: s, restart_on: [{ id: b, immediately: true }] } } }
`,
    );
    expect(find(resourcesOf(resolve(base, one, two)), 'service-systemd:s')).toMatchObject({
      reload_on: ['path:/a'],
      restart_on: ['path:/b'],
      immediate_on: ['path:/b', 'path:/a'],
    });
  });

  test('makes a checked service react immediately to the files that trigger it, even if another module adds the check', () => {
    const base = moduleOf(
      'base',
      `  - { id: a, resource: { file-unix: { path: /a } } }
  - { id: b, notify: [{ restart: s }], resource: { file-unix: { path: /b } } }
  - { id: s, resource: { service-systemd: { name: s, reload_on: [a] } } }
`,
    );
    const check = moduleOf('check', '  - { resource: { service-systemd: { name: s, confirm_port: 22 } } }\n');
    expect(find(resourcesOf(resolve(base, check)), 'service-systemd:s').immediate_on).toEqual(['path:/a', 'path:/b']);
    expect(find(resourcesOf(resolve(base)), 'service-systemd:s')).not.toHaveProperty('immediate_on');
  });

  test('makes a checked service react immediately to its configuration, even if a package also triggers it', () => {
    const text = `  - { id: pkg, resource: { package-apt: { name: nginx } } }
  - { id: site, depends_on: [pkg], resource: { file-unix: { path: /site } } }
  - { id: line, depends_on: [pkg], resource: { line-unix: { path: /etc/l, line: a } } }
  - { id: s, depends_on: [site], resource: { service-systemd: { name: s, restart_on: [pkg, line], confirm_port: 80 } } }
`;
    const resources = resourcesOf(resolve(moduleOf('web', text)));
    const { key } = resources.find(({ type }) => type === 'line-unix') ?? {};
    expect(find(resources, 'service-systemd:s').immediate_on).toEqual([key]);
  });

  test('names the checked service if its immediate trigger causes a dependency cycle', () => {
    const text = `  - { id: a, resource: { file-unix: { path: /a } } }
  - { id: x, depends_on: [a], resource: { file-unix: { path: /x } } }
  - { id: s, depends_on: [x], resource: { service-systemd: { name: s, reload_on: [a], confirm_port: 80 } } }
`;
    const resolved = resolve(moduleOf('web', text));
    expect(resolved.ok ? [] : resolved.faults.map(({ message }) => message)).toEqual([
      'module "web": dependency cycle: web/a -> web/x -> web/a; web/s reacts immediately to one of them; remove one of these dependencies',
    ]);
  });

  test('refuses immediate triggers of scripts, and unknown fields', () => {
    const script = 'resource: { script: { program: sh, apply: x, check: x';
    expect(
      uploadFaults(`  - { id: a, notify: [{ rerun: b, immediately: true }], resource: { file-unix: { path: /a } } }
  - { id: b, ${script}, rerun_on: [{ id: a, immediately: true }] } } }
  - { id: c, resource: { service-systemd: { name: c, reload_on: [{ id: a, soon: true }] } } }
`),
    ).toEqual([
      '/resources/0/notify/0/immediately cannot be combined with rerun: let later resources depend on the script instead',
      '/resources/1/resource/script/rerun_on/0/immediately cannot be combined with rerun: let later resources depend on the script instead',
      '/resources/2/resource/service-systemd/reload_on/0/soon unknown field "soon": use one of id, immediately',
    ]);
  });
});

describe('dependencies of lists', () => {
  const names = Array.from({ length: 3000 }, (_, index) => `n${index}`);
  const resolvedWith = (second: string) => {
    const parsed = parseModule(`name: m
supports: [{ platform: linux }]
parameters: { names: { type: list } }
resources:
  - { id: a, for_each: "\${{ param.names }}", resource: { script: { program: sh, apply: "true", check: "true", manages: "\${{ each }}" } } }
  - ${second}
`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    const agent = { name: 'a', node_id: '1', attributes: { platform: 'linux' }, tags: {} };
    return resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: { names } } });
  };
  const message = expect.stringContaining('the dependencies and triggers of the desired set exceed 48 MiB');

  const body = 'for_each: "${{ param.names }}", resource: { file-unix: { path: "/b/${{ each }}" } }';
  test.each(['depends_on: [a]', 'notify: [{ rerun: a }]'])(
    'refuses two long lists whose dependencies multiply through %s',
    (reference) => {
      expect(resolvedWith(`{ id: b, ${reference}, ${body} }`)).toMatchObject({ ok: false, faults: [{ message }] });
    },
  );

  test('accepts a long list that depends on a single resource', () => {
    const resolved = resolvedWith('{ id: b, depends_on: [a], resource: { file-unix: { path: /b } } }');
    expect(resolved.ok && resolved.resources.at(-1)?.depends_on.length).toBe(3000);
  });
});
