import type { Subject } from '../subjects/subject.ts';

const rule = (fields: object) => ({ 'firewall-rule': { name: 'web', ...fields } });

/**
 * Returns shell text that activates ufw with a rule of an administrator. Reloads ufw, because it loads some of its IPv6
 * rules only on the first reload.
 */
export const ufwActive = (rules = ''): string =>
  `ufw --force enable > /dev/null; ${rules}ufw allow 22/tcp comment ssh > /dev/null; ufw reload > /dev/null\n`;
export const ufwState = "iptables -S; ip6tables -S; ufw status numbered | grep -v '^Status'";

export const ufwSubjects: Subject[] = [
  {
    name: 'firewall-rule in ufw, created',
    prepare: ufwActive(),
    desired: rule({
      ports: ['443', '80', '8000-8010'],
      source: ['192.0.2.7/24', '2001:DB8::/32'],
      comment: "it's $& for customers",
    }),
    changed: rule({ action: 'reject', direction: 'out', destination: ['192.0.2.7'] }),
    tamper: "ufw --force delete 1 > /dev/null; ufw deny 443/udp comment 'muster: web' > /dev/null",
    moved: ['action', 'protocol', 'ports', 'source'],
    state: ufwState,
  },
  {
    name: 'firewall-rule in ufw, absent',
    prepare: ufwActive("ufw limit 2222/tcp comment 'muster: web: own' > /dev/null; "),
    desired: rule({ ensure: 'absent' }),
    changed: rule({ ports: Array.from({ length: 20 }, (_, i) => String(1000 + 2 * i)), action: 'limit' }),
    tamper: "ufw deny 443/udp comment 'muster: web' > /dev/null",
    moved: ['ensure'],
    state: ufwState,
  },
];

/** Shell text that starts firewalld with a zone that an administrator has changed. */
export const firewalldActive =
  'systemctl start firewalld; firewall-cmd -q --permanent --zone=work --add-port=99/tcp; firewall-cmd -q --reload\n';
/** firewalld lists rich rules in no particular order. */
export const firewalldState = 'for s in "" --permanent; do firewall-cmd $s --list-all-zones | sort; done';
const firewalld = { slow: true, state: firewalldState };

export const firewalldSubjects: Subject[] = [
  {
    ...firewalld,
    name: 'firewall-rule in firewalld, created',
    prepare: firewalldActive,
    desired: rule({
      ports: ['443', '80', '8000-8010'],
      source: ['192.0.2.7/24', '2001:DB8::/32'],
      comment: 'customers',
    }),
    changed: rule({ protocol: 'icmp', action: 'reject', zone: 'work' }),
    tamper:
      'firewall-cmd -q --reload; firewall-cmd -q --remove-rich-rule="$(firewall-cmd --list-rich-rules | grep 2001 | grep 443)"',
    moved: ['ports'],
  },
];
