import { HostFailure } from '../../host/failure.ts';
import { loadOnTrial } from '../../host/firewall/trial.ts';
import {
  hasUfw,
  isUfwActive,
  restore,
  restoreCommand,
  ufwFiles,
  ufwUsesIpv6,
  writeUfwFile,
} from '../../host/firewall/ufw.ts';
import { readText } from '../../host/read-system.ts';
import type { Firewall } from './firewall.ts';
import { partsOf, rulesOf } from './rules.ts';
import { parseUfw, type RuleFiles, renderUfw, section } from './ufw-rules.ts';

/**
 * The rule files of ufw. The agent writes them itself, because each call of ufw takes half a second and changes only
 * one rule. ufw lists, renumbers, and deletes these rules as its own.
 */
export const ufw: Firewall = {
  name: 'ufw',
  isAvailable: hasUfw,

  wanted(body) {
    if (body.zone != null)
      throw new HostFailure('`zone` is for machines with firewalld; ufw owns the firewall of this machine');
    if (body.protocol === 'icmp')
      throw new HostFailure(
        'ufw owns the firewall of this machine, and has no rules for `protocol: icmp`: change /etc/ufw/before.rules',
      );
    const rules = rulesOf(body);
    const field = body.direction === 'out' ? 'destination' : 'source';
    if (!ufwUsesIpv6() && rules.some(({ text }) => partsOf(text)?.family === 6))
      throw new HostFailure(`\`${field}\` has an IPv6 network, but IPV6 in /etc/default/ufw is not \`yes\``);
    return rules;
  },

  async read() {
    const rules = hasUfw() ? parseUfw(read()) : new Map();
    return { live: rules, saved: rules };
  },

  async change(_now, next, machine) {
    const former = read();
    const files = renderUfw(former, next.saved);
    const families = ([4, 6] as const).filter((family) => files[family] !== former[family]);
    const each = families.map((family) => ({ family, text: files[family] ?? '', former: former[family] ?? '' }));
    if (isUfwActive()) {
      for (const { family, text } of each) await restore(family, text, 'test', machine);
      const load = async () => {
        for (const { family, text } of each) await restore(family, text, 'load', machine);
      };
      const undo = each.map(({ family, former: input }) => ({ command: restoreCommand(family), input }));
      if (each.length > 0) await loadOnTrial({ load, undo }, machine.link, machine);
    }
    // Reads the files again, because ufw may have changed them during the trial.
    const written = renderUfw(read(), next.saved);
    for (const family of [4, 6] as const) {
      const text = written[family];
      if (text !== null) await writeUfwFile(family, text);
    }
  },
};

function read(): RuleFiles {
  const usesIpv6 = ufwUsesIpv6();
  const files = { 4: readText(ufwFiles[4]), 6: usesIpv6 ? readText(ufwFiles[6]) : null };
  for (const family of [4, 6] as const)
    if ((family === 4 || usesIpv6) && files[family]?.includes(section) !== true)
      throw new HostFailure(`cannot read the rules of ufw in ${ufwFiles[family]}`);
  return { 4: files[4] ?? '', 6: files[6] };
}
