import { type FieldChange, ipNetwork } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { bootFile, removeDisabled } from '../../host/firewall/at-boot.ts';
import { firewalldSettings, isFirewalldRunning, zoneFolder } from '../../host/firewall/firewalld.ts';
import { undoTrial } from '../../host/firewall/trial.ts';
import { isUfwActive, ufwFiles, ufwSettings } from '../../host/firewall/ufw.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Database,
  type Difference,
  type Item,
  type Machine,
  nothing,
  type Outcome,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';
import { type Firewall, type FirewallName, isSame, type State } from './firewall.ts';
import { firewalld, firewalldRecord } from './firewalld.ts';
import { nftables } from './nftables.ts';
import { fieldsOf, type Rule, type Rules, rulesOf } from './rules.ts';
import { ufw } from './ufw.ts';

/** All firewalls that may contain Muster's rules. */
const firewalls: readonly Firewall[] = [firewalld, ufw, nftables];

/** The resource's rules in one firewall; null if there are none. */
export type Found = State<Rule[] | null>;

export type SeenRule = Found & {
  /** The firewall of this machine, which should contain the resource's rules. */
  firewall: FirewallName;
  isAvailable: boolean;
  /** The rules that this firewall needs for the declaration, or the reason why it does not support them. */
  wanted: Rule[] | { fault: string };
  /** The resource's rules in other firewalls, for example from before ufw was installed. */
  elsewhere: ({ firewall: FirewallName } & Found)[];
};

/** The resource's rules before the agent first changed them. `firewall` is missing if it is nftables. */
export type RuleBefore = Found & { firewall?: FirewallName };

type Declared = ResolvedResource<'firewall-rule'>;

interface AllRules {
  /** The firewall that filters packets on this machine. */
  current: Firewall;
  rules: Map<FirewallName, State<Rules>>;
}

/** All of Muster's rules, by firewall. */
const allRules: Database<AllRules> = {
  name: 'firewall rules',
  async read(machine) {
    const rules: AllRules['rules'] = new Map();
    for (const firewall of firewalls) rules.set(firewall.name, await firewall.read(machine));
    return { current: isFirewalldRunning() ? firewalld : isUfwActive() ? ufw : nftables, rules };
  },
};

/**
 * A rule in the machine's firewall. Rules are changed together, and are rolled back if they cut the agent's link.
 */
