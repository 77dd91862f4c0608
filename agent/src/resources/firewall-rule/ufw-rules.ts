import { ordered, partsOf, type Rule, type RuleParts, type Rules, textOf } from './rules.ts';

/**
 * Pure functions that write Muster's rules into the rule files of ufw(8), and parse them.
 *
 * A rule in `user.rules` is a block: a tuple, which ufw reads, and the rules for iptables-restore(8) that ufw derives
 * from it. Source of the form: `_write_rules` in ufw's `backend_iptables.py`, version 0.36.
 */

export type Family = 4 | 6;

/** Text of each rule file; that of family 6 is null if ufw does not use IPv6. */
export interface RuleFiles {
  4: string;
  6: string | null;
}

const actions = { accept: 'allow', drop: 'deny', reject: 'reject', limit: 'limit' } as const;
const everywhere = { 4: '0.0.0.0/0', 6: '::/0' } as const;
/** Heading of the rules in a rule file. */
export const section = '### RULES ###\n';

/** Parses Muster's rules in both files. A rule that is in both files has no family. */
export function parseUfw(files: RuleFiles): Map<string, Rule[]> {
  const found = new Map<string, Map<string, { rule: Rule; families: Set<Family> }>>();
  for (const family of [4, 6] as const) {
    for (const [name, rules] of parseFile(files[family] ?? '', family)) {
      const named = found.get(name) ?? new Map();
      found.set(name, named);
      for (const rule of rules) {
        const key = JSON.stringify(rule);
        const entry = named.get(key) ?? { rule, families: new Set() };
        named.set(key, entry);
        entry.families.add(family);
      }
    }
  }
  const isWhole = ({ rule, families }: { rule: Rule; families: Set<Family> }) =>
    partsOf(rule.text)?.family !== null || families.size === 2 || files[6] === null;
  const rulesOf = (entries: Map<string, { rule: Rule; families: Set<Family> }>) =>
    [...entries.values()].map((entry) =>
      isWhole(entry) ? entry.rule : { ...entry.rule, text: `${entry.rule.text}${onlyIn([...entry.families][0] ?? 4)}` },
    );
  return new Map(
    [...found].map(([name, entries]) => [name, rulesOf(entries).sort((a, b) => (a.text < b.text ? -1 : 1))]),
  );
}

/** Returns the suffix for a rule that matches all addresses but is in only one of the files. */
const onlyIn = (family: Family): string => ` (only IPv${family})`;

const block = /\n### tuple ### ([^\n]*?) comment=([0-9a-f]+)\n(?:-A ufw6?-user-(?:input|output) [^\n]*\n)*/g;
const commentPattern = /^muster: ([A-Za-z0-9][A-Za-z0-9_.-]*)(?:: (.*))?$/;

const named = (hex: string): { name: string; comment: string | null } | null => {
  const [, name, comment = null] = commentPattern.exec(Buffer.from(hex, 'hex').toString()) ?? [];
  return name === undefined ? null : { name, comment };
};

/** Returns the resource that owns a block, and the block's parts; null if Muster does not write blocks of this form. */
function ownBlock(tuple: string, hex: string, family: Family) {
  const owner = named(hex);
  const parts = partsOfTuple(tuple, family);
  const direction = tuple.endsWith(' out') ? ('out' as const) : ('in' as const);
  return owner === null || parts === null ? null : { ...owner, parts, direction };
}

function parseFile(text: string, family: Family): Map<string, Rule[]> {
  const rules = new Map<string, Map<string, { parts: RuleParts; rule: Rule }>>();
  for (const [, tuple = '', hex = ''] of text.matchAll(block)) {
    const own = ownBlock(tuple, hex, family);
    if (own === null) continue;
    const { name, comment, direction } = own;
    const entries = rules.get(name) ?? new Map<string, { parts: RuleParts; rule: Rule }>();
    rules.set(name, entries);
    // ufw allows at most 15 ports in a rule, so a rule with more ports is split into several.
    const key = JSON.stringify([{ ...own.parts, ports: own.parts.ports.length > 0 }, direction, comment]);
    const parts = { ...own.parts, ports: [...(entries.get(key)?.parts.ports ?? []), ...own.parts.ports] };
    entries.set(key, { parts, rule: { direction, text: textOf(parts, direction), comment } });
  }
  return new Map([...rules].map(([name, entries]) => [name, [...entries.values()].map(({ rule }) => rule)]));
}

