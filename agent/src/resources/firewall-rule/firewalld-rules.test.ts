import { expect, test } from 'vitest';
import { parseZones, presentRules, priorityOf, richRulesOf, without, zoneRulesOf } from './firewalld-rules.ts';
import { type Body, type Rule, rulesOf } from './rules.ts';

const inZone = (body: Partial<Body>, zone = 'public'): Rule[] =>
  rulesOf({ name: 'web', ...body }).map((rule) => ({ ...rule, zone }));

test.each<[Partial<Body>, string[]]>([
  [{ action: 'drop' }, ['rule drop']],
  [
    { ports: ['80', '8000-8010'], action: 'reject' },
    ['rule port port="80" protocol="tcp" reject', 'rule port port="8000-8010" protocol="tcp" reject'],
  ],
  [
    { ports: ['80'], source: ['192.0.2.7/24', '2001:DB8::1'] },
    [
      'rule family="ipv4" source address="192.0.2.0/24" port port="80" protocol="tcp" accept',
      'rule family="ipv6" source address="2001:db8::1" port port="80" protocol="tcp" accept',
    ],
  ],
  [{ protocol: 'icmp' }, ['rule protocol value="icmp" accept', 'rule protocol value="ipv6-icmp" accept']],
])('writes %j as firewalld lists it', (body, rules) => {
  const rich = inZone(body).flatMap(richRulesOf);
  expect(rich.map((each) => each.rich.replace(/ priority="-\d+"/, ''))).toEqual(rules);
});

test('orders rules by their priority, before the rules of the zone', () => {
  const bodies: Partial<Body>[] = [
    { source: ['192.0.2.1'], action: 'drop' },
    { source: ['192.0.2.0/24'], ports: ['22'] },
    { ports: ['22'], action: 'drop' },
    { ports: ['22'] },
    { ports: ['1-1024'] },
    { protocol: 'tcp' },
    { action: 'drop' },
    {},
  ];
  const priorities = bodies.map((body) => priorityOf(inZone(body)[0]?.text ?? ''));
  expect(priorities).toEqual([...new Set(priorities)].sort((a, b) => a - b));
  expect(priorities[0]).toBeGreaterThanOrEqual(-20_000);
  expect(priorities.at(-1)).toBeLessThan(0);
});

/** In the form of `firewall-cmd --list-all-zones` of firewalld 1.3.3. */
const zones = (rules: string): string => `block
  target: %%REJECT%%
  services:${' '}
  rich rules:${' '}

public (active)
  target: default
  interfaces: host0
  services: dhcpv6-client ssh
  rich rules:${' '}
${rules}
work
  rich rules:${' '}
	rule priority="-3" protocol value="icmp" drop
`;

test('finds recorded rules in the list of zones', () => {
  const rules = new Map([
    ['web', inZone({ ports: ['80', '443'] })],
    ['ssh', inZone({ ports: ['22'] })],
    ['home', inZone({ ports: ['22'] }, 'home')],
  ]);
  const listed = (zoneRules: Iterable<string>) =>
    parseZones(zones(Array.from(zoneRules, (rule) => `\t${rule}\n`).join('')));
  const all = zoneRulesOf(rules).get('public') ?? [];
  expect(listed(all).get('work')).toEqual(new Set(['rule priority="-3" protocol value="icmp" drop']));
  const present = presentRules(rules, listed(all));
  expect(present).toEqual(new Map([...rules].filter(([name]) => name !== 'home')));
  expect(presentRules(rules, listed(all.slice(0, 1))).get('web')).toMatchObject([{ text: 'tcp dport 80 accept' }]);
  expect(presentRules(rules, listed([]))).toEqual(new Map());
});

test('keeps a rule that two resources share', () => {
  const both = new Map([
    ['a', inZone({ ports: ['80'] })],
    ['b', inZone({ ports: ['80', '443'] })],
  ]);
  const one = new Map([['a', inZone({ ports: ['80'] })]]);
  expect(without(zoneRulesOf(both), zoneRulesOf(one)).get('public')).toEqual([expect.stringContaining('port="443"')]);
  expect(without(zoneRulesOf(one), zoneRulesOf(both)).get('public')).toEqual([]);
});
