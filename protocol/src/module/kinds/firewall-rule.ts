import { ipNetwork } from '../../ip-network.ts';
import { choice, formatted, list } from './field.ts';
import type { Check } from './format.ts';
import { defineKind, ensure } from './kind.ts';

const ruleName: Check = (text) =>
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text)
    ? undefined
    : 'must be a name of up to 64 letters, digits, "_", "." and "-"';

const ports: Check = (text) => {
  const [first = 0, last = first] = /^[1-9]\d{0,4}(-[1-9]\d{0,4})?$/.test(text) ? text.split('-').map(Number) : [];
  return first > 0 && first <= last && last <= 65_535
    ? undefined
    : 'must be a port from 1 to 65535, or a range such as "8000-8010"';
};

const network: Check = (text) =>
  ipNetwork(text) === null
    ? 'must be an IP address, or a network such as 192.0.2.0/24 or 2001:db8::/32; omit the field for all addresses'
    : undefined;

const zone: Check = (text) =>
  /^[A-Za-z0-9_-]{1,17}$/.test(text) ? undefined : 'must be a zone of up to 17 letters, digits, "_", and "-"';

/** A comment of a rule. nft(8) accepts comments of up to 128 bytes, and the agent's comment also contains the name. */
const comment: Check = (text) =>
  /^[\x20-\x7e]{1,60}$/.test(text) && !/["\\]/.test(text)
    ? undefined
    : 'must be up to 60 printable ASCII characters, without quotes and backslashes';

export const firewallRuleKind = {
  'firewall-rule': defineKind({
    description:
      'A rule of the firewall for new connections: of ufw where it is active, of firewalld where it runs, and otherwise in the table `muster` of nftables',
    platforms: ['linux'],
    example: 'name: web\nports: ["80", "443"]\nsource: [192.0.2.0/24]\naction: accept\ncomment: customers',
    required: { name: formatted('Name of the rule', ruleName) },
    optional: {
      action: choice(
        'What happens to matching packets; `limit` accepts up to 5 connections of a sender in 30 seconds, and needs ufw',
        ['accept', 'drop', 'reject', 'limit'],
        'accept',
      ),
      direction: choice('Whether the rule is for incoming or outgoing packets', ['in', 'out'], 'in'),
      protocol: choice('Protocol; default: tcp for a rule with ports, any for a rule without ports', [
        'tcp',
        'udp',
        'icmp',
        'any',
      ]),
      ports: list('Destination ports and ranges; default: all', formatted('A port or a range', ports)),
      source: list('Senders of incoming packets; default: all', formatted('An address or network', network)),
      destination: list('Receivers of outgoing packets; default: all', formatted('An address or network', network)),
      comment: formatted('A comment, which nft and ufw show', comment),
      zone: formatted('Zone of firewalld; default: its default zone', zone),
      ensure,
    },
    exclusive: [['source', 'destination']],
    needs: { destination: 'direction' },
  }),
};
