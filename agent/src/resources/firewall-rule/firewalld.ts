import { HostFailure } from '../../host/failure.ts';
import {
  changeCommands,
  defaultZone,
  hasFirewalld,
  isFirewalldRunning,
  listZones,
  replaceFile,
  runCommands,
  zoneFolder,
} from '../../host/firewall/firewalld.ts';
import { loadOnTrial } from '../../host/firewall/trial.ts';
import { readText } from '../../host/read-system.ts';
import type { Machine } from '../provider/provider.ts';
import type { Firewall, State } from './firewall.ts';
import { parseZones, presentRules, without, zoneRulesOf } from './firewalld-rules.ts';
import { type Rule, type Rules, rulesOf } from './rules.ts';

/** Record of Muster's rules in firewalld. It is needed because firewalld's rules have neither a name nor a comment. */
export const firewalldRecord = '/etc/muster-firewalld.json';

/** Contents of a zone's files; null for a file that does not exist. */
interface ZoneFiles {
  zone: string | null;
  /** The backup that firewalld makes with each change. */
  backup: string | null;
}

interface FirewalldRecord {
  rules: Record<string, Rule[]>;
  /** Each changed zone: its files before the first change, and its file after the last one. */
  zones: Record<string, { before: ZoneFiles; after: string | null }>;
}

/** Rich rules in firewalld's zones, both the rules in effect and the permanent rules. */
export const firewalld: Firewall = {
  name: 'firewalld',
  isAvailable: hasFirewalld,

  wanted(body) {
    const owner = 'firewalld owns the firewall of this machine, and its zones have no rules';
    if (body.direction === 'out')
      throw new HostFailure(`${owner} for \`direction: out\`: write a policy with a script`);
    if (body.action === 'limit')
      throw new HostFailure(`${owner} for \`action: limit\`, which is for machines with ufw`);
    const zone = body.zone ?? defaultZone();
    return rulesOf(body).map((rule) => ({ ...rule, zone }));
  },

  async read(machine) {
    const recorded = new Map(Object.entries(readRecord().rules));
    if (recorded.size === 0 || !hasFirewalld()) return { live: new Map(), saved: new Map() };
    const isRunning = isFirewalldRunning();
    const saved = presentRules(recorded, parseZones(await listZones('permanent', isRunning, machine)));
    if (!isRunning) return { live: saved, saved };
    return { live: presentRules(recorded, parseZones(await listZones('runtime', isRunning, machine))), saved };
  },

  async change(now, next, machine) {
    const record = readRecord();
    const isRunning = isFirewalldRunning();
    // Rules are recorded before they are added, so that an agent that was killed finds all rules that it added.
    await writeRecord({ ...record, rules: merged(record.rules, next) });
    if (isRunning) {
      const [from, to] = [zoneRulesOf(now.live), zoneRulesOf(next.live)];
      const commands = changeCommands('runtime', isRunning, without(to, from), without(from, to));
      const undo = changeCommands('runtime', isRunning, without(from, to), without(to, from));
      const load = () => runCommands(commands, machine);
      const input = undo.map((command) => `${command.map(quoted).join(' ')} || exit 1`).join('\n');
      if (commands.length > 0) await loadOnTrial({ load, undo: [{ command: 'sh', input }] }, machine.link, machine);
    }
    await changePermanently(record, now, next, isRunning, machine);
  },
};

/** Quotes text for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the rules to record while a change is under way. */
function merged(recorded: FirewalldRecord['rules'], next: State<Rules>): FirewalldRecord['rules'] {
  const names = new Set([...Object.keys(recorded), ...next.saved.keys(), ...next.live.keys()]);
  const rulesOfName = (name: string): Rule[] => {
    const all = [...(recorded[name] ?? []), ...(next.saved.get(name) ?? []), ...(next.live.get(name) ?? [])];
    return [...new Map(all.map((rule) => [JSON.stringify(rule), rule])).values()];
  };
  return Object.fromEntries([...names].map((name) => [name, rulesOfName(name)]));
}

async function changePermanently(
  record: FirewalldRecord,
  now: State<Rules>,
  next: State<Rules>,
  isRunning: boolean,
  machine: Machine,
): Promise<void> {
  const [from, to] = [zoneRulesOf(now.saved), zoneRulesOf(next.saved)];
  const [added, removed] = [without(to, from), without(from, to)];
  const changed = [...new Set([...added.keys(), ...removed.keys()])];
  const former = new Map(changed.map((zone) => [zone, zoneFiles(zone)]));
  const rules = merged({}, next);
  const zones = { ...record.zones };
  for (const [zone, before] of former) zones[zone] ??= { before, after: before.zone };
  await writeRecord({ rules: merged(record.rules, next), zones });
  await runCommands(changeCommands('permanent', isRunning, added, removed), machine);
  for (const [zone, files] of former) {
    const known = zones[zone];
    if (known === undefined) continue;
    const isUnused = (to.get(zone) ?? []).length === 0;
    if (!isUnused) {
      // If others have changed the zone, its previous file is not restored, to keep their changes.
      const isOurs = files.zone === known.after;
      zones[zone] = { before: known.before, after: isOurs ? zoneFiles(zone).zone : known.after };
      continue;
    }
    delete zones[zone];
    if (files.zone !== known.after) continue;
    await replaceFile(`${zoneFolder}${zone}.xml`, known.before.zone);
    await replaceFile(`${zoneFolder}${zone}.xml.old`, known.before.backup);
  }
  await writeRecord({ rules, zones });
}

const zoneFiles = (zone: string): ZoneFiles => ({
  zone: readText(`${zoneFolder}${zone}.xml`),
  backup: readText(`${zoneFolder}${zone}.xml.old`),
});

function readRecord(): FirewalldRecord {
  const text = readText(firewalldRecord);
  if (text === null) return { rules: {}, zones: {} };
  try {
    return JSON.parse(text) as FirewalldRecord;
  } catch {
    throw new HostFailure(`${firewalldRecord} is not a record of the agent: restore or remove it`);
  }
}

const writeRecord = (record: FirewalldRecord): Promise<void> =>
  replaceFile(
    firewalldRecord,
    Object.keys(record.rules).length === 0 ? null : `${JSON.stringify(record, null, 1)}\n`,
    0o600,
  );
