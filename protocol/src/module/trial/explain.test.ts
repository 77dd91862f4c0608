import { expect, test } from 'vitest';
import { parseModule } from '../parse.ts';
import { readAgentFacts, readParameters } from './agent-facts.ts';
import { explainDesiredSet } from './explain.ts';
import { tryExpression } from './try-expression.ts';

function moduleOf(source: string) {
  const parsed = parseModule(source);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.module;
}

const agent = { name: 'web-1', node_id: 'a'.repeat(32), attributes: { platform: 'linux', cpus: '4' }, tags: {} };

const users = moduleOf(`name: users
supports: [{ platform: linux }]
parameters:
  names: { type: list, default: [ann, bob] }
templates: [{ id: t, content: "\${{ each }} \${{ attr.cpus }}" }]
resources:
  - id: home
    for_each: "\${{ param.names }}"
    resource:
      file-unix:
        path: /home/\${{ each }}
        template: t
`);

test('states the origin of each value of a resource', () => {
  const explained = explainDesiredSet({ modules: [users], agent, parameters: { users: { names: ['eve'] } } });
  if (!explained.ok) throw new Error(JSON.stringify(explained.faults));
  expect(explained.resources[0]).toMatchObject({
    id: 'home[0]',
    element: '0',
    identity: '/home/eve',
    places: [{ module: 'users', line: 11, column: 9 }],
    fields: {
      path: { value: '/home/eve', place: { line: 11, column: 15 }, from: ['each'] },
      content: { value: 'eve 4', place: { line: 5, column: 31 }, from: ['attr.cpus', 'each'] },
    },
  });
  expect(explained.parameters.users?.names).toEqual({
    value: ['eve'],
    origin: 'given',
    from: 'given',
    name: null,
    place: { module: 'users', line: 4, column: 10 },
  });
});

test('reports the reference to a template file as the position of the content', () => {
  const source =
    'name: m\nsupports: [{ platform: linux }]\nresources:\n  - resource: { file-unix: { path: /a, template: a.conf } }\n';
  const files = new Map([['a.conf', { path: 'a.conf', sha256: '', size: 4, executable: false }]]);
  const parsed = parseModule(source, { files, textOf: () => 'text' });
  const explained = explainDesiredSet({ modules: parsed.ok ? [parsed.module] : [], agent });
  expect(explained.ok && explained.resources[0]?.fields.content).toMatchObject({
    value: 'text',
    place: { line: 4, column: 50 },
  });
});

test('adds the position, the ID, and the element to a resolution error', () => {
  const module = moduleOf(`name: m
supports: [{ platform: linux }]
resources:
  - id: site
    for_each: "\${{ ['aa', 'b c'] }}"
    resource:
      package-apt:
        name: \${{ each }}
`);
  const explained = explainDesiredSet({ modules: [module], agent });
  expect(explained).toMatchObject({
    ok: false,
    faults: [{ line: 8, column: 15, message: expect.stringMatching(/^module "m": resource "site\[1\]" \("b c"\): /) }],
  });
});

test('refuses a module if a module that it requires is missing, and accepts values for required modules', () => {
  const base = moduleOf(`name: base
supports: [{ platform: linux }]
parameters: { motd: { type: string, default: hi } }
resources: [{ id: motd, resource: { file-unix: { path: /etc/motd, content: "\${{ param.motd }}" } } }]
`);
  const site = moduleOf(
    'name: site\nsupports: [{ platform: linux }]\nrequires:\n  - { module: base, with: { motd: x } }\n',
  );
  expect(explainDesiredSet({ modules: [site], agent })).toMatchObject({
    ok: false,
    code: 'module_unresolved',
    faults: [
      { message: 'module "site" requires "base", which is not among the given modules: add it', line: 4, column: 5 },
    ],
  });
  const explained = explainDesiredSet({ modules: [site, base], agent });
  if (!explained.ok) throw new Error(JSON.stringify(explained.faults));
  expect(explained.resources[0]?.fields.content?.value).toBe('x');
});

