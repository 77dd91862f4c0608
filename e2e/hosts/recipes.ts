import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '@muster/protocol/module';
import { root } from '../../tools/suite/cli.ts';

/** The recipes that the test assigns to one machine, in this order. */
export const recipes = [
  ...['motd', 'users', 'nginx', 'postgresql', 'firewall', 'unattended-upgrades', 'node-exporter', 'backup'],
  'sysctl-hardening',
] as const;
export type Recipe = (typeof recipes)[number];

export const recipeText = (name: string): string => readFileSync(join(root, `docs/recipes/${name}.yml`), 'utf8');

/** A password with characters that have a special meaning in a shell, in SQL, or in a connection string. */
export const password = `it's "$(touch /pwned)" \\ :'x' %s`;

export type Parameters = Record<string, Record<string, Json>>;

/** Returns the assignment's parameters that differ from the defaults. */
export const parametersOf = (key: string, network: string): Parameters => ({
  users: {
    users: [
      { name: 'ada', groups: ['admins'] },
      { name: 'bob', groups: [], shell: '/bin/sh' },
    ],
    keys: [{ user: 'ada', key, comment: 'laptop' }],
    leavers: ['mallory'],
    password_login: 'no',
  },
  nginx: { names: ['www.example.com', 'example.com'] },
  postgresql: { listen: '*', clients: [network] },
  firewall: { tcp: [80, '9000-9200'] },
  'unattended-upgrades': { keep: ['linux-'] },
  backup: { keep: 3, sources: ['/etc', '/srv/www'], exclude: ['*.pub'] },
  // A container cannot set the other kernel parameters. This one already has the desired value.
  'sysctl-hardening': { kernel: [{ key: 'kernel.randomize_va_space', value: '2' }] },
});

/** Returns the parameters with some values changed. */
export const changedParameters = (parameters: Parameters): Parameters => ({
  ...parameters,
  motd: { message: 'Read the wiki first.' },
  nginx: { ...parameters.nginx, port: 8080, title: 'Moved' },
  firewall: { tcp: [8080, 5432, '9000-9200'] },
});

/** All changes that an apply with the changed parameters must make: the action by `module/id`. */
export const changesThen: Readonly<Record<string, string>> = {
  'motd/motd': 'update',
  'nginx/page': 'update',
  'nginx/site': 'update',
  'nginx/service': 'reload',
  'firewall/rules': 'update',
  'firewall/loaded': 'run',
};

/** All changes that an apply makes after the recipes of version 0.1 were applied: the action by `module/id`. */
export const changesSinceFirst: Readonly<Record<string, string>> = {
  // The program contains the path of the target, and the script of the role contains the names.
  'backup/program': 'update',
  'backup/where': 'remove',
  'postgresql/access': 'remove',
};

/** Actions of an apply that differ from the plan because a package makes some of the changes; null for no action. */
export const doneByPackage: Readonly<Record<string, string | null>> = {
  'nginx/service': 'reload',
  'postgresql/cluster': 'restart',
  'postgresql/service': null,
  'unattended-upgrades/schedule': 'update',
  'unattended-upgrades/service': 'restart',
  'node-exporter/arguments': 'update',
  'node-exporter/service': 'restart',
};

/** Manual changes, with the resources and fields that a drift check then reports. */
export const byHand: Readonly<Record<Recipe, { shell: string; moved: Readonly<Record<string, string[]>> }>> = {
  motd: { shell: 'echo free beer > /etc/motd', moved: { motd: ['content'] } },
  users: {
    shell: [
      'gpasswd -d ada admins > /dev/null; echo "ssh-ed25519 AAAA theirs" > /home/ada/.ssh/authorized_keys',
      'useradd mallory; rm /etc/sudoers.d/muster-admins',
    ].join('; '),
    moved: {
      'user[0]': ['additional_groups'],
      'key[0]': ['ensure', 'comment'],
      'leaver[0]': ['ensure'],
      sudoers: ['ensure', 'content', 'owner', 'group', 'mode'],
    },
  },
  nginx: {
    shell: 'systemctl stop nginx; echo hacked > /srv/www/index.html',
    moved: { page: ['content'], service: ['running'] },
  },
  postgresql: {
    shell: `cd /; runuser -u postgres -- psql -qc "ALTER ROLE app PASSWORD 'guessed'"; sed -i '/scram-sha-256$/d' /etc/postgresql/15/main/pg_hba.conf`,
    moved: { local: ['content'], 'client[0]': ['content'], role: ['check'] },
  },
  firewall: { shell: 'nft add rule inet muster_firewall input tcp dport 1-65535 accept', moved: { loaded: ['check'] } },
  'unattended-upgrades': {
    shell: `sed -i 's/Unattended-Upgrade "1"/Unattended-Upgrade "0"/' /etc/apt/apt.conf.d/20auto-upgrades`,
    moved: { schedule: ['content'] },
  },
  'node-exporter': {
    shell: 'systemctl disable --now prometheus-node-exporter 2> /dev/null',
    moved: { service: ['enabled', 'running'] },
  },
  backup: {
    shell: 'chmod 0755 /var/backups/muster; rm /etc/cron.d/muster-root-backup',
    moved: { target: ['mode'], job: ['ensure', 'schedule', 'user', 'command'] },
  },
  'sysctl-hardening': {
    shell:
      'echo 1 > /proc/sys/net/ipv4/conf/all/accept_redirects; rm /etc/sysctl.d/90-muster-net.ipv4.tcp_syncookies.conf',
    moved: { 'network[2]': ['value'], 'network[11]': ['persisted'] },
  },
};

