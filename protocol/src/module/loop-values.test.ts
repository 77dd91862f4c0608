import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentFacts } from './conditions.ts';
import type { Json } from './document.ts';
import { parseModule } from './parse.ts';
import { type Resolution, resolveDesiredSet } from './resolve.ts';

const agent: AgentFacts = { name: 'web-1', node_id: '0', attributes: { platform: 'linux' }, tags: {} };

const head = `name: m
supports: [{ platform: linux }]
parameters:
  users: { type: list, default: [{ name: ann, uid: 7 }, { name: bob }] }
  shells: { type: map, default: { ann: /bin/sh, bob: /bin/bash } }
  big: { type: list, default: [] }
resources:
`;

function resolved(resources: string, parameters: Record<string, Json> = {}): Resolution {
  const parsed = parseModule(head + resources);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
  return resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: parameters } });
}

function shown(resolution: Resolution): Json[] {
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  return resolution.resources.map(({ id, body }) => [id, body as Json]);
}

const unresolved = (resolution: Resolution): string[] =>
  resolution.ok ? [] : resolution.faults.map(({ path, message }) => `${path} ${message}`);

const uploadFaults = (resources: string): string[] => {
  const parsed = parseModule(head + resources);
  return parsed.ok ? [] : parsed.faults.map(({ path, message }) => `${path} ${message}`);
};

const file = (path: string, content = ''): string =>
  `resource: { file-unix: { path: "${path}", content: "${content}" } }`;

describe('values in place', () => {
  test('keeps the types of values in a list of strings with expressions', () => {
    const list =
      '[a, "${{ param.shells.ann }}x", "${{ param.users[0].uid }}", "${{ omit }}", { n: "${{ agent.name }}" }]';
    expect(shown(resolved(`  - { id: f, for_each: ${list}, ${file('/f${{ index }}', '${{ json(each) }}')} }`))).toEqual(
      [
        ['f[0]', { path: '/f0', content: '"a"' }],
        ['f[1]', { path: '/f1', content: '"/bin/shx"' }],
        ['f[2]', { path: '/f2', content: '7' }],
        ['f[3]', { path: '/f3', content: '{"n":"web-1"}' }],
      ],
    );
  });

  test('refuses strings in place of a map, and uses the map’s keys in IDs', () => {
    const map = '{ www: { mode: "0755" }, private: { mode: "${{ \'0\' + \'700\' }}" } }';
    expect(
      shown(resolved(`  - { id: d, for_each: ${map}, ${file('/${{ each.key }}', '${{ each.value.mode }}')} }`)),
    ).toEqual([
      ['d[www]', { path: '/www', content: '0755' }],
      ['d[private]', { path: '/private', content: '0700' }],
    ]);
    expect(shown(resolved(`  - { id: d, for_each: {}, ${file('/${{ each.key }}')} }`))).toEqual([]);
  });

  test('refuses invalid expressions in loops during an upload', () => {
    expect(uploadFaults(`  - { for_each: [a, "\${{ param.user }}"], ${file('/${{ each }}')} }`)).toEqual([
      '/resources/0/for_each/1 there is no parameter "user": did you mean "users"?',
    ]);
    expect(uploadFaults(`  - { for_each: { a: { b: "\${{ secrets.x }}" } }, ${file('/${{ each.key }}')} }`)).toEqual([
      '/resources/0/for_each/a/b a secret is not allowed here, because the value is shown, or checked before secrets are known: use a parameter',
    ]);
  });

  test('treats keys such as __proto__ as ordinary keys', () => {
    const keys = ['__proto__', 'constructor', 'toString'];
    const shells = Object.fromEntries(keys.map((key) => [key, key]));
    const resources = `  - { id: u, for_each: "\${{ param.shells }}", ${file('/${{ each.key }}', '${{ each.value }}')} }`;
    expect(shown(resolved(resources, { shells }))).toEqual(
      keys.map((key) => [`u[${key}]`, { path: `/${key}`, content: key }]),
    );
  });

  test('repeats a resource for each combination of values in nested loops', () => {
    const name = fc.stringMatching(/^[a-z]{1,8}$/);
    const rows = fc.uniqueArray(fc.record({ name, keys: fc.uniqueArray(name, { maxLength: 4 }) }), {
      maxLength: 5,
      selector: (row) => row.name,
    });
    const resources = `  - { id: k, for_each: { u: param.users, k: u.keys }, ${file('/${{ u.name }}/${{ k }}')} }`;
    fc.assert(
      fc.property(rows, (users) => {
        const found = shown(resolved(resources, { users })).map((one) => (one as [string, { path: string }])[1].path);
        expect(found).toEqual(users.flatMap((user) => user.keys.map((key) => `/${user.name}/${key}`)));
      }),
      { numRuns: 50 },
    );
  });

  test('suggests a correction for a missing key', () => {
    const user = (uid: string) =>
      `  - { id: u, for_each: "\${{ param.users }}", resource: { user-unix: { name: "\${{ each.name }}", uid: "${uid}" } } }`;
    expect(shown(resolved(user('${{ each.uid | omit }}')))).toEqual([
      ['u[0]', { name: 'ann', uid: 7 }],
      ['u[1]', { name: 'bob' }],
    ]);
    expect(unresolved(resolved(user('${{ each.uid }}')))[0]).toContain(
      'each.uid has no value: fix the list, or give the expression | default("…"), or | omit to leave the field out',
    );
  });
});