/** Parses a tuple: action, protocol, port, destination, source port, source, and direction. */
function partsOfTuple(tuple: string, family: Family): RuleParts | null {
  const [action, protocol = '', ports = '', to = '', sourcePorts, from = '', direction, ...more] = tuple.split(' ');
  const [verdict] = Object.entries(actions).find(([, word]) => word === action) ?? [];
  const [network, other] = direction === 'in' ? [from, to] : [to, from];
  if (verdict === undefined || more.length > 0 || sourcePorts !== 'any' || other !== everywhere[family]) return null;
  if ((direction !== 'in' && direction !== 'out') || !/^(tcp|udp|any)$/.test(protocol)) return null;
  if (!/^(any|\d+(:\d+)?(,\d+(:\d+)?)*)$/.test(ports) || (protocol === 'any' && ports !== 'any')) return null;
  return {
    family: network === everywhere[family] ? null : family,
    network: network === everywhere[family] ? null : network,
    protocol: protocol === 'any' ? null : (protocol as 'tcp' | 'udp'),
    ports: ports === 'any' ? [] : ports.replaceAll(':', '-').split(','),
    action: verdict,
  };
}

/**
 * Returns the rule files with Muster's rules replaced. Muster's rules come before all other rules, sorted by content.
 * Everything else is unchanged.
 */
export const renderUfw = (files: RuleFiles, rules: Rules): RuleFiles => ({
  4: renderFile(files[4], rules, 4),
  6: files[6] === null ? null : renderFile(files[6], rules, 6),
});

function renderFile(text: string, rules: Rules, family: Family): string {
  const rest = text.replace(block, (whole, tuple: string, hex: string) =>
    ownBlock(tuple, hex, family) === null ? whole : '',
  );
  const blocks = ordered(rules).flatMap(({ name, rule }) => blocksOf(name, rule, family));
  // Uses a function, because `$` has a special meaning in a replacement string.
  return rest.replace(section, (heading) => heading + blocks.join(''));
}

function blocksOf(name: string, { text, direction, comment }: Rule, family: Family): string[] {
  if (text.endsWith(onlyIn(family === 4 ? 6 : 4))) return [];
  const parts = partsOf(text.replace(onlyIn(family), ''));
  if (parts === null || (parts.family !== null && parts.family !== family)) return [];
  const hex = Buffer.from(comment === null ? `muster: ${name}` : `muster: ${name}: ${comment}`).toString('hex');
  return inChunks(parts.ports).map((ports) => {
    const tuple = tupleOf({ ...parts, ports }, direction, family);
    return `\n### tuple ### ${tuple} comment=${hex}\n${iptablesRules({ ...parts, ports }, direction, family)}`;
  });
}

const portsForUfw = (ports: readonly string[]): string => ports.join(',').replaceAll('-', ':');

function tupleOf({ network, protocol, ports, action }: RuleParts, direction: Rule['direction'], family: Family) {
  const all = everywhere[family];
  const address = network ?? all;
  const [to, from] = direction === 'in' ? [all, address] : [address, all];
  const port = ports.length === 0 ? 'any' : portsForUfw(ports);
  return `${actions[action as keyof typeof actions]} ${protocol ?? 'any'} ${port} ${to} any ${from} ${direction}`;
}

/** Returns the rules for iptables-restore that ufw derives from a tuple. */
function iptablesRules(
  { network, protocol, ports, action }: RuleParts,
  direction: Rule['direction'],
  family: Family,
): string {
  const prefix = family === 4 ? 'ufw' : 'ufw6';
  const isMulti = ports.length > 1 || ports.some((each) => each.includes('-'));
  const to = direction === 'out' && network !== null ? ` -d ${network}` : '';
  const from = direction === 'in' && network !== null ? ` -s ${network}` : '';
  const match = [
    `-A ${prefix}-user-${direction === 'in' ? 'input' : 'output'}`,
    protocol === null ? '' : ` -p ${protocol}`,
    isMulti ? ` -m multiport --dports ${portsForUfw(ports)}` : '',
    to,
    isMulti || ports.length === 0 ? '' : ` --dport ${ports[0]}`,
    from,
  ].join('');
  if (action === 'limit') {
    const recent = `${match} -m conntrack --ctstate NEW -m recent`;
    return `${recent} --set\n${recent} --update --seconds 30 --hitcount 6 -j ${prefix}-user-limit\n${match} -j ${prefix}-user-limit-accept\n`;
  }
  if (action === 'reject') return `${match} -j REJECT${protocol === 'tcp' ? ' --reject-with tcp-reset' : ''}\n`;
  return `${match} -j ${action === 'accept' ? 'ACCEPT' : 'DROP'}\n`;
}

/** iptables allows 15 ports in a rule. A range counts as two. */
const maxPorts = 15;

/** Divides ports among rules. Without ports, returns one rule that matches all ports. */
function inChunks(ports: readonly string[]): string[][] {
  const chunks: string[][] = [[]];
  let slots = 0;
  for (const port of ports) {
    const more = port.includes('-') ? 2 : 1;
    if (slots + more > maxPorts) {
      chunks.push([]);
      slots = 0;
    }
    chunks.at(-1)?.push(port);
    slots += more;
  }
  return chunks;
}
