import { ipNetwork } from '@muster/protocol';
import type { ResourceBodies } from '@muster/protocol/module';

/**
 * Pure functions that render the rules of a `firewall-rule` for nft(8), parse its listing, and order them. The code for
 * other firewalls translates between their form and this one.
 */

export type Body = ResourceBodies['firewall-rule'];
type Direction = 'in' | 'out';

/** A rule of a firewall. A resource has several rules if it has several networks or protocols. */
export type Rule = {
  direction: Direction;
  /** Matches and verdict as nft lists them, without the comment. */
  text: string;
  comment: string | null;
  /** Zone of firewalld. Other firewalls have no zones. */
  zone?: string;
};

/** The rules of each resource, by its name. */
export type Rules = ReadonlyMap<string, readonly Rule[]>;

export const table = 'inet muster';

const chains = { in: 'input', out: 'output' } as const;

/**
 * Returns the first rules of each chain. They accept packets of established connections, such as an SSH session, and
 * packets that the network requires.
 */
const firstRules = (direction: Direction): string[] => [
  'ct state established,related accept',
  `${direction === 'in' ? 'iif' : 'oif'} lo accept`,
  'icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept',
  // Replies to multicast packets, as in DHCPv6, do not belong to a tracked connection.
  direction === 'in' ? 'ip6 saddr fe80::/10 udp dport 546 accept' : 'udp dport 547 accept',
];

/** Returns the canonical rules for a declaration. The networks are already validated. */
export function rulesOf(body: Body): Rule[] {
  const direction = body.direction ?? 'in';
  const action = body.action ?? 'accept';
  const networks = (direction === 'in' ? body.source : body.destination) ?? [];
  const addresses = networks.length === 0 ? [null] : networks.map(ipNetwork);
  const side = direction === 'in' ? 'saddr' : 'daddr';
  const texts = addresses.flatMap((network) => {
    const from = network === null ? '' : `${network.family === 4 ? 'ip' : 'ip6'} ${side} ${network.text} `;
    return protocolMatches(body, network?.family ?? null).map((match) => `${from}${match}${action}`);
  });
  return [...new Set(texts)].sort().map((text) => ({ direction, text, comment: body.comment ?? null }));
}

/** The matches of a rule, and its verdict. */
export interface RuleParts {
  /** Null if the rule matches both families. */
  family: 4 | 6 | null;
  /** Null if the rule matches all addresses. */
  network: string | null;
  protocol: 'tcp' | 'udp' | 'icmp' | 'icmpv6' | null;
  /** Ports and ranges; empty if the rule matches all. */
  ports: readonly string[];
  action: string;
}

/** Returns the parts of a rule's text; null if Muster does not write rules of this form. */
export function partsOf(text: string): RuleParts | null {
  const match =
    /^(?:(ip6?) [sd]addr (\S+) )?(?:(tcp|udp) dport (?:\{ ([^}]*) \}|(\S+)) |meta l4proto (\d+) )?([a-z]+)$/.exec(text);
  if (match === null) return null;
  const [, family, network = null, withPorts, several, one, number, action = ''] = match;
  const protocol = withPorts ?? (number === undefined ? null : protocolName(number));
  return {
    family: family === undefined ? null : family === 'ip' ? 4 : 6,
    network,
    protocol: protocol as RuleParts['protocol'],
    ports: several?.split(', ') ?? (one === undefined ? [] : [one]),
    action,
  };
}

/** Returns the text of a rule. The inverse of `partsOf`. */
export function textOf({ family, network, protocol, ports, action }: RuleParts, direction: Direction): string {
  const side = direction === 'in' ? 'saddr' : 'daddr';
  const from = network === null ? '' : `${family === 4 ? 'ip' : 'ip6'} ${side} ${network} `;
  if (protocol === null) return `${from}${action}`;
  const rest = ports.length > 0 ? `${protocol} dport ${portsText(ports)}` : `meta l4proto ${protocolNumbers[protocol]}`;
  return `${from}${rest} ${action}`;
}

/** Protocols are written as numbers, because nft recognizes the names only on machines with /etc/protocols. */
const protocolNumbers = { tcp: 6, udp: 17, icmp: 1, icmpv6: 58 } as const;

/** Returns the match expressions of each rule except the network, with a trailing space. */
function protocolMatches({ protocol, ports }: Body, family: 4 | 6 | null): string[] {
  if (ports != null && ports.length > 0) {
    const protocols = protocol === 'any' ? ['tcp', 'udp'] : [protocol ?? 'tcp'];
    return protocols.map((each) => `${each} dport ${portsText(ports)} `);
  }
  if (protocol == null || protocol === 'any') return [''];
  if (protocol !== 'icmp') return [`meta l4proto ${protocolNumbers[protocol]} `];
  const both = [
    ...(family === 6 ? [] : [`meta l4proto ${protocolNumbers.icmp} `]),
    ...(family === 4 ? [] : [`meta l4proto ${protocolNumbers.icmpv6} `]),
  ];
  return both;
}

