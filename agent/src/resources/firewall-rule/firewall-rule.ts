import { type FieldChange, ipNetwork } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { bootFile, bootText, removeDisabled, saveForBoot } from '../../host/firewall/at-boot.ts';
import { hasNft, listTable, otherOwner } from '../../host/firewall/nftables.ts';
import { loadOnTrial, undoTrial } from '../../host/firewall/trial.ts';
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
} from '../provider/provider.ts';
import { fieldsOf, parseTable, type Rule, type Rules, renderTable, rulesOf, table } from './rules.ts';

export interface SeenRule {
  /** The resource's rules in the kernel; null if there are none. */
  live: Rule[] | null;
  /** The resource's rules that are loaded at boot; null if there are none. */
  saved: Rule[] | null;
  hasNft: boolean;
  /** Another program that manages the machine's firewall. */
  owner: string | null;
}

/** The resource's rules before the agent first changed them. */
export type RuleBefore = { live: Rule[] | null; saved: Rule[] | null };

type Declared = ResolvedResource<'firewall-rule'>;

/** All rules in the table: those in the kernel, and those that are loaded at boot. */
const firewall: Database<{ live: Rules; saved: Rules }> = {
  name: 'firewall rules',
  async read(machine) {
    const live = hasNft() ? await listTable(table, machine) : null;
    return { live: parseTable(live ?? ''), saved: parseTable(bootText() ?? '') };
  },
};

/**
 * A rule in the agent's own nftables table. Rules are changed together, in one transaction, and are rolled back if they
 * cut the agent's link.
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
    ensure: 'text?',
  },
  recheckable: false,
  watched: () => [bootFile],

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

  async remember(_resource, { live, saved }, _difference, before) {
    return before ?? { live, saved };
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),

  diffRemoval(_resource, before, seen) {
    if (isSame(seen.live, before.live) && isSame(seen.saved, before.saved))
      return nothing(before.live === null ? 'already removed' : 'already in its original state');
    if (before.live === null) return presenceDrift();
    return {
      action: 'remove',
      changes: ruleChanges(seen, before.live, before.saved),
      diff: null,
      message: 'restores the original state',
    };
  },

  apply: (resource, seen, difference, machine) =>
    alone({ kind: 'apply', resource, seen, difference, before: null }, machine),
  remove: (resource, before, seen, difference, machine) =>
    alone({ kind: 'remove', resource, seen, difference, before }, machine),
  together: execute,

  /**
   * Rolls back the rules of a trial that the killed agent did not finish, and completes an unfinished change to the
   * rules that are loaded at boot.
   */
  async recover(machine) {
    await undoTrial(machine);
    await removeDisabled(machine);
    machine.stale(firewall);
  },
});

async function look({ body }: Declared, machine: Machine): Promise<SeenRule> {
  const { live, saved } = await machine.database(firewall);
  return {
    live: [...(live.get(body.name) ?? [])],
    saved: [...(saved.get(body.name) ?? [])],
    hasNft: hasNft(),
    owner: otherOwner(),
  };
}

const isSame = (a: readonly Rule[] | null, b: readonly Rule[] | null): boolean =>
  JSON.stringify(a ?? []) === JSON.stringify(b ?? []);

export function diffRule({ body }: Declared, seen: SeenRule, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  if (body.ensure === 'absent') {
    const isAbsent = (seen.live ?? []).length === 0 && (seen.saved ?? []).length === 0;
    return isAbsent ? nothing() : presenceDrift();
  }
  const wanted = rulesOf(body);
  const changes = ruleChanges(seen, wanted, wanted);
  if (changes.length === 0) return nothing();
  if (seen.owner !== null && purpose !== 'drift')
    throw new HostFailure(
      `${seen.owner} owns the firewall of this machine. It refuses packets even if rules of Muster accept them. Disable ${seen.owner}, or write its rules with the kind script`,
    );
  const isNew = (seen.live ?? []).length === 0 && (seen.saved ?? []).length === 0;
  const message = 'nft is not installed on this machine; declare the package nftables before the rule';
  return {
    action: isNew ? 'create' : 'update',
    changes,
    diff: null,
    ...(seen.hasNft ? {} : { awaits: [{ kind: 'programs' as const, message }] }),
  };
}

/** Returns the differences between the observed rules and other rules, by field. */
function ruleChanges(seen: SeenRule, live: readonly Rule[] | null, saved: readonly Rule[] | null): FieldChange[] {
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

/** Changes the rules of several resources in one transaction, and then those that are loaded at boot. */
async function execute(items: readonly Item<SeenRule, RuleBefore>[], machine: Machine): Promise<Outcome[]> {
  if (!hasNft()) throw new HostFailure('nft is not installed on this machine');
  const now = await machine.database(firewall);
  const live = new Map(now.live);
  const saved = new Map(now.saved);
  const set = (rules: Map<string, readonly Rule[]>, name: string, to: readonly Rule[] | null) =>
    to === null || to.length === 0 ? rules.delete(name) : rules.set(name, to);
  for (const { kind, resource, before } of items) {
    const { body } = resource as Declared;
    const wanted = body.ensure === 'absent' ? null : rulesOf(body);
    set(live, body.name, kind === 'apply' ? wanted : (before?.live ?? null));
    set(saved, body.name, kind === 'apply' ? wanted : (before?.saved ?? null));
  }
  try {
    await loadOnTrial(renderTable(live), renderTable(now.live), machine.link, machine);
    await saveForBoot(saved.size === 0 ? null : renderTable(saved), machine);
  } finally {
    machine.stale(firewall);
  }
  return items.map(() => ({}));
}

async function alone(item: Item<SeenRule, RuleBefore>, machine: Machine): Promise<Outcome> {
  const [outcome = {}] = await execute([item], machine);
  return outcome;
}
