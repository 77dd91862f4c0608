import { expect, test, vi } from 'vitest';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import { compareTexts, lookedUp, lookupList, sortedValues } from './lookups.ts';

const agent = { name: 'web-1', node_id: 'a'.repeat(32), attributes: { platform: 'linux' }, tags: {} };

const source = (lookups: string, resource: string, more = '') =>
  `name: m\nsupports: [{ platform: linux }]\nlookups: ${lookups}\n${more}resources:\n  - id: a\n    ${resource}\n`;
const file = (content: string) => `resource: { file-unix: { path: /a, content: ${JSON.stringify(content)} } }`;
const nodes = '{ nodes: { selector: "role=web", of: attr.default_address } }';

const faultsOf = (text: string): string[] => {
  const parsed = parseModule(text);
  return parsed.ok ? [] : parsed.faults.map(({ line, column, message }) => `${line}:${column} ${message}`);
};

function resolved(text: string, lookups: Record<string, Record<string, (string | Record<string, string>)[]>>) {
  const parsed = parseModule(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return resolveDesiredSet({ modules: [parsed.module], agent, lookups });
}

test('inserts the values of a lookup into an expression', () => {
  const values = { m: { nodes: ['10.0.0.1', '10.0.0.2'] } };
  expect(
    resolved(source(nodes, file('${{ lookup.nodes | join(",") }} ${{ size(lookup.nodes) }}')), values),
  ).toMatchObject({
    ok: true,
    resources: [{ body: { content: '10.0.0.1,10.0.0.2 2' } }],
  });
  const each = 'for_each: "${{ lookup.nodes }}"\n    resource: { host-entry: {} }'.replace(
    'resource: { host-entry: {} }',
    'resource: { file-unix: { path: "/n/${{ each }}", content: x } }',
  );
  expect(resolved(source(nodes, each), values)).toMatchObject({
    ok: true,
    resources: [{ identity: '/n/10.0.0.1' }, { identity: '/n/10.0.0.2' }],
  });
});

test('yields an empty list for a lookup whose condition is false', () => {
  const lookups = '{ nodes: { when: { tag.role: db }, selector: "role=web", of: agent.name } }';
  const content = file('${{ lookup.nodes | join(",") }}');
  const unused = resolved(source(lookups, content), {});
  expect(unused).toMatchObject({ ok: true, resources: [{ body: { content: '' } }] });
  expect(unused).not.toHaveProperty('lookups');
  const inCel = lookups.replace('{ tag.role: db }', `"attr.platform == 'linux'"`);
  expect(resolved(source(inCel, content), { m: { nodes: ['a', 'b'] } })).toMatchObject({
    ok: true,
    resources: [{ body: { content: 'a,b' } }],
    lookups: ['m:nodes'],
  });
  const wrong = lookups.replace('{ tag.role: db }', '"size(lookup.nodes) > 1"');
  expect(faultsOf(source(wrong, content))).toEqual([
    expect.stringContaining('lookups have no values here: use facts and tags'),
  ]);
  const unknown = lookups.replace('{ tag.role: db }', '{ param.x: y }');
  expect(faultsOf(source(unknown, content))).toEqual([expect.stringContaining('"x"')]);
});

test('reads a lookup in the condition of a resource', () => {
  const resource = `when: "lookup.nodes[0] == agent.name"\n    ${file('first')}`;
  const chosen = (names: string[]) => resolved(source(nodes, resource), { m: { nodes: names } });
  expect(chosen(['web-1', 'web-2'])).toMatchObject({ ok: true, resources: [{ identity: '/a' }] });
  expect(chosen(['web-0', 'web-1'])).toMatchObject({ ok: true, resources: [] });
});

test('reports a lookup without a value at its position', () => {
  expect(resolved(source(nodes, file('x')), {})).toMatchObject({
    ok: false,
    faults: [
      {
        path: '/modules/m/lookups/nodes',
        line: 3,
        message: expect.stringContaining('the lookup "nodes" has no value'),
      },
    ],
  });
});

test('sorts numbers within strings by value, and removes duplicates', () => {
  expect(sortedValues(['web-10', 'web-2', 'b', 'web-2', '10.0.0.10', '10.0.0.9', '1.0', '1.00'])).toEqual([
    '1.0',
    '1.00',
    '10.0.0.9',
    '10.0.0.10',
    'b',
    'web-2',
    'web-10',
  ]);
});

test('sorts mappings key by key in the declared order, and removes duplicates', () => {
  const [b, first, second] = [
    { name: 'b', port: '1' },
    { port: '9', name: 'a-2' },
    { name: 'a-2', port: '10' },
  ];
  expect(sortedValues([b, second, first, { name: 'a-10' }, { ...b }], ['name', 'port'])).toEqual([
    first,
    second,
    { name: 'a-10' },
    b,
  ]);
});

test('yields a mapping only for an agent that has all of its values', () => {
  const of = { name: 'agent.name', zone: 'tag.zone' };
  expect(lookedUp(of, { ...agent, tags: { zone: 'a' } })).toEqual({ name: 'web-1', zone: 'a' });
  expect(lookedUp(of, agent)).toBeUndefined();
});

test.each(['a\n10.0.0.1 bank', 'a\rb', 'a\u0000', 'a\u0085b', 'a\u2028b'])(
  'omits an agent whose value is %j from mappings, but not from texts',
  (zone) => {
    const other = { ...agent, tags: { zone } };
    expect(lookedUp({ zone: 'tag.zone' }, other)).toBeUndefined();
    expect(lookedUp('tag.zone', other)).toBe(zone);
  },
);

test('compares equal texts immediately, so that long equal values do not block the process', () => {
  const compareVersions = vi.fn(() => 0);
  expect(compareTexts('1a', '1a', compareVersions)).toBe(0);
  expect(compareVersions).not.toHaveBeenCalled();
  expect(compareTexts('1a', '01a', compareVersions)).toBeGreaterThan(0);
  expect(compareVersions).toHaveBeenCalledOnce();
});

test('refuses a lookup with too many values or characters', () => {
  const many = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...agent,
      name: `w-${index}`,
      tags: { text: 'x'.repeat(length) },
    }));
  const long = lookupList({ name: 'agent.name', text: 'tag.text' }, many(200, 65_536));
  expect(long.length).toBeLessThan(70);
  const numerous = lookupList('agent.name', many(10_001, 1));
  expect(numerous).toHaveLength(10_001);
  const refused = (list: (string | Record<string, string>)[]) =>
    resolved(source(nodes, file('x')), { m: { nodes: list } });
  expect(refused(long as Record<string, string>[])).toMatchObject({
    ok: false,
    faults: [{ message: expect.stringContaining('the lookup "nodes" has more than 4 MiB of text') }],
  });
  expect(refused(numerous as string[])).toMatchObject({
    ok: false,
    faults: [{ message: expect.stringContaining('has 10001 values') }],
  });
});

