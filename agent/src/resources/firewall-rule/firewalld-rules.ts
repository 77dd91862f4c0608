import type { ZoneRules } from '../../host/firewall/firewalld.ts';
import { keyOf, partsOf, type Rule, type Rules, textOf } from './rules.ts';

/** Pure functions that write Muster's rules as rich rules of firewalld(1), and parse their list. */

/**
 * Lowest priority of Muster's rules. Negative, so that they come before the ports and services of the zone. The range
 * has a number for each combination of 130 network sizes, 18 magnitudes of the number of ports, and whether the rule
 * accepts.
 */
const firstPriority = -20_000;
const magnitudes = 18;
const protocolNames = { tcp: 'tcp', udp: 'udp', icmp: 'icmp', icmpv6: 'ipv6-icmp' } as const;

/**
 * Returns the priority of a rule. Rules are in the same order as in nftables, except that rules with similar numbers of
 * ports may share a priority.
 */
export function priorityOf(text: string): number {
  const key = keyOf(text);
  const accepts = key % 2;
  const width = Math.floor(key / 2) % (4 * 65_536);
  const hostBits = Math.floor(key / 2 / (4 * 65_536));
  return firstPriority + (hostBits * magnitudes + Math.ceil(Math.log2(Math.max(width, 1)))) * 2 + accepts;
}

/** Returns a rich rule for each port of a rule, in the form in which firewalld lists it; one if the rule has no ports. */
export function richRulesOf({ text, direction }: Rule): { port: string | null; rich: string }[] {
  const parts = partsOf(text);
  if (parts === null) return [];
  const { family, network, protocol, ports, action } = parts;
  const from = network === null ? '' : ` family="ipv${family}" source address="${network}"`;
  const rich = (port: string | null) => {
    const priority = priorityOf(textOf({ ...parts, ports: port === null ? [] : [port] }, direction));
    const named = protocol === null ? '' : ` protocol value="${protocolNames[protocol]}"`;
    const element = port === null ? named : ` port port="${port}" protocol="${protocol}"`;
    return { port, rich: `rule priority="${priority}"${from}${element} ${action}` };
  };
  return ports.length === 0 ? [rich(null)] : ports.map(rich);
}

/** Returns the rich rules for all given rules, by zone. */
export function zoneRulesOf(rules: Rules): Map<string, string[]> {
  const zones = new Map<string, string[]>();
  for (const rule of [...rules.values()].flat())
    for (const { rich } of richRulesOf(rule)) {
      const zone = zones.get(rule.zone ?? '') ?? [];
      zones.set(rule.zone ?? '', zone);
      if (!zone.includes(rich)) zone.push(rich);
    }
  return zones;
}

/** Returns the rich rules that are in `some` and not in `others`. */
export const without = (some: ZoneRules, others: ZoneRules): Map<string, string[]> =>
  new Map([...some].map(([zone, rules]) => [zone, rules.filter((rule) => others.get(zone)?.includes(rule) !== true)]));

/** Parses the output of `firewall-cmd --list-all-zones`. */
export function parseZones(text: string): Map<string, Set<string>> {
  const zones = new Map<string, Set<string>>();
  let zone = new Set<string>();
  for (const line of text.split('\n')) {
    const name = /^([^\s(]+)/.exec(line)?.[1];
    if (name !== undefined) {
      zone = new Set();
      zones.set(name, zone);
    }
    const rule = /^\s+(rule .*\S)\s*$/.exec(line)?.[1];
    if (rule !== undefined) zone.add(rule);
  }
  return zones;
}

/** Returns the recorded rules that the zones of firewalld still contain. */
export function presentRules(recorded: Rules, zones: ReadonlyMap<string, ReadonlySet<string>>): Map<string, Rule[]> {
  const left = (rule: Rule): Rule[] => {
    const all = richRulesOf(rule);
    const found = all.filter(({ rich }) => zones.get(rule.zone ?? '')?.has(rich) === true);
    if (found.length === all.length) return [rule];
    const parts = partsOf(rule.text);
    const ports = found.flatMap(({ port }) => (port === null ? [] : [port]));
    return found.length === 0 || parts === null ? [] : [{ ...rule, text: textOf({ ...parts, ports }, rule.direction) }];
  };
  return new Map(
    [...recorded].map(([name, rules]) => [name, rules.flatMap(left)] as const).filter(([, rules]) => rules.length > 0),
  );
}
