import type { Json } from '@muster/protocol/module';
import { registry, registryPassword, registryUp, registryUser } from './subjects/containers/container.ts';
import { ownModules } from './subjects/kernel-module.ts';
import { pipIndex, pipIndexUp } from './subjects/language-packages.ts';

/** The modules in `examples/roles` that a Debian machine can apply. */

export interface Role {
  name: string;
  /** Package pool with the packages of the module. Default: `roles`. */
  pool?: 'services';
  /** Shell text that runs before the module is applied. */
  prepare?: string;
  parameters: Readonly<Record<string, Json>>;
  /** Values of the module's secrets by their name. */
  secrets?: Readonly<Record<string, string>>;
  /** Shell text that prints `expected` once the module is applied. */
  shows: string;
  expected: string;
  /** Patterns for the paths that remain after the module is removed. */
  stays?: readonly RegExp[];
}

/** Accounts that packages create, which Debian keeps. */
const accounts = /^\/etc\/(passwd|group|shadow|gshadow|subuid|subgid)$/;
/** Links and records of the services of packages that are not purged. */
const services =
  /^\/(etc\/systemd\/(system|user)\/sockets\.target\.wants|var\/lib\/systemd\/deb-systemd-(user-)?helper-enabled)/;
/** A public key of WireGuard: any 32 bytes. */
const phoneKey = Buffer.alloc(32, 'phone').toString('base64');
/** Databases of installed packages and links. */
const records = /^\/(var\/lib\/ucf|etc\/alternatives|var\/cache\/debconf)\//;