test('sorts different mappings in a fixed order, even if one mapping lacks a key', () => {
  const [one, other] = [{ role: '1' }, { role: '1', z: '' }];
  expect(sortedValues([one, other], ['role', 'z'])).toEqual(sortedValues([other, one], ['role', 'z']));
});

test('lists the values of the agents that have a value, in order', () => {
  const agents = ['web-10', 'web-2'].map((name) => ({ ...agent, name, tags: name === 'web-2' ? { rack: '4' } : {} }));
  expect(lookupList('agent.name', agents)).toEqual(['web-2', 'web-10']);
  expect(lookupList({ rack: 'tag.rack' }, agents)).toEqual([{ rack: '4' }]);
  expect(lookupList({ name: 'agent.name', rack: 'tag.rack' }, agents)).toEqual([{ name: 'web-2', rack: '4' }]);
});

test('inserts keys of a lookup into an expression', () => {
  const peers = '{ peers: { selector: "role=vpn", of: { name: agent.name, key: attr.wireguard.key } } }';
  const content = '${{ for peer in lookup.peers }}${{ peer.name }}=${{ peer.key | default("-") }} ${{ end }}';
  const values = { m: { peers: [{ name: 'a', key: 'K' }, { name: 'b' }] } };
  expect(resolved(source(peers, file(content)), values)).toMatchObject({
    ok: true,
    resources: [{ body: { content: 'a=K b=- ' } }],
  });
  expect(faultsOf(source(peers, file('${{ lookup.peers[0].secret }} ${{ secrets[lookup.peers[0].key] }}')))).toEqual([
    expect.stringContaining('lookup and secrets cannot be in one expression'),
  ]);
});