/** Merges overlapping and adjacent ranges, as in nft's listing. */
function portsText(ports: readonly string[]): string {
  const ranges = ports
    .map((text) => text.split('-').map(Number))
    .map(([first = 0, last = first]) => ({ first, last }))
    .sort((a, b) => a.first - b.first);
  const joined: { first: number; last: number }[] = [];
  for (const range of ranges) {
    const previous = joined.at(-1);
    if (previous !== undefined && range.first <= previous.last + 1) previous.last = Math.max(previous.last, range.last);
    else joined.push({ ...range });
  }
  const texts = joined.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`));
  return texts.length === 1 ? (texts[0] as string) : `{ ${texts.join(', ')} }`;
}

const commentOf = (name: string, { comment }: Rule): string => (comment === null ? name : `${name}: ${comment}`);

/** Renders the table for `nft -f`, so that it replaces an existing one. Without rules, the table is only removed. */
export function renderTable(rules: Rules): string {
  const removal = `table ${table}\ndelete table ${table}\n`;
  if (rules.size === 0) return removal;
  const chain = (direction: Direction): string[] => [
    `\tchain ${chains[direction]} {`,
    `\t\ttype filter hook ${chains[direction]} priority filter; policy accept;`,
    ...firstRules(direction).map((text) => `\t\t${text}`),
    ...ordered(rules, direction).map(({ name, rule }) => `\t\t${rule.text} comment "${commentOf(name, rule)}"`),
    '\t}',
  ];
  return `${removal}table ${table} {\n${[...chain('in'), ...chain('out')].join('\n')}\n}\n`;
}

/**
 * Sorts rules by their content, so that the order of resources does not matter: by the narrowest network, then by the
 * fewest ports, then with refusals first.
 */
export function ordered(rules: Rules, direction?: Direction): { name: string; rule: Rule; key: number }[] {
  const all = [...rules].flatMap(([name, each]) =>
    each
      .filter((rule) => direction === undefined || rule.direction === direction)
      .map((rule) => ({ name, rule, key: keyOf(rule.text) })),
  );
  return all.sort((a, b) => a.key - b.key || (`${a.name} ${a.rule.text}` < `${b.name} ${b.rule.text}` ? -1 : 1));
}

const allPorts = 65_536;

/** Returns a number that is smaller for rules that come earlier. */
export function keyOf(text: string): number {
  const [, family = '', address = ''] = /^(ip6?) [sd]addr (\S+)/.exec(text) ?? [];
  const prefix = address.split('/')[1];
  const hostBits = family === '' ? 129 : prefix === undefined ? 0 : (family === 'ip' ? 32 : 128) - Number(prefix);
  const listed = /dport (?:\{ ([^}]*) \}|(\S+))/.exec(text);
  const ports = (listed?.[1] ?? listed?.[2])?.split(', ').reduce((sum, each) => {
    const [first = 0, last = first] = each.split('-').map(Number);
    return sum + last - first + 1;
  }, 0);
  const width = ports ?? (text.includes('l4proto') ? allPorts : 2 * allPorts);
  return (hostBits * 4 * allPorts + width) * 2 + (/(accept|limit)$/.test(text) ? 1 : 0);
}

/** Parses the listing of the table, or the result of `renderTable`. Ignores rules that have no comment. */
export function parseTable(text: string): Map<string, Rule[]> {
  const rules = new Map<string, Rule[]>();
  let direction: Direction = 'in';
  for (const line of text.split('\n')) {
    const chain = /^\s*chain (input|output) \{/.exec(line)?.[1];
    if (chain !== undefined) direction = chain === 'input' ? 'in' : 'out';
    const [, match, name, comment = null] = /^\s*(\S.*?) comment "([A-Za-z0-9_.-]+)(?:: ([^"]*))?"/.exec(line) ?? [];
    if (match === undefined || name === undefined) continue;
    const rule = { direction, text: match.replace(/ reject with .*$/, ' reject'), comment };
    rules.set(name, [...(rules.get(name) ?? []), rule]);
  }
  for (const each of rules.values()) each.sort((a, b) => (a.text < b.text ? -1 : 1));
  return rules;
}

const protocolName = (number: string): string =>
  Object.entries(protocolNumbers).find(([, each]) => String(each) === number)?.[0] ?? number;

/** Returns the fields that can be read from a resource's rules, as text. */
export function fieldsOf(
  rules: readonly Rule[],
): Record<'action' | 'direction' | 'protocol' | 'ports' | 'network' | 'zone' | 'comment', string> {
  const distinct = (values: (string | undefined)[]): string =>
    [...new Set(values.filter((value) => value !== undefined && value !== ''))].sort().join(', ');
  const found = (pattern: RegExp) =>
    distinct(
      rules.map(({ text }) =>
        pattern
          .exec(text)
          ?.slice(1)
          .find((part) => part !== undefined),
      ),
    );
  return {
    action: found(/(\S+)$/),
    direction: distinct(rules.map(({ direction }) => direction)),
    protocol: found(/(tcp|udp) dport|l4proto (\S+)/).replace(/\d+/g, protocolName),
    ports: found(/dport (?:\{ ([^}]*) \}|(\S+))/),
    network: found(/[sd]addr (\S+)/),
    zone: distinct(rules.map(({ zone }) => zone)),
    comment: distinct(rules.map(({ comment }) => comment ?? undefined)),
  };
}