export const roles: readonly Role[] = [
  {
    name: 'accounts-and-keys',
    parameters: {
      groups: { staff2: { gid: 3000 }, readers: { members: ['games', 'ben'] } },
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
          key_pairs: { id_deploy: { private: 'ann_key', public: 'ssh-ed25519 AAAA deploy' } },
          room: '12',
        },
        ben: { shell: '/bin/sh', home: '/srv/homes/a/b/c/d/ben', system: true },
      },
      absent_users: ['mallory'],
    },
    secrets: { ann_key: 'private' },
    shows:
      'getent group readers | cut -d: -f4; stat -c "%U %a" /srv/homes/a/b/c/d/ben /srv/homes; cat /home/ann/.ssh/id_deploy /home/ann/.ssh/id_deploy.pub; id -nG ann; getent passwd ann | cut -d: -f5; getent shadow ann | cut -d: -f5; stat -c %a /home/ann; sudo -n -u ann sudo -n id -u; cd /home/ann; cat .ssh/config .ssh/authorized_keys .ssh/known_hosts; stat -c %U .gitconfig; grep -A1 user .gitconfig',
    expected:
      'games,ben\nben 750\nroot 755\nprivatessh-ed25519 AAAA deploy\nann staff2\nAnn Example,12,,\n90\n750\n0\n# Managed by Muster.\nHost git\n  User g\nssh-ed25519 AAAA one\ngit-1.example.org ssh-ed25519 AAAA\nann\n[user]\nname = Ann\n',
    stays: [/^\/home\/ann(\/|$)/],
  },
  {
    name: 'auto-upgrades',
    parameters: {
      blacklist: ['linux-'],
      mail: 'ops@example.com',
      update_days: ['Mon', 'Fri'],
      options: { 'Acquire::Retries': 3 },
    },
    shows:
      'apt-config dump | grep -E "^(Unattended-Upgrade::(Mail|Package-Blacklist::|Update-Days::)|Acquire::Retries) " | sort',
    expected:
      'Acquire::Retries "3";\nUnattended-Upgrade::Mail "ops@example.com";\nUnattended-Upgrade::Package-Blacklist:: "linux-";\nUnattended-Upgrade::Update-Days:: "Fri";\nUnattended-Upgrade::Update-Days:: "Mon";\n',
  },
  {
    name: 'docker-host',
    pool: 'services',
    prepare: `apt-get install -qq --yes docker-registry > /dev/null\n${registryUp}${pipIndexUp}`,
    parameters: {
      package: 'docker.io',
      index_url: pipIndex,
      users: ['games'],
      // Test hosts lack the parts of the kernel that the defaults need.
      daemon: { 'storage-driver': 'vfs', iptables: false, ip6tables: false, bridge: 'none' },
      environment: { HTTP_PROXY: 'http://proxy:3128' },
      python_packages: [{ name: 'tool', link: '/usr/local/bin/tool' }],
      registries: {
        'https://index.docker.io/v1/': 'hub_sign_in',
        [registry]: { username: registryUser, password: 'registry_password' },
      },
    },
    secrets: { hub_sign_in: 'YTpi', registry_password: registryPassword },
    shows: `docker info --format '{{.Driver}} {{.HTTPProxy}}'; id -nG games; test -x /usr/local/bin/tool && grep -c YTpi /root/.docker/config.json; tar -c -C /etc hostname | docker import - ${registry}/empty > /dev/null; docker push -q ${registry}/empty; grep -c 'docker system prune' /etc/cron.d/muster-root-docker-cleanup`,
    expected: `vfs http://proxy:3128\ngames docker\n1\n${registry}/empty:latest\n1\n`,
    // The package is not purged, because its daemon has changed its data.
    stays: [
      services,
      /^\/(etc|var\/lib)\/(?!.*(daemon\.json|service\.d|docker\.pref|docker-cleanup)).*(docker|containerd)/,
      /^\/etc\/(X11|cni|logcheck)(\/|$)/,
    ],
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
    name: 'haproxy',
    pool: 'services',
    parameters: {
      // A test host permits 1024 open files.
      maxconn: 100,
      global_maxconn: 200,
      listen: {
        web: {
          mode: 'http',
          binds: [{ address: '127.0.0.1', port: 8081 }],
          http_request: ['return status 200 content-type text/plain string hello'],
        },
        db: {
          type: 'mysql',
          binds: [{ address: '127.0.0.1', port: 8083 }],
          servers: [{ name: 'db', host: '127.0.0.1', port: 1 }],
        },
        keystone: {
          type: 'openstack-service',
          binds: [{ address: '127.0.0.1', port: 8084 }],
          checks: { http: ['expect status 200'] },
        },
        horizon: { type: 'horizon', binds: [{ address: '127.0.0.1', port: 8085 }] },
        heat: { type: 'heat', binds: [{ address: '127.0.0.1', port: 8086 }] },
        analytics: { type: 'contrail-analytics', binds: [{ address: '127.0.0.1', port: 8087 }] },
        counts: {
          type: 'stats',
          user: 'reader',
          password: 'haproxy_admin',
          binds: [{ address: '127.0.0.1', port: 8089 }],
        },
        numbers: { type: 'admin', binds: [{ address: '127.0.0.1', port: 8082 }] },
      },
      sections: {
        'frontend www': ['bind 127.0.0.1:8088', 'default_backend other'],
        'backend other': ['server other 127.0.0.1:1'],
      },
      admin: { user: 'ops', password: 'haproxy_admin' },
    },
    secrets: { haproxy_admin: 'horse-battery' },
    shows: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/8081; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; tail -n 1 <&3'; echo; for sign_in in other:one reader:horse-battery; do export sign_in; bash -c 'exec 3<>/dev/tcp/127.0.0.1/8089; printf "GET / HTTP/1.0\\r\\nAuthorization: Basic $(printf $sign_in | base64)\\r\\n\\r\\n" >&3; head -n 1 <&3 | cut -d " " -f 2'; done; haproxy-status.sh | grep -c web; stat -c %a /usr/bin/haproxy-status.sh`,
    expected: 'hello\n401\n200\n2\n700\n',
    // The unit of the package mounts the socket of the log there, and Debian keeps the mount point.
    stays: [/^\/var\/lib\/haproxy(\/|$)/],
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
    name: 'mariadb',
    pool: 'services',
    // mariadb-server needs both, and Debian's base system can use them too, so they would stay.
    prepare: 'apt-get install -qq --yes gawk psmisc > /dev/null',
    parameters: {
      databases: { shop: { force: true } },
      users: [
        { name: 'shop', password: 'shop_db', grants: [{ database: 'shop', privileges: ['SELECT', 'INSERT'] }] },
        { name: 'hashed', password_hash: 'hash_of_b' },
      ],
      backup_databases: ['shop'],
      replication_role: 'primary',
      root_my_cnf: true,
    },
    secrets: {
      shop_db: 'horse-battery',
      hash_of_b: '*F33AE6DD04EF4C7C1D3105568E7FB7C1EE16C937',
      mariadb_root: 'horse-staple',
      mariadb_replication: 'battery-staple',
    },
    shows:
      "mariadb -uhashed -pb -Ne 'SELECT 1'; mariadb -ushop -phorse-battery -Ne 'SHOW DATABASES' | grep shop; mariadb -Ne 'SELECT @@server_id, @@log_bin'; /usr/local/bin/mariadb-dump-databases; ls /mnt/backup | wc -l; rm /mnt/backup/*",
    expected: '1\nshop\n1\t1\n1\n',
    // The package is not purged, because its server has changed its data.
    stays: [
      /^(?!.*(90-muster|dump-databases)).*(mysql|mariadb)/,
      services,
      /^\/etc\/(apparmor\.d|logcheck|security\/user_map\.conf$)/,
      /^\/etc\/(default|init\.d|rc\d\.d)\/(S01)?rsync$/,
    ],
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
    // The package pool has no ntpsec.
    parameters: { package: 'chrony', manage_config: true, area: 'europe', timezone: 'Europe/Paris' },
    shows: 'readlink /etc/localtime; grep -c europe.pool.ntp.org /etc/chrony/chrony.conf',
    expected: '/usr/share/zoneinfo/Europe/Paris\n4\n',
  },
  {
    name: 'postfix',
    pool: 'services',
    parameters: {
      mode: 'mta',
      relayhost: '[smtp.example.org]:587',
      settings: { smtp_sasl_auth_enable: 'yes', mynetworks: '10.0.0.0/8' },
      comments: { mynetworks: 'the office' },
      use_amavisd: true,
      use_dovecot_lda: true,
      use_schleuder: true,
      use_sympa: true,
      master_submission: 'submission inet n - - - - smtpd',
      aliases: { postmaster: ['root', 'games'] },
      maps: { transport: { entries: { 'lists.example.org': 'local:' } } },
      passwords: { '[smtp.example.org]:587': { user: 'relay', password: 'relay_password' } },
    },
    secrets: { relay_password: 'horse-battery' },
    shows:
      "postfix check; grep -B1 '^mynetworks' /etc/postfix/main.cf | head -n 1; postconf -M amavis/unix submission/inet | wc -l; postconf -h relayhost mynetworks; postmap -q lists.example.org /etc/postfix/transport; postmap -q '[smtp.example.org]:587' /etc/postfix/passwd; postalias -q postmaster /etc/aliases; bash -c 'exec 3<>/dev/tcp/127.0.0.1/25; head -c 3 <&3'",
    expected:
      '# mynetworks: the office\n2\n[smtp.example.org]:587\n10.0.0.0/8\nlocal:\nrelay:horse-battery\nroot, games\n220',
    // The package is not purged, because the database of the aliases has changed.
    stays: [
      /^(?!\/etc\/postfix\/(passwd|transport|virtual)).*postfix/,
      /^\/etc\/(aliases(\.db)?|mail\.rc|(network|ppp|resolvconf|insserv\.conf\.d|rsyslog\.d)(\/[^/]+)?)$/,
    ],
  },
  {
    name: 'samba-shares',
    pool: 'services',
    parameters: {
      map_to_guest: 'bad user',
      shares: [{ name: 'public', guest_ok: true, writable: false }],
      users: { games: 'games_smb' },
      username_map: { games: ['gamer'] },
      includes: { 'global.conf': 'time server = yes\n' },
      www_root: '/var/www',
    },
    secrets: { games_smb: 'horse-battery' },
    shows:
      "echo one > /srv/shares/public/one; smbclient -N //127.0.0.1/public -c 'get one -'; smbclient -U gamer%horse-battery -gL 127.0.0.1 | grep public; readlink /var/www/public; rm /srv/shares/public/one",
    expected: 'one\nDisk|public|\n/srv/shares/public\n',
    // The package is not purged, because its server has changed its data.
    stays: [/^(?!\/etc\/samba\/(smbusers|global\.conf)).*(samba|smbd|nmbd)/, /^\/etc\/dhcp(\/|$)/],
  },
  {
    name: 'ssh-hardening',
    parameters: {
      ports: [22, 2222],
      print_motd: false,
      principals_files: { '/etc/ssh/principals/games': { principals: ['web'], owner: 'games', mode: '0600' } },
      principals_file: '/etc/ssh/principals/%u',
    },
    shows:
      'stat -c "%U %a" /etc/ssh/principals/games; sshd -T | grep -E "^(port|permitrootlogin|passwordauthentication|authorizedprincipalsfile) "; grep -c pam_motd /etc/pam.d/sshd || true',
    expected:
      'games 600\nport 22\nport 2222\npermitrootlogin no\npasswordauthentication no\nauthorizedprincipalsfile /etc/ssh/principals/%u\n0\n',
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
  {
    name: 'wireguard',
    pool: 'services',
    // The interface runs in wireguard-go, because the kernel of the test hosts may not have WireGuard.
    prepare: `${ownModules}apt-get install -qq --yes wireguard-go > /dev/null`,
    parameters: {
      endpoint: 'vpn-1.example.org',
      other_peers: {
        phone: { PublicKey: phoneKey, AllowedIPs: '10.8.0.99/32' },
      },
    },
    shows:
      'wg show wg0 listen-port; wg show wg0 allowed-ips; ip -br addr show wg0 | grep -o 10.8.0.1/24; test "$(wg show wg0 public-key)" = "$(wg pubkey < /etc/wireguard/wg0.key)"; /var/lib/muster-agent/facts.d/wireguard | tail -n 3; stat -c %a /etc/wireguard/wg0.key',
    expected: `51820\n${phoneKey}\t10.8.0.99/32\n10.8.0.1/24\n  allowed_ips: '10.8.0.1/32'\n  endpoint: 'vpn-1.example.org:51820'\n  keepalive: '0'\n600\n`,
  },
];

export const staysAlways: readonly RegExp[] = [accounts, records];