describe('long lists with errors', () => {
  const big = Array.from({ length: 2000 }, (_, index) => index);

  test('reports the first element for which `where` cannot be evaluated', () => {
    const found = unresolved(
      resolved(`  - { for_each: "\${{ param.big }}", where: each.x, ${file('/${{ each }}')} }`, { big }),
    );
    expect(found).toHaveLength(1);
    expect(found[0]).toContain('element 0: ');
  });

  test('stops at the maximum number of errors', () => {
    const parsed = parseModule(`${head}  - { for_each: "\${{ param.big }}", ${file('${{ each }}')} }`);
    if (!parsed.ok) throw new Error('the module has errors');
    let read = 0;
    const counted = new Proxy(agent.attributes, {
      get: (target, key) => {
        read += 1;
        return Reflect.get(target, key);
      },
    });
    const facts = { ...agent, attributes: counted };
    const found = resolveDesiredSet({ modules: [parsed.module], agent: facts, parameters: { m: { big } } });
    expect(found).toMatchObject({ ok: false });
    expect(read).toBeLessThan(2000);
    expect(unresolved(found)).toHaveLength(500);
  });
});

describe('equal declarations in one module', () => {
  test('merges resources from loops, with the fields and dependencies of all of them', () => {
    const resolution = resolved(`  - { id: a, resource: { directory-unix: { path: /srv, owner: root } } }
  - { id: b, depends_on: [a], resource: { directory-unix: { path: /srv/, mode: "0755" } } }
  - { id: c, depends_on: [b], ${file('/srv/x')} }
`);
    expect(shown(resolution)).toEqual([
      ['a', { path: '/srv', owner: 'root', mode: '0755' }],
      ['c', { path: '/srv/x', content: '' }],
    ]);
    expect(resolution).toMatchObject({ resources: [{ depends_on: [] }, { depends_on: ['path:/srv'] }] });
  });

  test('merges equal resources from nested loops', () => {
    const users = [{ groups: ['a', 'b'] }, { groups: ['b'] }];
    const group = (gid: string) =>
      `  - { id: g, for_each: { u: param.users, name: u.groups }, resource: { group-unix: { name: "\${{ name }}", gid: ${gid} } } }`;
    expect(shown(resolved(group('7'), { users }))).toEqual([
      ['g[0,0]', { name: 'a', gid: 7 }],
      ['g[0,1]', { name: 'b', gid: 7 }],
    ]);
    expect(unresolved(resolved(group('"${{ index + 1 }}"'), { users }))[0]).toContain(
      'group-unix b is declared differently in module "m" (id "g[0,1]") and module "m" (id "g[1,0]"): the values of `gid` differ',
    );
  });

  test('reports a conflict only if an expression makes the resources differ', () => {
    const resources = `  - { id: a, ${file('/f', 'x')} }\n  - { id: b, ${file('/f', '${{ param.shells.ann }}')} }\n`;
    expect(shown(resolved(resources, { shells: { ann: 'x' } }))).toEqual([['a', { path: '/f', content: 'x' }]]);
    expect(unresolved(resolved(resources))).toEqual([
      '/modules/m/resources/1/resource/file-unix file-unix /f is declared differently in module "m" (id "a") and module "m" (id "b"): the values of `content` differ; keep one of them, or make them agree',
    ]);
  });
});