/** Parameter values that are incomplete, or that the file or command that contains them would interpret. */
export const hostile: Parameters = {
  users: { sudo: 'ALL=(ALL) ALL\nmallory ALL=(ALL) NOPASSWD: ALL', password_login: 'no\nPermitEmptyPasswords yes' },
  nginx: { names: ['_; location /etc/ { root /; } #'] },
  postgresql: { role: "x';touch$IFS/pwned;'", clients: ['all'], listen: "*'\narchive_command = 'touch /pwned" },
  firewall: {
    tcp: [
      '80 }\n}\n}\ntable ip theirs { }\ntable inet muster_firewall {\nset more {\ntype inet_service\nelements = { 1',
    ],
  },
  'unattended-upgrades': { mail: 'a"; APT::Update::Pre-Invoke { "touch /pwned"; }; B "', keep: ['lib.*'] },
  'node-exporter': { arguments: ['"\nLD_PRELOAD="/tmp/theirs.so'] },
  backup: { keep: 0 },
  'sysctl-hardening': { kernel: [{ key: 'kernel.randomize_va_space' }] },
};

/** The error for each hostile value, by its path in the assignment. */
export const refusals: Readonly<Record<string, string>> = {
  '/parameters/users/sudo': 'must match the pattern',
  '/parameters/users/password_login': 'must be one of yes, no',
  '/parameters/nginx/names/0': 'must match the pattern',
  '/parameters/postgresql/role': 'must match the pattern',
  '/parameters/postgresql/clients/0': 'must match the pattern',
  '/parameters/postgresql/listen': 'must match the pattern',
  '/parameters/firewall/tcp/0': 'must match the pattern',
  '/parameters/unattended-upgrades/mail': 'must match the pattern',
  '/parameters/unattended-upgrades/keep/0': 'must match the pattern',
  '/parameters/node-exporter/arguments/0': 'must match the pattern',
  '/parameters/backup/keep': 'must be at least 1',
  '/parameters/sysctl-hardening/kernel/0': 'needs the key "value"',
};

/** Patterns for the paths that remain after all recipes are removed, as the recipe pages state. */
export const staysAfterwards: readonly RegExp[] = [
  // Accounts that packages created, which Debian keeps after a purge.
  /^\/etc\/(passwd|group|shadow|gshadow|subuid|subgid)$/,
  // A home directory that its owner has used.
  /^\/home\/ada(\/|$)/,
  /^\/var\/backups\/muster(\/|$)/,
  // The database, because its package is removed but not purged.
  /postgresql/,
  /^\/etc\/alternatives\//,
  /^\/usr\/share\/man\/man\d\/[^/]+$/,
  /^\/var\/lib\/ucf\//,
];

/** Packages that Debian keeps as long as a database cluster exists. */
export const clientsOfDatabase = ['postgresql-client-15', 'postgresql-client-common'];

/** Generates a key. @returns the public key in OpenSSH format, and the private key in PEM */
export function sshKey(): { line: string; privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const field = (content: string | Buffer) => {
    const bytes = Buffer.from(content as string);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  const blob = Buffer.concat([field('ecdsa-sha2-nistp256'), field('nistp256'), field(point)]);
  return {
    line: `ecdsa-sha2-nistp256 ${blob.toString('base64')}`,
    privateKey: privateKey.export({ format: 'pem', type: 'sec1' }).toString(),
  };
}
