import { renderTable, rulesOf } from '../../../agent/src/resources/firewall-rule/rules.ts';
import type { Subject } from './subject.ts';

const rule = (fields: object) => ({ 'firewall-rule': { name: 'web', ...fields } });

const install = 'apt-get -qq install --no-install-recommends nftables > /dev/null 2>&1';
const earlier = renderTable(new Map([['web', rulesOf({ name: 'web', ports: ['80'], action: 'drop' })]]));
const state = 'nft --stateless list ruleset; systemctl is-enabled muster-firewall || true';

export const firewallRuleSubjects: Subject[] = [
  {
    name: 'firewall-rule, created',
    packages: true,
    prepare: install,
    desired: rule({
      ports: ['443', '80', '8000-8010'],
      source: ['192.0.2.7/24', '2001:DB8::/32'],
      comment: 'customers',
    }),
    changed: rule({ protocol: 'icmp', action: 'reject', direction: 'out', destination: ['192.0.2.7'] }),
    tamper:
      'nft flush chain inet muster input; nft add rule inet muster input ip saddr 192.0.2.0/24 udp dport 443 drop comment web',
    moved: ['action', 'protocol', 'ports', 'source', 'comment'],
    state,
  },
  {
    name: 'firewall-rule, absent, with another table',
    packages: true,
    prepare: `${install}; nft add table inet other; nft add chain inet other input '{ type filter hook input priority 5; }'\nnft --file - << 'END'\n${earlier}END`,
    desired: rule({ ensure: 'absent' }),
    changed: rule({ protocol: 'udp' }),
    tamper:
      'nft add table inet muster; nft add chain inet muster input; nft add rule inet muster input tcp dport 1 drop comment web',
    moved: ['ensure'],
    state,
  },
];
