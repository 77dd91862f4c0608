import { derivedRoot } from '../derived-root.ts';

/** Builds a Debian root with ufw and firewalld, neither of which is active. */
export const firewallsRoot = (): Promise<string> =>
  derivedRoot({
    name: 'firewalls',
    packages: ['ufw', 'firewalld', 'nftables', 'iptables', 'netbase'],
    finish:
      'rm -f "$new"/etc/systemd/system/*/firewalld.service "$new"/etc/systemd/system/dbus-org.fedoraproject.FirewallD1.service',
  });
