import { HostFailure } from '../../host/failure.ts';
import { bootText, saveForBoot } from '../../host/firewall/at-boot.ts';
import { hasNft, listTable, loadText } from '../../host/firewall/nftables.ts';
import { loadOnTrial } from '../../host/firewall/trial.ts';
import type { Firewall } from './firewall.ts';
import { parseTable, renderTable, rulesOf, table } from './rules.ts';

/** The agent's own table of nftables. */
export const nftables: Firewall = {
  name: 'nftables',
  isAvailable: hasNft,

  wanted(body) {
    if (body.zone != null)
      throw new HostFailure('`zone` is for machines with firewalld, which does not run on this machine');
    if (body.action === 'limit')
      throw new HostFailure('`action: limit` is for machines with ufw, which is not active on this machine');
    return rulesOf(body);
  },

  async read(machine) {
    const live = hasNft() ? await listTable(table, machine) : null;
    return { live: parseTable(live ?? ''), saved: parseTable(bootText() ?? '') };
  },

  async change(now, next, machine) {
    if (!hasNft()) throw new HostFailure('nft is not installed on this machine');
    const load = () => loadText(renderTable(next.live), machine);
    const undo = [{ command: 'nft --file -', input: renderTable(now.live) }];
    await loadOnTrial({ load, undo }, machine.link, machine);
    await saveForBoot(next.saved.size === 0 ? null : renderTable(next.saved), machine);
  },
};
