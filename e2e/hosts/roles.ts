import type { Json } from '@muster/protocol/module';

/** The modules in `examples/roles` that a Debian machine can apply. */

export interface Role {
  name: string;
  parameters: Readonly<Record<string, Json>>;
  /** Shell text that prints `expected` once the module is applied. */
  shows: string;
  expected: string;
  /** Patterns for the paths that remain after the module is removed. */
  stays?: readonly RegExp[];
}

/** Accounts that packages create, which Debian keeps. */
const accounts = /^\/etc\/(passwd|group|shadow|gshadow|subuid|subgid)$/;
/** Databases of installed packages and links. */
const records = /^\/(var\/lib\/ucf|etc\/alternatives|var\/cache\/debconf)\//;

export const roles: readonly Role[] = [
  {
    name: 'accounts-and-keys',
    parameters: {
      groups: { staff2: { gid: 3000 } },
      users: {
        ann: {
          uid: 2001,
          groups: ['staff2'],
          fullname: 'Ann Example',
          password_max_days: 90,
          sudo_rules: ['ALL=(root) NOPASSWD: ALL'],
          ssh_config: { git: ['User g'] },
          authorized_keys: ['ssh-ed25519 AAAA one'],
          known_hosts: { 'git-1.example.org': 'ssh-ed25519 AAAA' },
          git: { 'user.name': 'Ann' },
        },
        ben: { shell: '/bin/sh' },
      },
      absent_users: ['mallory'],
    },
    shows:
      'id -nG ann; getent passwd ann | cut -d: -f5; getent shadow ann | cut -d: -f5; stat -c %a /home/ann; sudo -n -u ann sudo -n id -u; cd /home/ann; cat .ssh/config .ssh/authorized_keys .ssh/known_hosts; stat -c %U .gitconfig; grep -A1 user .gitconfig',
    expected:
      'ann staff2\nAnn Example\n90\n750\n0\n# Managed by Muster.\nHost git\n  User g\nssh-ed25519 AAAA one\ngit-1.example.org ssh-ed25519 AAAA\nann\n[user]\nname = Ann\n',
    stays: [/^\/home\/ann(\/|$)/],
  },
  {
    name: 'auto-upgrades',
    parameters: { blacklist: ['linux-'], mail: 'ops@example.com' },
    shows: 'apt-config dump | grep -E "^Unattended-Upgrade::(Mail|Package-Blacklist::) "',
    expected: 'Unattended-Upgrade::Package-Blacklist:: "linux-";\nUnattended-Upgrade::Mail "ops@example.com";\n',
  },
  {
    name: 'fail2ban',
    parameters: { bantime: 3600, ignoreips: ['127.0.0.1/8', '10.0.0.0/8'] },
    shows: 'fail2ban-client get sshd bantime; fail2ban-client status | grep -c sshd',
    expected: '3600\n1\n',
    // The package is not purged, because it has created a ban database.
    stays: [/fail2ban/, /^\/etc\/monit(\/|$)/],
  },
  {
    name: 'logcheck',
    parameters: { packages: ['nullmailer', 'logcheck'], custom_ignores: ['^kernel: martian'] },
    shows: 'stat -c "%G %a" /etc/logcheck/logcheck.logfiles; cat /etc/logcheck/ignore.d.server/custom',
    expected: 'logcheck 640\n^kernel: martian\n',
  },
  {
    name: 'logrotate',
    parameters: { scripts: [{ name: 'app', path: '/var/log/app/*.log', options: ['weekly', 'missingok'] }] },
    shows: 'logrotate -d /etc/logrotate.d/app 2>&1 | grep -c "/var/log/app/"',
    expected: '2\n',
  },
  {
    name: 'motd-static',
    parameters: { dynamic: false },
    shows: 'head -n 2 /etc/motd | tail -n 1; grep -c ^session.*motd.dynamic /etc/pam.d/sshd || true',
    expected: 'debian 12 x86_64\n0\n',
  },
  {
    name: 'nginx-sites',
    parameters: {
      sites: { shop: ['listen 8080', 'location / { return 200 shop; }'] },
      configs: { limits: ['client_max_body_size 8m'] },
      keep_only_specified: true,
    },
    shows: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; tail -n 1 <&3'; ls /etc/nginx/sites-enabled`,
    expected: 'shopshop.conf\n',
  },
  {
    name: 'ntp',
    parameters: { manage_config: true, area: 'europe', timezone: 'Europe/Paris' },
    shows: 'readlink /etc/localtime; grep -c europe.pool.ntp.org /etc/chrony/chrony.conf',
    expected: '/usr/share/zoneinfo/Europe/Paris\n4\n',
  },
  {
    name: 'ssh-hardening',
    parameters: { ports: [22, 2222], print_motd: false },
    shows:
      'sshd -T | grep -E "^(port|permitrootlogin|passwordauthentication) "; grep -c pam_motd /etc/pam.d/sshd || true',
    expected: 'port 22\nport 2222\npermitrootlogin no\npasswordauthentication no\n0\n',
  },
  {
    name: 'sudo',
    parameters: {
      purge: true,
      rules: { 'web.admins': { priority: 5, content: ['%web ALL=(ALL) NOPASSWD: /bin/true'] } },
    },
    shows: 'cat /etc/sudoers.d/*; stat -c %a /etc/sudoers.d; visudo -cq && echo valid',
    expected: '# Managed by Muster.\n%web ALL=(ALL) NOPASSWD: /bin/true\n550\nvalid\n',
  },
  {
    name: 'sysctl',
    parameters: {},
    shows: 'sysctl -n net.ipv4.conf.all.accept_redirects net.ipv4.conf.all.rp_filter',
    expected: '0\n1\n',
  },
];

export const staysAlways: readonly RegExp[] = [accounts, records];
