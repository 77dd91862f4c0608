import { describe, expect, test } from 'vitest';
import type { AgentFacts } from '../conditions.ts';
import type { Json } from '../document.ts';
import { parseModule } from '../parse.ts';
import { type Resolution, resolveDesiredSet } from '../resolve.ts';

const agent: AgentFacts = {
  name: 'web-1',
  node_id: '0123456789abcdef0123456789abcdef',
  attributes: { platform: 'linux', family: 'debian' },
  tags: { role: 'web' },
};

const head = `name: m
supports: [{ platform: linux }]
parameters:
  users: { type: list, default: [{ name: ann, uid: 7, secret: ann_key }, { name: bob }] }
  tls: { type: boolean, default: true }
  ports: { type: list, default: [80, 443] }
  motd: { type: string }
`;

function resolved(resources: string, parameters: Record<string, Json> = {}): Resolution {
  const parsed = parseModule(`${head}resources:\n${resources}`);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join('\n'));
  return resolveDesiredSet({ modules: [parsed.module], agent, parameters: { m: parameters } });
}

function bodies(resolution: Resolution): Json[] {
  if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
  return resolution.resources.map(({ body }) => body);
}

/** Returns `line:column message` for each upload error. */
function faults(resources: string): string[] {
  const parsed = parseModule(`${head}resources:\n${resources}`);
  return parsed.ok ? [] : parsed.faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

const file = (content: string): string =>
  `  - { resource: { file-unix: { path: /f, content: ${JSON.stringify(content)} } } }`;

describe('expressions in resources', () => {
  test('leaves out a field whose value is `omit`', () => {
    const resource =
      '  - { resource: { file-unix: { path: /f, mode: "${{ param.tls ? omit : \'0600\' }}", content: "${{ param.motd | omit }}" } } }';
    expect(bodies(resolved(resource))).toEqual([{ path: '/f' }]);
    expect(bodies(resolved(resource, { tls: false, motd: 'hi' }))).toEqual([
      { path: '/f', mode: '0600', content: 'hi' },
    ]);
  });

  test('refuses to omit a required field', () => {
    const resolution = resolved('  - { resource: { file-unix: { path: "${{ param.motd | omit }}" } } }');
    expect(resolution).toMatchObject({
      ok: false,
      faults: [{ message: 'module "m": is required, so its value cannot be omitted: use | default(…)' }],
    });
  });

  test('removes a list element whose value is `omit`, and keeps the position of a secret after it', () => {
    const resource =
      '  - { resource: { script: { program: sh, apply: "${{ secrets.a }}", manages: x, check: "true" } } }\n' +
      '  - { resource: { user-unix: { name: a, additional_groups: ["${{ param.motd | omit }}", "b", "${{ agent.name + \'-g\' }}"] } } }';
    expect(bodies(resolved(resource))[1]).toEqual({ name: 'a', additional_groups: ['b', 'web-1-g'] });
  });

  test('provides `each` and `index` in a loop over the result of an expression', () => {
    const resource = `  - id: user
    for_each: "\${{ param.users.filter(u, u.name != 'bob' || param.tls) }}"
    resource: { user-unix: { name: "\${{ each.name.upperAscii().lowerAscii() }}", uid: "\${{ each.uid | default(1000 + index) }}" } }`;
    expect(bodies(resolved(resource))).toEqual([
      { name: 'ann', uid: 7 },
      { name: 'bob', uid: 1001 },
    ]);
  });

  test('lists a secret with a computed name and hides its field', () => {
    const resource = `  - for_each: "\${{ param.users.filter(u, has(u.secret)) }}"
    resource: { file-unix: { path: "/k/\${{ each.name }}", content: "key=\${{ secrets[each.secret] }}" } }`;
    const resolution = resolved(resource);
    expect(resolution).toMatchObject({
      ok: true,
      secrets: ['ann_key'],
      required_secrets: ['ann_key'],
      resources: [{ sensitive_fields: ['content'], body: { content: '' } }],
    });
  });

  test('evaluates lists and strings with expressions', () => {
    expect(bodies(resolved(file('${{ param.ports.map(p, "Listen " + string(p)) | join("\\n") }}')))).toEqual([
      { path: '/f', content: 'Listen 80\nListen 443' },
    ]);
  });
});

describe('an upload reports the place of a wrong expression, and what to write', () => {
  test.each([
    ['x ${{ param.prots.size() }}', '9:54 there is no parameter "prots": did you mean "ports"?'],
    ['${{ each.a + "b" }}', '9:52 "each" exists only in a resource with for_each'],
    ['${{ index + 1 }}', '9:52 "index" exists only in a resource with for_each'],
    [
      '${{ param.ports.filter(p, p > 80) }}',
      '9:52 the expression yields list, which is not allowed here without | join("…")',
    ],
    ['${{ agent.nam + "" }}', '9:52 "agent.nam" is not of the form agent.name or agent.node_id'],
    ['${{ param.ports | jion(",") }}', '9:52 unknown function "jion": did you mean "json"?'],
    ['${{ attr.family = "debian" }}', '9:52 the expression is not valid CEL at "= \\"debian\\"": write == to compare'],
    ['${{ param.tls and true }}', '9:52 the expression is not valid CEL at "and true": write && for and'],
  ])('refuses %s', (content, message) => {
    expect(faults(file(content))).toEqual([message]);
  });

  test('refuses a secret in a place where it would be shown', () => {
    const found = faults('  - { resource: { file-unix: { path: "/${{ secrets[param.motd] }}" } } }');
    expect(found).toEqual([
      '9:40 a secret is not allowed here, because the value is shown, or checked before secrets are known: use a parameter',
    ]);
  });

  test('refuses a type that the field does not accept', () => {
    expect(faults("  - { resource: { user-unix: { name: a, additional_groups: \"${{ 'a' + 'b' }}\" } } }")).toEqual([
      '9:61 the expression yields string, which is not allowed here',
    ]);
  });
});