export const firewallRule = defineProvider<'firewall-rule', SeenRule, RuleBefore>({
  type: 'firewall-rule',
  fields: {
    name: 'text',
    action: 'text?',
    direction: 'text?',
    protocol: 'text?',
    ports: 'list?',
    source: 'list?',
    destination: 'list?',
    comment: 'text?',
    zone: 'text?',
    ensure: 'text?',
  },
  recheckable: false,
  watched: () => [bootFile, ufwSettings, ufwFiles[4], ufwFiles[6], firewalldSettings, firewalldRecord, zoneFolder],

  check({ body }) {
    const { name, direction, protocol, ports, source, destination } = body;
    // The name becomes part of the input to nft.
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not a name of a rule`);
    if (body.comment != null && !/^[\x20-\x7e]{1,60}$/.test(body.comment.replace(/["\\]/, '\n')))
      throw new HostFailure('`comment` must be up to 60 printable ASCII characters, without quotes and backslashes');
    for (const port of ports ?? [])
      if (!/^\d{1,5}(-\d{1,5})?$/.test(port)) throw new HostFailure(`${JSON.stringify(port)} is not a port or a range`);
    for (const network of [...(source ?? []), ...(destination ?? [])])
      if (ipNetwork(network) === null)
        throw new HostFailure(`${JSON.stringify(network)} is not an IP address or a network`);
    if (direction === 'out' && source != null)
      throw new HostFailure('`source` is for incoming packets; a rule with `direction: out` has a `destination`');
    if (direction !== 'out' && destination != null)
      throw new HostFailure('`destination` is for outgoing packets; use `source` for incoming packets');
    if (protocol === 'icmp' && ports != null && ports.length > 0)
      throw new HostFailure('icmp has no ports: remove `ports`, or declare another `protocol`');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffRule,

  async remember(_resource, { firewall, live, saved, elsewhere }, _difference, before) {
    const [earlier] = elsewhere;
    return before ?? (live === null && saved === null && earlier !== undefined ? earlier : { firewall, live, saved });
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),

  diffRemoval(_resource, before, seen) {
    const foundIn = [{ firewall: seen.firewall, live: seen.live, saved: seen.saved }, ...seen.elsewhere];
    const changes = firewalls.flatMap(({ name }) => {
      const found = foundIn.find(({ firewall }) => firewall === name) ?? { live: null, saved: null };
      const former = formerIn(before, name);
      return isSameState(found, former) ? [] : ruleChanges(found, former.live, former.saved);
    });
    if (before.live !== null) return restoring(changes);
    return changes.length === 0 ? nothing('already removed') : presenceDrift();
  },

  together: execute,

  /**
   * Rolls back the rules of a trial that the killed agent did not finish, and completes an unfinished change to the
   * rules that are loaded at boot.
   */
  async recover(machine) {
    await undoTrial(machine);
    await removeDisabled(machine);
    machine.stale(allRules);
  },
});

const isSameState = (a: Found, b: Found): boolean => isSame(a.live, b.live) && isSame(a.saved, b.saved);

/** Returns the recorded rules of one firewall, which a removal restores. */
const formerIn = ({ firewall = 'nftables', live, saved }: RuleBefore, name: FirewallName): Found =>
  firewall === name ? { live, saved } : { live: null, saved: null };

async function look({ body }: Declared, machine: Machine): Promise<SeenRule> {
  const { current, rules } = await machine.database(allRules);
  const found = [...rules].map(([firewall, { live, saved }]) => ({
    firewall,
    live: live.get(body.name)?.slice() ?? null,
    saved: saved.get(body.name)?.slice() ?? null,
  }));
  const here = found.find(({ firewall }) => firewall === current.name);
  return {
    firewall: current.name,
    live: here?.live ?? null,
    saved: here?.saved ?? null,
    isAvailable: current.isAvailable(),
    wanted: wantedIn(current, body),
    elsewhere: found.filter(
      ({ firewall, live, saved }) => firewall !== current.name && (live !== null || saved !== null),
    ),
  };
}

function wantedIn(firewall: Firewall, body: Declared['body']): SeenRule['wanted'] {
  if (body.ensure === 'absent') return [];
  try {
    return firewall.wanted(body);
  } catch (error) {
    if (error instanceof HostFailure) return { fault: error.message };
    throw error;
  }
}

export function diffRule({ body }: Declared, seen: SeenRule, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const isHere = (seen.live ?? []).length > 0 || (seen.saved ?? []).length > 0;
  const [earlier] = seen.elsewhere;
  if (body.ensure === 'absent') return isHere || earlier !== undefined ? presenceDrift() : nothing();
  if ('fault' in seen.wanted && purpose !== 'drift') throw new HostFailure(seen.wanted.fault);
  const wanted = 'fault' in seen.wanted ? rulesOf(body) : seen.wanted;
  const moves: FieldChange[] =
    earlier === undefined ? [] : [{ field: 'firewall', from: earlier.firewall, to: seen.firewall }];
  const changes = [...moves, ...ruleChanges(isHere ? seen : (earlier ?? seen), wanted, wanted)];
  const message = 'nft is not installed on this machine; declare the package nftables before the rule';
  const awaits = [seen.isAvailable ? null : { kind: 'programs' as const, message }];
  return withChanges(isHere || earlier !== undefined ? 'update' : 'create', changes, { awaits });
}

/** Returns the differences between the observed rules and other rules, by field. */
function ruleChanges(seen: Found, live: readonly Rule[] | null, saved: readonly Rule[] | null): FieldChange[] {
  const from = seen.live ?? [];
  const to = live ?? [];
  const changes: FieldChange[] = [];
  if (from.length === 0 && to.length > 0) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (!isSame(from, to)) {
    const was = fieldsOf(from);
    const will = fieldsOf(to);
    const network = will.direction === 'out' ? 'destination' : 'source';
    for (const field of Object.keys(will) as (keyof typeof will)[]) {
      if (was[field] === will[field]) continue;
      const name = field === 'network' ? network : field;
      changes.push({ field: name, from: from.length === 0 ? null : was[field], to: will[field] });
    }
    if (changes.length === 0) changes.push({ field: 'rule', from: 'other rules', to: 'as declared' });
  } else if (!isSame(seen.saved, saved))
    changes.push({ field: 'persisted', from: 'false', to: String(saved !== null) });
  return changes;
}

/**
 * Changes the rules of several resources together: first those in the machine's firewall, then those that remain in
 * other firewalls.
 */
async function execute(items: readonly Item<SeenRule, RuleBefore>[], machine: Machine): Promise<Outcome[]> {
  const { current, rules } = await machine.database(allRules);
  try {
    for (const firewall of [current, ...firewalls.filter((other) => other !== current)]) {
      const now = rules.get(firewall.name) ?? { live: new Map(), saved: new Map() };
      const next = { live: new Map(now.live), saved: new Map(now.saved) };
      for (const item of items) replaceRules(next, item, firewall, firewall === current);
      if (isSameRules(now.live, next.live) && isSameRules(now.saved, next.saved)) continue;
      await firewall.change(now, next, machine);
    }
  } finally {
    machine.stale(allRules);
  }
  return items.map(() => ({}));
}

const isSameRules = (a: Rules, b: Rules): boolean =>
  [...new Set([...a.keys(), ...b.keys()])].every((name) => isSame(a.get(name), b.get(name)));

function replaceRules(
  all: State<Map<string, readonly Rule[]>>,
  { kind, resource, before }: Item<SeenRule, RuleBefore>,
  firewall: Firewall,
  isCurrent: boolean,
): void {
  const { body } = resource as Declared;
  const set = (rules: Map<string, readonly Rule[]>, to: readonly Rule[] | null) =>
    to === null || to.length === 0 ? rules.delete(body.name) : rules.set(body.name, to);
  if (kind === 'remove') {
    const former: Found = before === null ? { live: null, saved: null } : formerIn(before, firewall.name);
    set(all.live, former.live);
    set(all.saved, former.saved);
    return;
  }
  const wanted = isCurrent && body.ensure !== 'absent' ? firewall.wanted(body) : null;
  set(all.live, wanted);
  set(all.saved, wanted);
}