test.each([
  ['{}', 'must have 1 to 8 keys'],
  ['{ a: ip }', 'must be agent.name, agent.node_id, or an attribute or a tag'],
  ['{ a: { b: agent.name } }', 'must be text'],
  ['{ "1-a": agent.name }', 'is not a valid key'],
  ['[agent.name]', 'must be text, such as attr.default_address, or a mapping of keys to such texts'],
  ['{ in: agent.name }', 'is a reserved word of expressions'],
  [`{ ${Array.from({ length: 9 }, (_, index) => `k${index}: agent.name`).join(', ')} }`, 'must have 1 to 8 keys'],
])('refuses a lookup with `of: %s`', (of, message) => {
  expect(faultsOf(source(`{ n: { selector: "role=web", of: ${of} } }`, file('x')))).toEqual([
    expect.stringContaining(message),
  ]);
});

test('reads the name, the id, attributes, and tags, and ignores inherited properties', () => {
  const other = { ...agent, tags: { zone: 'a' } };
  expect(
    ['agent.name', 'agent.node_id', 'attr.platform', 'tag.zone', 'attr.constructor'].map((of) => lookedUp(of, other)),
  ).toEqual(['web-1', 'a'.repeat(32), 'linux', 'a', undefined]);
});

test('refuses an invalid lookup, and suggests a correction', () => {
  expect(faultsOf(source('{ n: { selector: "role=", of: ip } }', file('x')))).toEqual([
    expect.stringMatching(/^3:27 .*\(column \d+ of the selector\)$/),
    '3:40 must be agent.name, agent.node_id, or an attribute or a tag, for example attr.default_address',
  ]);
  expect(faultsOf(source('{ n: { selector: " ", of: attr.x } }', file('x')))).toEqual([
    '3:27 must select agents, for example "role=web"',
  ]);
  expect(faultsOf(source(nodes, file('${{ lookup.node }}')))).toEqual([
    expect.stringContaining('there is no lookup "node": did you mean "nodes"?'),
  ]);
});

test('refuses to let values from other agents choose a secret', () => {
  const fixed = 'in a module with lookups, the name of a secret must be fixed';
  const refused = (content: string) =>
    faultsOf(source(nodes, file(content), 'parameters: { p: { type: string, format: secret-name } }\n'));
  for (const content of ['${{ secrets[lookup.nodes[0]] }}', '${{ size(lookup.nodes) > 1 ? secrets.a : secrets.b }}'])
    expect(refused(content)).toEqual([expect.stringContaining('lookup and secrets cannot be in one expression')]);
  for (const content of [
    '${{ secrets["a" + tag.x] }}',
    '${{ secret(attr.x) }}',
    '${{ ["a"].map(param, secrets[param])[0] }}',
    '${{ ["a"].map(x, secret(x))[0] }}',
  ])
    expect(refused(content), content).toEqual([expect.stringContaining(fixed)]);
  for (const content of [
    '${{ secrets.a }}',
    '${{ secrets["a"] }}',
    '${{ secrets[param.p] }}',
    '${{ secret(param.p) }}',
  ])
    expect(refused(content), content).toEqual([]);
  const each =
    'for_each: "${{ lookup.nodes }}"\n    resource: { file-unix: { path: "/n/${{ each }}", content: "${{ secrets[each] }}" } }';
  expect(faultsOf(source(nodes, each))).toEqual([expect.stringContaining(fixed)]);
});
