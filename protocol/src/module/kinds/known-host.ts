import { sshKeyType } from '../../ssh-key.ts';
import { choice, formatted, list } from './field.ts';
import type { Check } from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

const keyTypes = [
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
] as const;

/**
 * A host name in a known_hosts line. Excludes patterns, hashes, and negations, which would make a line match other
 * hosts.
 */
const hostName: Check = (text) => {
  const [, name = text, port] = /^\[(.*)\]:(\d+)$/.exec(text) ?? [];
  if (name.length > 255 || !/^[A-Za-z0-9_:][A-Za-z0-9_.:%-]*$/.test(name))
    return 'must be a host name, an address, or one of them with a port, such as "[git.example.org]:2222"';
  if (port === '22') return `must be ${name}: ssh looks for [host]:port only if the port is not 22`;
  const isPort = port === undefined || (/^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535);
  return isPort ? undefined : 'must have a port from 1 to 65535';
};

const publicKey: Check = (text) =>
  keyTypes.some((known) => known === sshKeyType(text))
    ? undefined
    : 'must be the base64 text of an SSH public key, such as "AAAAC3NzaC1lZDI1NTE5…", without its type';

export const knownHostKind = {
  'known-host': defineKind({
    description: 'The public key of an SSH host, in `/etc/ssh/ssh_known_hosts`',
    platforms: ['linux'],
    example: `name: git.example.org\nkey_type: ssh-ed25519\nkey: AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}\naliases: [203.0.113.7]`,
    required: {
      name: formatted('Name or address of the host, or [host]:port', hostName),
      key_type: choice('Type of the key', keyTypes),
      key: formatted('The public key as base64', publicKey),
    },
    optional: { aliases: list('All other names and addresses of the host', formatted('A name', hostName)), ensure },
    identifiedBy: ['name', 'key_type'],
    identity: (body) => joined(body.name, '/', body.key_type),
    canonical: (identity) => identity.toLowerCase(),
  }),
};
