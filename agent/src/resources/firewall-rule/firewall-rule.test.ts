import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffRule, firewallRule, type SeenRule } from './firewall-rule.ts';
import { nftables } from './nftables.ts';
import { parseTable, partsOf, type Rule, renderTable, rulesOf, textOf } from './rules.ts';

type Body = ResourceBodies['firewall-rule'];

const declared = (body: Partial<Body>): ResolvedResource<'firewall-rule'> => ({
  key: 'firewall-rule:web',
  module: 'site',
  id: null,
  name: null,
  type: 'firewall-rule',
  identity: 'web',
  body: { name: 'web', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
const texts = (body: Partial<Body>) => rulesOf({ name: 'web', ...body }).map(({ text }) => text);
const plan = { purpose: 'plan' } as const;
const seen = (live: Rule[], rest: Partial<SeenRule> = {}): SeenRule => ({
  live,
  saved: live,
  firewall: 'nftables',
  isAvailable: true,
  wanted: rulesOf({ name: 'web', ports: ['80'], source: ['192.0.2.0/24'] }),
  elsewhere: [],
  ...rest,
});

describe('a declaration', () => {
  test.each<[Partial<Body>, string[]]>([
    [{}, ['accept']],
    [{ ports: ['80'] }, ['tcp dport 80 accept']],
    [{ ports: ['443', '80', '81-90', '85-100'], action: 'drop' }, ['tcp dport { 80-100, 443 } drop']],
    [{ ports: ['53'], protocol: 'any' }, ['tcp dport 53 accept', 'udp dport 53 accept']],
    [{ protocol: 'icmp' }, ['meta l4proto 1 accept', 'meta l4proto 58 accept']],
    [{ protocol: 'udp', action: 'reject' }, ['meta l4proto 17 reject']],
    [
      { ports: ['22'], source: ['192.0.2.77/24', '2001:DB8:0::1'] },
      ['ip saddr 192.0.2.0/24 tcp dport 22 accept', 'ip6 saddr 2001:db8::1 tcp dport 22 accept'],
    ],
    [{ direction: 'out', destination: ['192.0.2.7'] }, ['ip daddr 192.0.2.7 accept']],
  ])('renders %j as nft lists it', (body, rules) => {
    expect(texts(body)).toEqual(rules);
    for (const { text, direction } of rulesOf({ name: 'web', ...body })) {
      const parts = partsOf(text);
      expect(parts === null ? null : textOf(parts, direction)).toBe(text);
    }
  });

  test.each<[Partial<Body>, string]>([
    [{ direction: 'out', source: ['192.0.2.1'] }, '`source` is for incoming packets'],
    [{ destination: ['192.0.2.1'] }, '`destination` is for outgoing packets'],
    [{ protocol: 'icmp', ports: ['80'] }, 'icmp has no ports'],
    [{ source: ['192.0.2.1; flush ruleset'] }, 'is not an IP address'],
    [{ ports: ['80 accept'] }, 'is not a port'],
    [{ comment: 'a" accept' }, '`comment` must be'],
  ])('refuses %j', (body, fault) => {
    expect(() => firewallRule.check(declared(body))).toThrow(fault);
  });
});

test('orders rules by network, ports, and action, regardless of the order of their resources', () => {
  const resources: [string, Partial<Body>][] = [
    ['host', { source: ['192.0.2.1'], action: 'drop' }],
    ['network', { source: ['192.0.2.0/24'], ports: ['22'] }],
    ['closed', { ports: ['22'], action: 'drop' }],
    ['open', { ports: ['22'] }],
    ['range', { ports: ['1-1024'] }],
    ['tcp', { protocol: 'tcp' }],
    ['rest', { action: 'drop' }],
  ];
  const names = resources.map(([name]) => name);
  fc.assert(
    fc.property(fc.shuffledSubarray(resources, { minLength: resources.length }), (shuffled) => {
      const text = renderTable(new Map(shuffled.map(([name, body]) => [name, rulesOf({ name, ...body })])));
      expect([...text.matchAll(/comment "([^"]+)"/g)].map(([, name]) => name)).toEqual(names);
    }),
    { numRuns: 20 },
  );
});

test('parses the rules that it renders, and rules as nft lists them', () => {
  const rules = new Map([
    ['a', rulesOf({ name: 'a', ports: ['80', '443'], comment: 'for: all' })],
    ['b', rulesOf({ name: 'b', action: 'reject', direction: 'out', destination: ['2001:db8::/32'] })],
  ]);
  expect(parseTable(renderTable(rules))).toEqual(rules);
  const listed = 'chain output {\n\t\tip6 daddr 2001:db8::/32 reject with icmpx port-unreachable comment "b"\n\t}';
  expect(parseTable(listed)).toEqual(new Map([['b', rules.get('b')]]));
  expect(renderTable(new Map())).toBe('table inet muster\ndelete table inet muster\n');
});

test('reports the fields that differ, and rules that are missing only from the configuration for the next boot', () => {
  const body = { ports: ['80'], source: ['192.0.2.0/24'] };
  const fields = (found: SeenRule) => diffRule(declared(body), found, plan).changes.map(({ field }) => field);
  const rules = rulesOf({ name: 'web', ...body });
  expect(fields(seen(rules))).toEqual([]);
  expect(fields(seen([]))).toEqual(['ensure', 'action', 'direction', 'protocol', 'ports', 'source']);
  expect(fields(seen(rulesOf({ name: 'web', ...body, ports: ['80', '81'] })))).toEqual(['ports']);
  expect(fields(seen(rulesOf({ name: 'web', ports: ['80'], action: 'drop' })))).toEqual(['action', 'source']);
  expect(fields(seen(rules, { saved: [] }))).toEqual(['persisted']);
});

test("waits for nft, and reports the field that the machine's firewall does not support", () => {
  expect(diffRule(declared({}), seen([], { isAvailable: false }), plan).awaits).toMatchObject([{ kind: 'programs' }]);
  const faulty = seen([], { firewall: 'ufw', wanted: { fault: 'no rules for `protocol: icmp`' } });
  expect(() => diffRule(declared({}), faulty, plan)).toThrow('`protocol: icmp`');
  expect(diffRule(declared({}), faulty, { purpose: 'drift' }).action).toBe('create');
  expect(() => nftables.wanted({ name: 'web', zone: 'public' })).toThrow('`zone` is for machines with firewalld');
  expect(() => nftables.wanted({ name: 'web', action: 'limit' })).toThrow('`action: limit`');
});

test('shows that a rule moves to the firewall that the machine now uses', () => {
  const rules = rulesOf({ name: 'web', ports: ['80'], source: ['192.0.2.0/24'] });
  const earlier = { firewall: 'nftables' as const, live: rules, saved: rules };
  const body = { ports: ['80'], source: ['192.0.2.0/24'] };
  const moved = { firewall: 'ufw' as const, elsewhere: [earlier] };
  const fields = (found: SeenRule) => diffRule(declared(body), found, plan);
  const firewall = { field: 'firewall', from: 'nftables', to: 'ufw' };
  expect(fields({ ...seen(rules), live: null, saved: null, ...moved })).toMatchObject({
    action: 'update',
    changes: [firewall],
  });
  expect(fields({ ...seen(rules), ...moved }).changes).toEqual([firewall]);
  expect(diffRule(declared({ ensure: 'absent' }), { ...seen([]), live: null, ...moved }, plan).action).toBe('remove');
});