test('evaluates an expression for an agent without ever showing a secret', () => {
  const tried = (source: string) => tryExpression(source, { agent, module: users, parameters: {}, lookups: {} });
  expect(tried('int(attr.cpus) * 2')).toEqual({ result: { kind: 'value', value: 8 }, from: ['attr.cpus'] });
  expect(tried('param.names | join("-")').result).toEqual({ kind: 'value', value: 'ann-bob' });
  expect(tried('${{ agent.name }}!').result).toEqual({ kind: 'value', value: 'web-1!' });
  expect(tried('secrets.db').result).toEqual({ kind: 'secret', text: '${{ secrets.db }}' });
  expect(tried('secrets["db"]').result).toEqual({ kind: 'secret', text: '${{ secrets.db }}' });
  expect(tried('attr.none').result).toMatchObject({ kind: 'fault' });
  expect(tried('param.names[0] | omit').result).toEqual({ kind: 'value', value: 'ann' });
});

test('reads facts from YAML and from an agent record', () => {
  const yaml = readAgentFacts('attributes: { platform: linux, cpus: 4, rack: { row: 7 } }');
  expect(yaml).toMatchObject({
    ok: true,
    value: { agent: { name: 'test-agent', attributes: { platform: 'linux', cpus: '4', 'rack.row': '7' }, tags: {} } },
  });
  const record = { ...agent, status: 'approved', connected: true };
  expect(readAgentFacts(JSON.stringify(record))).toMatchObject({ ok: true, value: { agent } });
  expect(readAgentFacts('attribute: {}')).toEqual({
    ok: false,
    faults: [
      { path: '/attribute', message: 'unknown field "attribute": did you mean "attributes"?', line: 1, column: 1 },
    ],
  });
});

test('accepts parameters of a single module without the module’s name', () => {
  for (const source of ['names: [eve]', 'users: { names: [eve] }'])
    expect(readParameters(source, [users])).toMatchObject({ ok: true, value: { users: { names: ['eve'] } } });
  const site = moduleOf('name: site\nrequires: [{ module: users }]\nparameters: { port: { type: integer } }\n');
  expect(readParameters('port: 1', [site, users])).toMatchObject({ value: { site: { port: 1 } } });
  expect(readParameters('users: { names: [] }', [site, users])).toMatchObject({ value: { users: { names: [] } } });
});

test('refuses given values that a lookup cannot have', () => {
  const module = moduleOf(`name: m
supports: [{ platform: linux }]
lookups:
  peers: { selector: role=web, of: { name: agent.name, key: tag.key } }
  names: { selector: role=web, of: agent.name }
resources:
  - resource: { file-unix: { path: /f, content: "\${{ lookup.names | join(',') }}\${{ size(lookup.peers) }}" } }
`);
  const explained = (lookups: Record<string, (string | Record<string, string>)[]>) =>
    explainDesiredSet({ modules: [module], agent, lookups: { m: { names: [], peers: [], ...lookups } } });
  const messages = (lookups: Parameters<typeof explained>[0]) => {
    const result = explained(lookups);
    return result.ok ? [] : result.faults.map(({ path, message }) => `${path} ${message}`);
  };
  expect(messages({ names: ['a'], peers: [{ name: 'a', key: 'k' }] })).toEqual([]);
  const at = (name: string) => expect.stringContaining(`/modules/m/lookups/${name}/of module "m": value `);
  expect(messages({ names: ['a', { name: 'b' }], peers: ['x'] })).toEqual([at('peers'), at('names')]);
  expect(messages({ peers: ['x'] })[0]).toContain('must be a mapping with the keys of `of`: name, key');
  expect(messages({ peers: [{ name: 'a', key: 'k' }, { name: 'b' }] })[0]).toContain(
    'value 2 of the lookup "peers" lacks the key "key"',
  );
  expect(messages({ peers: [{ name: 'a', key: 'k', kez: '' }] })[0]).toContain('has the key "kez"');
  expect(messages({ names: [{ name: 'b' }] })[0]).toContain('must be a text');
});
