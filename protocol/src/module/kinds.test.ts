import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { identify, kinds, type ResourceType, resourceTypes } from './kinds.ts';
import { parseModule } from './parse.ts';
import { resolveDesiredSet } from './resolve.ts';

type Complete = [fields: string, key: string];

/** Fields of each kind as written, and the key of the resulting resource. */
const complete: Partial<Record<ResourceType, Complete>> = {
  'package-apt': [
    `name: nginx-light, version: 1.22.1-9, recommends: false, hold: true, url: "https://x.example/a.deb", sha256: ${'0123456789abcdef'.repeat(4)}, ensure: present`,
    'package-apt:nginx-light',
  ],
  'package-dnf': [
    `name: NetworkManager, version: latest, hold: true, url: "https://x.example/a.rpm", sha256: ${'0123456789abcdef'.repeat(4)}, ensure: absent`,
    'package-dnf:NetworkManager',
  ],
  'package-zypper': [
    `name: MozillaFirefox, version: ">=1:1.2", hold: true, url: "https://x.example/a.rpm", sha256: ${'0123456789abcdef'.repeat(4)}, ensure: absent`,
    'package-zypper:MozillaFirefox',
  ],
  'package-pacman': ['name: gtk2+extra, version: "1:1.2-3", hold: true, ensure: absent', 'package-pacman:gtk2+extra'],
  'package-apk': ['name: nginx, version: 1.26.3-r0, ensure: absent', 'package-apk:nginx'],
  'package-brew': ['name: homebrew/core/wget, version: latest, ensure: absent', 'package-brew:homebrew/core/wget'],
  'package-choco': ['name: git.install, version: latest, ensure: absent', 'package-choco:git.install'],
  'package-winget': ['name: Git.Git, version: latest, ensure: absent', 'package-winget:Git.Git'],
  'package-npm': [
    'name: "@angular/cli", version: ">=17 <19 || 20.x", prefix: /opt/node, user: ada, registry: "https://npm.example.org/", ensure: present',
    'package-npm:@angular/cli#/opt/node',
  ],
  'package-pip': [
    'name: Zope.Interface, version: "1!2.0rc1.post2+cu121", virtualenv: /opt/venv, user: ada, index_url: "https://u:p@pip.example.org/simple/", ensure: present',
    'package-pip:zope-interface#/opt/venv',
  ],
  'file-unix': [
    'path: /etc/a b, content: "x", owner: root, group: "0", mode: "0644", acl: [u:ada:rw], attributes: [i, no_dump], capabilities: [cap_net_raw, cap_chown], validate: "visudo -cf %", if_exists: keep, ensure: present',
    'path:/etc/a b',
  ],
  'file-windows': ["path: 'C:\\Data\\A.txt', content: x, ensure: present", 'path:c:\\data\\a.txt'],
  'directory-unix': [
    'path: /srv/www/, source: www, purge: true, force: true, recursive: true, only: ["*.key"], owner: www-data, group: www-data, mode: "2775", acl: ["d:g:adm:rx"], attributes: [S], file_mode: "0664", ensure: present',
    'path:/srv/www',
  ],
  'directory-windows': ['path: "c:/Data", ensure: present', 'path:c:\\data'],
  'user-unix': [
    'name: ada, uid: 1001, primary_group: ada, additional_groups: [audio], home: /home/ada, shell: /bin/sh, system: false, remove_home: false, create_home: true, comment: Ada L, password_hash: "$6$salt$abcdefgh", locked: false, expires: never, password_min_days: 0, password_max_days: 90, password_warn_days: 7, password_inactive_days: -1, ensure: present',
    'user-unix:ada',
  ],
  'user-windows': [
    'name: ada, full_name: A L, description: d, password: p, groups: [Users], account_disabled: false, password_never_expires: true, ensure: present',
    'user-windows:ada',
  ],
  'group-unix': ['name: ada, gid: 0, members: [ada], system: false, ensure: present', 'group-unix:ada'],
  'group-windows': ['name: Power Users, description: d, ensure: present', 'group-windows:Power Users'],
  'service-systemd': [
    'name: nginx@a, enabled: true, running: false, exec_start: /bin/x, type: notify, description: d, user: u, group: g, working_directory: -/x, environment: { A: b }, dependencies: [network.target], restart: on_failure, reload_on: [other], restart_on: [another], settings: { Service.LimitNOFILE: "65536" }, confirm_port: 80, confirm_banner: x, confirm_command: "true", ensure: present',
    'service-systemd:nginx@a',
  ],
  'service-openrc': [
    'name: nginx, enabled: true, running: true, runlevel: default, restart_on: [other], ensure: present',
    'service-openrc:nginx',
  ],
  'service-launchd': [
    'name: org.x.y, enabled: true, running: true, program_arguments: [/bin/x, -v], run_at_load: true, keep_alive: false, user: u, group: g, working_directory: /x, environment: { A: b }, standard_out_path: /o, standard_error_path: /e, description: d, restart_on: [other], ensure: present',
    'service-launchd:org.x.y',
  ],
  'service-windows': [
    'name: My Service, binary_path: \'"C:\\a b\\x.exe" -v\', display_name: d, description: d, start_type: auto_delayed, running: true, account: LocalSystem, dependencies: [Tcpip], restart_on: [other], ensure: present',
    'service-windows:My Service',
  ],
  script: [
    'program: /usr/bin/python3, apply: a, check: b, undo: c, manages: m, user: ada, group: ada, working_directory: /srv/, environment: { A: b }, timeout: 60, umask: "027", rerun_on: [other]',
    'script:m',
  ],
  'line-unix': [
    'path: /etc/login.defs, match: "^UMASK\\\\s", line: UMASK 027, backrefs: true, replaces: every_line, before: "^x", validate: "true %", ensure: present',
    'line-unix:/etc/login.defs#^UMASK\\s',
  ],
  'ini-unix': [
    'path: /etc/x.ini, section: a b, key: k, value: v, validate: "true %", ensure: present',
    'ini-unix:/etc/x.ini%23a b#k',
  ],
  'unit-systemd': [
    'name: backup.timer, content: "[Timer]\\nOnCalendar=daily\\n", drop_in: true, enabled: true, running: true, reload_on: [other], restart_on: [another], ensure: present',
    'service-systemd:backup.timer',
  ],
  alternatives: [
    'name: java, path: /opt/java/bin/java, link: /usr/bin/java, priority: 100, slaves: ["/usr/share/man/man1/java.1.gz java.1.gz /opt/java/java.1.gz"], ensure: present',
    'alternatives:java',
  ],
  reboot: ['name: kernel, when: triggered, delay: 60, window_only: true, rerun_on: [other]', 'reboot:kernel'],
  'firewall-rule': [
    'name: web, zone: public, action: drop, direction: in, protocol: tcp, ports: ["80", "8000-8010"], source: [192.0.2.0/24, "2001:db8::1"], comment: "a b", ensure: present',
    'firewall-rule:web',
  ],
  ...Object.fromEntries(
    (['json-unix', 'yaml-unix', 'toml-unix'] as const).map((type) => [
      type,
      [
        'path: /etc/x, pointer: /a/b, value: { c: [1, true, x] }, validate: "true %", ensure: present',
        `${type}:/etc/x#/a/b`,
      ],
    ]),
  ),
  'block-unix': [
    'path: /etc/hosts, marker: muster-hosts, content: "10.0.0.9 db\\n", before: BOF, validate: grep -q localhost %, ensure: present',
    'block-unix:/etc/hosts#muster-hosts',
  ],
  'cron-unix': [
    'name: backup, user: root, schedule: "5 3 * * *", command: /bin/backup, ensure: present',
    'cron-unix:root/backup',
  ],
  'apt-repository': [
    'name: x, uris: ["https://a.example/debian"], suites: [stable], components: [main], signed_by: "-----BEGIN PGP", ensure: present',
    'apt-repository:x',
  ],
  'dnf-repository': [
    'name: x, title: y, baseurl: ["https://a"], metalink: "https://a", mirrorlist: "https://a", gpgkey: "-----BEGIN", gpgcheck: true, repo_gpgcheck: false, enabled: true, priority: 9, excludepkgs: [a], module_hotfixes: true, ensure: present',
    'dnf-repository:x',
  ],
  download: [
    `path: /usr/local/bin/app, url: "https://downloads.example.org/app", sha256: ${'0123456789abcdef'.repeat(4)}, owner: root, group: root, mode: "0755", ensure: present`,
    'path:/usr/local/bin/app',
  ],
  archive: [
    `path: /opt/app, url: "https://x.example/a.zip", sha256: ${'0123456789abcdef'.repeat(4)}, strip: 1, exclude: [doc], keep: 3, owner: root, group: root, ensure: present`,
    'path:/opt/app',
  ],
  git: [
    'path: /srv/app, url: "git@git.example.org:app.git", revision: v1, user: root, key: "-----BEGIN OPENSSH PRIVATE KEY-----\\nx", depth: 1, submodules: true, force: false, ensure: present',
    'path:/srv/app',
  ],
  container: [
    `name: web, image: "ghcr.io/example/app@sha256:${'0123456789abcdef'.repeat(4)}", pull: always, command: [serve, --port, "80"], environment: { A: b }, ports: ["127.0.0.1:8080:80", "[::1]:53:53/udp"], volumes: ["/srv:/srv:ro", "data:/data"], networks: [front], user: "1000:1000", restart: on-failure:3, labels: { com.example/a: b }, health_command: "true", health_interval: 30s, health_timeout: 500ms, health_retries: 3, health_start_period: 1m, memory: 512M, cpus: "1.5", read_only: true, cap_add: [NET_ADMIN], cap_drop: [ALL], state: stopped, engine: docker, registry_user: ada, registry_password: p, remove_image: true, remove_volumes: true, force: true, restart_on: [other], ensure: present`,
    'container:docker/web',
  ],
  compose: [
    'name: shop, path: /srv/shop/compose.yaml, content: "services: { web: { image: localhost/a:1 } }", environment: { TOKEN: a }, profiles: [debug], jobs: [migrate], pull: never, wait: 30, engine: docker, registry: ghcr.io, registry_user: ada, registry_password: p, remove_images: true, remove_volumes: true, force: true, restart_on: [other], ensure: present',
    'compose:docker/shop',
  ],
  'postgresql-role': [
    'name: a/b, login: true, password: "p", superuser: false, createdb: false, createrole: false, inherit: true, replication: false, bypassrls: false, connection_limit: -1, member_of: [c], force: true, ensure: present',
    'postgresql-role:a/b',
  ],
  'postgresql-database': [
    'name: shop, owner: shop, encoding: UTF8, locale: C.UTF-8, template_database: template0, connection_limit: 5, force: false, ensure: present',
    'postgresql-database:shop',
  ],
  'postgresql-grant': [
    'database: a/b, role: c%, schema: s, table: "*", privileges: [SELECT], grant_option: false, ensure: present',
    'postgresql-grant:a%2Fb/c%25/s/table/*',
  ],
  'postgresql-extension': [
    'database: shop, name: pg_trgm, schema: public, version: "1.6", force: false, ensure: present',
    'postgresql-extension:shop/pg_trgm',
  ],
  'mysql-user': [
    'name: a/b, host: 192.0.2.%, password: p, locked: false, max_user_connections: 5, ensure: present',
    'mysql-user:a/b@192.0.2.%',
  ],
  'mysql-database': [
    'name: shop, character_set: utf8mb4, collation: utf8mb4_bin, force: false, ensure: present',
    'mysql-database:shop',
  ],
  'mysql-grant': [
    'user: a, host: 192.0.2.0/255.255.255.0, database: shop, table: t, privileges: [SELECT, LOCK TABLES], grant_option: true, ensure: present',
    'mysql-grant:a@192.0.2.0%2F255.255.255.0/shop/t',
  ],
  locale: ['name: de_DE.UTF-8, charset: UTF-8, default: true, ensure: present', 'locale:de_DE.utf8'],
  'certificate-acme': [
    'path: /etc/ssl/a, domains: [a.example.org], directory: "https://acme.example.org/d", agree_terms: true, email: a@example.org, eab_key_id: kid-1, eab_hmac_key: AAECAwQFBgcICQoLDA0ODxAREhM, webroot: /srv, renew_before: 20, key_type: rsa-2048, owner: root, group: root, key_mode: "0640", revoke: false, ensure: present',
    'certificate-acme:/etc/ssl/a',
  ],
  'certificate-file': [
    'path: /etc/c.pem, key_path: /etc/c.key, certificate: "-----BEGIN CERTIFICATE-----\\nx\\n-----END CERTIFICATE-----", key: "-----BEGIN PRIVATE KEY-----\\nx", domains: [a.example.org], owner: root, group: root, mode: "0644", key_mode: "0640", warn_before: 21, ensure: present',
    'path:/etc/c.pem',
  ],
  hostname: ['name: web-1.example, ensure: present', 'hostname:hostname'],
  timezone: ['name: Europe/Paris, ensure: present', 'timezone:timezone'],
  'selinux-mode': ['mode: enforcing, policy: targeted', 'selinux-mode:selinux-mode'],
  'selinux-port': [
    'port: "8000-8010", protocol: udp, type: http_port_t, range: s0, ensure: present',
    'selinux-port:udp/8000-8010',
  ],
  'selinux-context': [
    'target: "/srv/web(/.*)?", file_type: directory, type: tmp_t, user: user_u, range: "s0-s15:c0.c1023", restore: [/srv/web], ensure: present',
    'selinux-context:directory /srv/web(/.*)?',
  ],
  'ssh-authorized-key': [
    `user: deploy, key: "ssh-ed25519 ${'A'.repeat(68)}", comment: ci, ensure: present`,
    `ssh-authorized-key:deploy/ssh-ed25519 ${'A'.repeat(68)}`,
  ],
};

/**
 * Returns the entry for a kind. Without one, the example has every field except `ensure`, and the values of the
 * identifying fields, joined with `/`, are the identity.
 */
function completeOf(type: ResourceType): Complete {
  const { example, identifiedBy } = kinds[type];
  const values = new Map([...example.matchAll(/^(\w+): (.*)$/gm)].map(([, field = '', value = '']) => [field, value]));
  const identity = identifiedBy({}).map((field) => values.get(field));
  return complete[type] ?? [`${example.replaceAll('\n', ', ')}, ensure: present`, `${type}:${identity.join('/')}`];
}

const source = (type: string, fields: string): string => `name: m
supports: [{ platform: linux }]
resources:
  - { id: other, resource: { package-apt: { name: other } } }
  - { id: another, resource: { package-apt: { name: another } } }
  - { id: it, resource: { ${type}: { ${fields} } } }
`;

const page = { path: 'www/index.html', sha256: 'a'.repeat(64), size: 1, executable: false };
const folder = { files: new Map([[page.path, page]]), textOf: () => null };

const agent = { name: 'a', node_id: 'a', attributes: { platform: 'linux' }, tags: {} };

describe('kinds', () => {
  test.each(resourceTypes)('%s accepts all of its fields and identifies the resource', (type) => {
    const [fields, key] = completeOf(type);
    const parsed = parseModule(source(type, fields), folder);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    const resolution = resolveDesiredSet({ modules: [parsed.module], agent });
    if (!resolution.ok) throw new Error(JSON.stringify(resolution.faults));
    const resource = resolution.resources.find(({ id }) => id === 'it');
    expect(resource?.key).toBe(key);
    // The body above has every field, except for those that exclude each other.
    const kind = kinds[type];
    const written = Object.keys(parsed.module.resources[2]?.variants[0]?.resource?.body ?? {});
    const contradicting = kind.exclusive.flatMap((group) => group.slice(1));
    const sayable = [...Object.keys(kind.required), ...Object.keys(kind.optional)];
    expect(written.sort()).toEqual(
      sayable.filter((field) => !contradicting.includes(field) || written.includes(field)).sort(),
    );
    expect(Object.keys(parsed.module.resources[2]?.variants[0]?.resource?.triggers ?? {}).sort()).toEqual(
      [...kind.triggers].sort(),
    );
  });

  // `evaluateBody` relies on this, and validates only fields with an expression.
  test.each(resourceTypes)(
    '%s accepts in evaluated fields what the parser accepts in fields without expressions',
    (type) => {
      const { required, optional } = kinds[type];
      const parsed = parseModule(source(type, completeOf(type)[0]), folder);
      const body = parsed.ok ? (parsed.module.resources[2]?.variants[0]?.resource?.body ?? {}) : {};
      const texts = [
        '',
        ' ',
        '/',
        '..',
        '0644',
        'u=rw',
        '/etc/x',
        'a b',
        'a\nb',
        'a\0b',
        '1.0',
        'root',
        'a=b',
        '-',
        '10.0.0.0/8',
      ];
      const scalars = fc.oneof(fc.string(), fc.constantFrom(...texts), fc.integer(), fc.double(), fc.boolean());
      const lists = fc.array(scalars, { maxLength: 3 });
      const values = fc.oneof(scalars, lists, fc.dictionary(fc.constantFrom(...texts), scalars, { maxKeys: 3 }));
      for (const [name, { declared, resolved }] of Object.entries({ ...required, ...optional }))
        fc.assert(
          fc.property(values, (value) => {
            if (JSON.stringify(value).includes('${{') || !declared.safeParse(value).success) return;
            expect(resolved.safeParse(value).success, name).toBe(true);
          }),
          { numRuns: 50, examples: Object.hasOwn(body, name) ? [[body[name] as string]] : [] },
        );
    },
  );

  test.each(resourceTypes)('%s reports its missing required fields and refuses unknown fields', (type) => {
    const parsed = parseModule(source(type, 'foo: 1'));
    if (parsed.ok) throw new Error('parsed');
    const missing = parsed.faults.filter(({ message }) => message.endsWith('is required')).map(({ path }) => path);
    const prefix = `/resources/2/resource/${type}`;
    expect(missing.sort()).toEqual(
      Object.keys(kinds[type].required)
        .map((field) => `${prefix}/${field}`)
        .sort(),
    );
    expect(
      parsed.faults.some(({ path, message }) => path === `${prefix}/foo` && message.startsWith('unknown field')),
    ).toBe(true);
  });

  test.each([
    ['file-unix', 'path: /a, symlink: ../b'],
    ['file-unix', 'path: /a, copy_of: /b, mode: "0600"'],
    ['file-unix', 'path: /a, content_base64: "AAE="'],
    ['json-unix', 'path: /a, pointer: /b, value: false'],
    ['json-unix', 'path: /a, pointer: /b, ensure: absent'],
    ['file-unix', 'path: /a'],
    ['file-unix', 'path: /a, content: ""'],
    ['line-unix', 'path: /a, line: b'],
    ['user-unix', 'name: a, create_home: false, home: /nonexistent'],
    ['user-unix', 'name: a, remove_home: true, ensure: absent'],
    ['user-unix', 'name: a, remove_home: true, ensure: "${{ tag.x }}"'],
    ['block-unix', 'path: /a, marker: b, ensure: absent'],
    ['apt-repository', 'name: x, uris: [a], suites: [./]'],
    ['download', 'path: /a, url: "${{ secrets.url }}", ensure: absent'],
    ['archive', 'path: /a, ensure: absent'],
    ['git', 'path: /a, url: /srv/a.git, revision: release/1.x'],
    ['service-systemd', 'name: nginx'],
    ['service-systemd', 'name: timer'],
    ['service-systemd', 'name: org.example.timers'],
    ['service-systemd', 'name: getty, working_directory: "~"'],
    ['cron-unix', 'name: a, user: b, schedule: "@daily", command: c'],
    ['cron-unix', 'name: a, user: b, schedule: "*/5 1-3 1,2 jan mon", command: c'],
    ['package-apt', 'name: "libc6:i386"'],
    ['package-apt', 'name: g++'],
    ['package-apt', 'name: a1, version: "20.*"'],
    ['package-apt', 'name: a1, version: "*"'],
    ['package-apt', 'name: a1, version: ">= 5:20.1-3~deb12u1"'],
    ['package-dnf', 'name: a1, version: ">=1:1.2-3.fc40"'],
    ['package-npm', 'name: JSONStream, version: "1.2.3-rc.1+build"'],
    ['package-npm', 'name: a, version: "1.2 - 2.0.x"'],
    ['package-npm', 'name: a, version: "*"'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "${{ secrets.index }}"'],
    ['container', 'name: web, image: "localhost:5000/a_b/c--d:1.0", environment: { TOKEN: "${{ secrets.token }}" }'],
    ['container', 'name: web, image: docker.io/library/nginx:1.27, networks: [host], volumes: ["a:/b"]'],
    ['container', 'name: web, ensure: absent'],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", environment: { A: "${{ secrets.a }}" }',
    ],
    ['compose', 'name: shop, path: /a.yaml, content: "services: ${{ secrets.a }}"'],
    ['compose', 'name: shop, path: /a.yaml, ensure: absent'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "http://127.0.0.1:8080/simple/"'],
    ['package-pip', 'requirements: /srv/requirements.txt, virtualenv: /v, user: ada'],
  ])('%s accepts { %s }', (type, fields) => {
    expect(parseModule(source(type, fields))).toMatchObject({ ok: true });
  });

  test.each([
    ...['package-brew', 'package-choco', 'package-winget'].flatMap((type) =>
      ['*', '20.*', '>=20.1'].map((version): [string, string, string] => [
        type,
        `name: a1, version: "${version}"`,
        'must be "latest" or an exact version, without spaces, "*" or ">=": omit it for any version',
      ]),
    ),
    ['package-apt', 'name: a1, version: "**"', 'must be "latest", a version, a pattern'],
    ['package-npm', 'name: "-g"', 'must be the name of a package in the registry'],
    ['package-npm', 'name: "https://x.example/a.js"', 'must be the name of a package in the registry'],
    ['package-npm', 'name: "a@1"', 'must be the name of a package in the registry'],
    ['package-npm', 'name: "a/b"', 'must be the name of a package in the registry'],
    ['package-npm', 'name: "a\\nb"', 'must be the name of a package in the registry'],
    ['package-npm', 'name: a.tgz', 'must not end with the suffix of an archive'],
    ['package-npm', 'name: a, version: latest', 'must be a version, such as 5.4.2, or a range'],
    ['package-npm', 'name: a, version: "--force"', 'must be a version, such as 5.4.2, or a range'],
    ['package-npm', 'name: a, version: "file:/etc"', 'must be a version, such as 5.4.2, or a range'],
    ['package-npm', 'name: a, version: "1\\n2"', 'must be a version, such as 5.4.2, or a range'],
    ['package-npm', 'name: a, registry: "https://u:p@x.example/"', 'must not contain a user or password'],
    ['package-npm', 'name: a, registry: "ftp://x.example/"', 'must be an http or https URL'],
    ['package-pip', 'name: "a[b]", virtualenv: /v', 'must not have extras in brackets'],
    ['compose', 'name: shop, path: /a.yaml', 'one of content, template, source is required'],
    ['compose', 'name: Shop, path: /a.yaml, ensure: absent', 'must be a name of up to 63 lower-case letters'],
    ['compose', 'name: shop, path: a.yaml, ensure: absent', 'must be an absolute path'],
    ['compose', 'name: shop, path: /a.yaml, content: "services: {}"', 'must have `services`'],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", environment: { PATH: a }',
      'a variable that Compose itself reads',
    ],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", environment: { COMPOSE_FILE: a }',
      'that Compose itself reads',
    ],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", registry: ghcr.io',
      'requires registry_user',
    ],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", registry_password: a',
      'requires registry',
    ],
    [
      'compose',
      'name: shop, path: /a.yaml, content: "services: { a: { image: b } }", wait: 0',
      'must be a whole number from 1 to 3600',
    ],
    ['container', 'name: web', 'requires image, unless it has ensure: absent'],
    ['container', 'name: web-muster-old, image: localhost/a:1', 'must not end with -muster-new'],
    ['container', 'name: "-web", image: localhost/a:1', 'must be a name of up to 100'],
    ['container', 'name: web, image: "nginx:1.27"', 'must be an image with its registry'],
    ['container', 'name: web, image: docker.io/library/nginx', 'must be an image with its registry'],
    ['container', 'name: web, image: "localhost/a:1 --privileged"', 'must be an image with its registry'],
    ['container', 'name: web, image: localhost/a:1, command: ["${{ secrets.token }}"]', 'a secret is not allowed here'],
    [
      'container',
      'name: web, image: localhost/a:1, labels: { a: "${{ secrets.token }}" }',
      'a secret is not allowed here',
    ],
    [
      'container',
      'name: web, image: localhost/a:1, health_command: "a ${{ secrets.t }}"',
      'a secret is not allowed here',
    ],
    ['container', 'name: web, image: localhost/a:1, environment: { A: "b\\nc" }', 'must be one line'],
    ['container', 'name: web, image: localhost/a:1, environment: { "A*": b }', 'must be the name of an environment'],
    ['container', 'name: web, image: localhost/a:1, ports: ["80"]', 'must be a port of the machine'],
    ['container', 'name: web, image: localhost/a:1, ports: ["300.0.0.1:80:80"]', 'must be a port of the machine'],
    [
      'container',
      'name: web, image: localhost/a:1, volumes: ["data:/data:ro:rw"]',
      'must be a directory of the machine',
    ],
    [
      'container',
      'name: web, image: localhost/a:1, volumes: ["/srv/../etc:/data"]',
      'must be a directory of the machine',
    ],
    ['container', 'name: web, image: localhost/a:1, labels: { muster.container: x }', 'must not begin with muster.'],
    ['container', 'name: web, image: localhost/a:1, restart: sometimes', 'must be "no", always'],
    ['container', 'name: web, image: localhost/a:1, memory: 512m', 'must be a number with M or G'],
    ['container', 'name: web, image: localhost/a:1, cpus: "0"', 'must be a number of CPUs'],
    ['container', 'name: web, image: localhost/a:1, cap_add: [CAP_CHOWN]', 'must be a capability in upper case'],
    ['container', 'name: web, image: localhost/a:1, health_interval: 5s', 'requires health_command'],
    ['container', 'name: web, image: localhost/a:1, registry_user: ada', 'requires registry_password'],
    ['package-pip', 'name: "-r", virtualenv: /v', 'must be the name of a package in the index'],
    ['package-pip', 'name: "a==1", virtualenv: /v', 'must be the name of a package in the index'],
    ['package-pip', 'name: "a\\nb", virtualenv: /v', 'must be the name of a package in the index'],
    ['package-pip', 'name: a.whl, virtualenv: /v', 'must not end with the suffix of an archive'],
    ['package-pip', 'name: PIP, virtualenv: /v', 'must not be pip'],
    ['package-pip', 'virtualenv: /v', 'one of name, requirements is required'],
    ['package-pip', 'virtualenv: /v, ensure: absent', 'name is required'],
    ['package-pip', 'requirements: r.txt, virtualenv: /v', 'must be an absolute path'],
    ['package-pip', 'name: a, requirements: /r.txt, virtualenv: /v', 'cannot be combined with name'],
    ['package-pip', 'requirements: /r.txt, version: "1", virtualenv: /v', 'cannot be combined with requirements'],
    ['package-pip', 'requirements: /r.txt, virtualenv: /v, ensure: absent', 'cannot be combined with requirements'],
    ['package-pip', 'name: a, virtualenv: v', 'must be an absolute path'],
    ['package-pip', 'name: a, virtualenv: /v, version: ">=1"', 'must be one version'],
    ['package-pip', 'name: a, virtualenv: /v, version: latest', 'must be one version'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "http://pip.example.org/simple/"', 'must begin with https://'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "https://x.example/?key=x"', 'must not contain "?"'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "https://x.example/ --pre"', 'must be an http or https URL'],
    ['package-pip', 'name: a, virtualenv: /v, index_url: "https://x.example/${HOME}"', 'must not contain quotes'],
    ['file-unix', 'path: /a, content: b, content_base64: ""', 'cannot be combined with content; keep only one'],
    ['file-unix', 'path: /a, symlink: b, mode: "0644"', 'cannot be combined with symlink; keep only one'],
    ['file-unix', 'path: /a, content: b, copy_of: /c', 'cannot be combined with content; keep only one'],
    ['directory-unix', 'path: /a, file_mode: "0644"', 'requires recursive or source: add it'],
    [
      'directory-unix',
      `path: /a, recursive: true, owner: root, only: [${Array(65).fill('a').join(', ')}]`,
      'must be a list of 1 to 64',
    ],
    [
      'directory-unix',
      `path: /a, recursive: true, owner: root, only: [${'a'.repeat(256)}]`,
      'must not have a name of more than 255 characters',
    ],
    ['line-unix', 'path: /a, line: b, match: c, replaces: every_part, ensure: absent', 'removes whole lines'],
    ['mysql-user', 'name: root, ensure: absent', 'cannot be declared for root@localhost'],
    ['mysql-user', 'name: a, password_hash: 3A70EE9F', 'must be "*" and 40 hexadecimal digits'],
    ['mysql-user', 'name: root, host: localhost, locked: false', 'declare only the password'],
    ['mysql-user', 'name: root, host: LOCALHOST, password: p', 'must be a host name in lower case'],
    ['directory-unix', 'path: /a, owner: root, only: ["*"]', 'requires recursive: add it'],
    ['directory-unix', 'path: /a, owner: root, recursive: true, only: []', 'must be a list of 1 to 64'],
    ...['', '/', 'a/', '../a', 'a//b', './a', '[ab]', '{a,b}', 'a/**', 'a\\b'].map((only): [string, string, string] => [
      'directory-unix',
      `path: /a, owner: root, recursive: true, only: ['${only}']`,
      'must ',
    ]),
    [
      'certificate-acme',
      'path: /a, domains: [a.example], directory: "https://a.example/d", agree_terms: true, webroot: /w, eab_key_id: k, eab_hmac_key: "a b"',
      'must be at least 16 bytes as base64url',
    ],
    [
      'certificate-acme',
      'path: /a, domains: [a.example], directory: "https://a.example/d", agree_terms: true, webroot: /w, eab_key_id: k',
      'requires eab_hmac_key: add it',
    ],
    ['file-unix', 'path: /a, copy_of: c', 'must be an absolute path'],
    ['file-unix', 'path: /a, content_base64: "AAE"', 'must be base64, padded with "="'],
    ['file-unix', 'path: /a, validate: "true"', 'must contain "%", which represents the file with the new content'],
    ['file-unix', 'path: /a, symlink: ""', 'must not be empty'],
    ['file-unix', 'path: /a, content: b, mode: "g+w"', 'or set each class once, such as u=rw,go=r'],
    ['file-unix', 'path: /a, content: b, mode: "u=rw,g=r"', 'or set each class once, such as u=rw,go=r'],
    ['file-unix', 'path: /a, content: b, mode: "a=r,o=r"', 'or set each class once, such as u=rw,go=r'],
    ['json-unix', 'path: /a, pointer: b, value: 1', 'must begin with "/", such as /log/level'],
    ['yaml-unix', 'path: /a, pointer: /~2, value: 1', 'must not contain "~" alone'],
    ['toml-unix', 'path: /a, pointer: /b', 'requires value, unless it has ensure: absent'],
    ['package-apt', 'name: nginx-', 'must be a package name'],
    ['package-apt', 'name: --option', 'must be a package name'],
    ['package-apt', 'name: nginx=1', 'must be a package name'],
    ['package-apt', 'name: nginx, version: "1 2"', 'must be "latest", a version, a pattern such as "20.*"'],
    ['package-apt', 'name: nginx, version: ">=20.*"', 'a lower bound such as ">=20.1", or "*"'],
    ['package-dnf', 'name: nginx, version: "> 20"', 'a lower bound such as ">=20.1", or "*"'],
    ['package-apt', 'name: nginx, version: ">=latest"', 'a lower bound such as ">=20.1", or "*"'],
    ['package-apt', 'name: nginx, url: "https://x.example/a.deb"', 'requires sha256: add it'],
    ['package-dnf', `name: nginx, sha256: ${'a'.repeat(64)}`, 'requires url: add it'],
    ['package-dnf', `name: nginx, url: /srv/a.rpm, sha256: ${'a'.repeat(64)}`, 'must be an http or https URL'],
    ['package-dnf', 'name: nginx, from: "epel*"', 'must be the id of one repository'],
    [
      'package-dnf',
      `name: a, from: epel, url: "https://x.example/a.rpm", sha256: ${'a'.repeat(64)}`,
      'combined with url',
    ],
    ['package-dnf', 'name: -y', 'must be the name of one package'],
    ['package-dnf', 'name: "@core"', 'must be the name of one package'],
    ['package-dnf', 'name: "hel*"', 'must be the name of one package'],
    ['service-openrc', 'name: nginx.service', 'must be the name of an OpenRC service, without ".service"'],
    ['service-systemd', 'name: nginx.service', 'must not end with ".service": write nginx'],
    ['service-systemd', 'name: ../x', 'must be a unit name'],
    ['service-systemd', 'name: apt-daily.timer, ensure: absent', 'declare .timer units with unit-systemd'],
    ['service-systemd', 'name: docker.socket', 'service-systemd manages .service units'],
    ['unit-systemd', 'name: backup', 'must end with the type of the unit'],
    ['unit-systemd', 'name: a.device', 'must end with the type of the unit'],
    ['unit-systemd', 'name: backup@.timer', 'must not be a template'],
    ['unit-systemd', 'name: a.timer, settings: { OnCalendar: daily }', 'such as Timer.OnCalendar'],
    [
      'unit-systemd',
      'name: a.timer, settings: { Timer.OnCalendar: "daily \\\\" }',
      'must not have a line that ends in a backslash',
    ],
    [
      'unit-systemd',
      'name: a.timer, settings: { Timer.OnCalendar: daily }, content: x',
      'cannot be combined with content',
    ],
    ['service-systemd', 'name: x, exec_start: "a\\nb"', 'must be one line'],
    ['user-unix', 'name: "-x"', 'must be a name of letters'],
    ['user-unix', 'name: "a:b"', 'must be a name of letters'],
    ['user-unix', 'name: a, home: b', 'must be an absolute path'],
    ['user-unix', 'name: a, password_hash: hunter2', 'a plain password is refused'],
    ['user-unix', 'name: a, comment: "a:b"', 'must not contain ":"'],
    ['user-unix', 'name: a, expires: "2030-02-31"', 'must be a day'],
    ['user-unix', 'name: a, additional_groups: [b], groups_append: [c]', 'cannot be combined with additional_groups'],
    ['reboot', 'name: a, when: always', 'needed'],
    ['reboot', 'name: a, delay: 3601', '3600'],
    ['firewall-rule', 'name: "a b"', 'must be a name of up to 64 letters'],
    ['firewall-rule', 'name: a, ports: ["0"]', 'must be a port from 1 to 65535'],
    ['firewall-rule', 'name: a, ports: ["90-80"]', 'must be a port from 1 to 65535'],
    ['firewall-rule', 'name: a, source: [0.0.0.0/0]', 'omit the field for all addresses'],
    ['firewall-rule', 'name: a, source: ["::ffff:192.0.2.1"]', 'must be an IP address, or a network'],
    ['firewall-rule', `name: a, comment: 'a"b'`, 'without quotes'],
    ['firewall-rule', 'name: a, zone: "a b"', 'must be a zone of up to 17 letters'],
    ['firewall-rule', 'name: a, destination: [192.0.2.1]', 'direction'],
    ['group-unix', 'name: a, members: [b], members_append: [c]', 'cannot be combined with members'],
    ['file-unix', 'path: /a, acl: ["user:ann:rwz"]', 'must end with permissions such as rw-'],
    ['file-unix', 'path: /a, acl: ["user:ann:rX"]', 'must end with permissions such as rw-'],
    ['file-unix', 'path: /a, acl: ["mask::rw-"]', 'must not be the mask'],
    ['file-unix', 'path: /a, acl: ["user::rw-"]', '`mode` declares the permissions of the owner'],
    ['file-unix', 'path: /a, acl: ["user:a,b:rw-"]', 'must name a user or a group'],
    ['file-unix', 'path: /a, acl: ["default:user:ann:rw-"]', 'which only directories have'],
    ['file-unix', 'path: /a, acl: ["user:ann:r", "u:ann:w"]', 'user:ann has two entries'],
    ['file-unix', 'path: /a, symlink: b, acl: []', 'cannot be combined with symlink'],
    ['file-unix', 'path: /a, attributes: [e]', 'must be one of append_only (a)'],
    ['file-unix', 'path: /a, attributes: ["+i"]', 'must be one of append_only (a)'],
    ['file-unix', 'path: /a, symlink: b, attributes: []', 'cannot be combined with symlink'],
    ['file-unix', 'path: /a, capabilities: [net_raw]', 'must be a capability of Linux in lower case'],
    ['file-unix', 'path: /a, capabilities: ["cap_net_raw+ep"]', 'must be a capability of Linux in lower case'],
    ['file-unix', 'path: /a, capabilities: [CAP_NET_RAW]', 'must be a capability of Linux in lower case'],
    ['file-unix', 'path: /a, symlink: b, capabilities: []', 'cannot be combined with symlink'],
    ['file-unix', 'path: /a, copy_of: /b, capabilities: []', 'cannot be combined with copy_of'],
    ['directory-unix', 'path: /a, acl: ["default:other:ann:rwx"]', 'must name a user or a group'],
    ['alternatives', 'name: a, path: /a, priority: 1', 'link'],
    ['alternatives', 'name: a, path: /a, link: /b, slaves: ["/c d"]', 'must be the path of a link, a name'],
    ['alternatives', 'name: a, path: /a, link: /b, slaves: ["/c d /e", "/f d /g"]', 'd is declared twice'],
    ['line-unix', 'path: /a, line: b, match: "("', 'is not a regular expression'],
    ['line-unix', 'path: /a, line: "a\\nb"', 'must be one line'],
    ['line-unix', 'path: /a, line: b, before: c, after: d', 'cannot be combined with before; keep only one'],
    ['line-unix', 'path: /a, line: b, backrefs: true', 'requires match: add it'],
    ['user-unix', 'name: a, create_home: true, home: /nonexistent', 'cannot create /nonexistent'],
    ['user-unix', 'name: a, remove_home: true', 'requires ensure: absent'],
    ['line-unix', 'path: /a, line: b, replaces: every_line', 'requires match: add it'],
    ['line-unix', 'path: /a, line: b, after: "("', 'is not a regular expression'],
    ['block-unix', 'path: /a, marker: "a b"', 'must be one word'],
    ['block-unix', 'path: /a, marker: b, before: "("', 'is not a regular expression'],
    [
      'cron-unix',
      'name: a.b, user: b, schedule: "* * * * *", command: c',
      'must be a name of letters, digits, "_" and "-"',
    ],
    ['cron-unix', 'name: a, user: b, schedule: "* * * *", command: c', 'must be the five fields of cron'],
    ['sysctl', 'key: ../../x, value: b', 'must be a kernel parameter'],
    ['hostname', 'name: -a', 'must be a host name'],
    ['timezone', 'name: ../../etc/passwd', 'must be a time zone of the system'],
    ['ssh-authorized-key', 'user: a, key: "command=x ssh-ed25519 AAAA"', 'must be the type and the key'],
    ['apt-repository', 'name: a, uris: [], suites: [b]', 'must be a list of at least 1'],
    [
      'download',
      'path: /a, url: "https://x.example/a", sha256_url: "https://x.example/b", unpack: true',
      'archive instead',
    ],
    ['download', 'path: /a, url: "https://x.example/a"', 'one of sha256, sha256_url is required: add it'],
    [
      'download',
      'path: /a, url: "ftp://x.example/a", sha256_url: "https://x.example/a"',
      'must be an http or https URL with up to 2000 characters, such as https://example.org/app.tar.gz',
    ],
    ['download', 'path: /a, url: "https://x.example/a", sha256: abc', 'must be a SHA-256: 64 hexadecimal digits'],
    ['archive', 'path: /a, url: "https://x.example/a"', 'requires sha256: add it'],
    ['archive', 'path: /a', 'one of url, source is required: add it'],
    [
      'git',
      'path: /a, url: "https://u:p@x.example/a", revision: v1',
      'must not contain a password: use `key`, or a credential helper of git',
    ],
    [
      'git',
      'path: /a, url: "https://x.example/a", revision: "-f"',
      'must be the name of a tag or a branch, or the 40 digits of a commit',
    ],
    ['postgresql-role', 'name: a, password: "é"', 'must contain only printable ASCII characters'],
    ['postgresql-role', `name: ${'é'.repeat(32)}`, 'is longer than 63 bytes'],
    ['postgresql-grant', 'database: a, role: b', 'requires privileges, unless it has ensure: absent'],
    ['postgresql-grant', 'database: a, role: b, table: c, privileges: [ALL]', 'requires schema: add it'],
    ['postgresql-grant', 'database: a, role: b, privileges: [select]', 'must be one of ALL, CONNECT'],
    ['postgresql-database', 'name: a, encoding: utf8', 'must be the name of an encoding in upper case'],
    ['postgresql-database', 'name: "a\\nb"', 'must not contain control characters'],
    ['mysql-user', 'name: "a\\\\b", password: p', 'must not contain quotes'],
    ['mysql-user', 'name: a, host: "a b", password: p', 'must be a host name in lower case, an address, or a pattern'],
    ['mysql-database', 'name: a/b', 'must not contain "/"'],
    ['mysql-grant', 'user: a, database: b', 'requires privileges, unless it has ensure: absent'],
    ['file-windows', 'path: "C:\\\\a:b"', 'must not contain control characters or any of'],
  ])('%s refuses { %s }', (type, fields, fault) => {
    const parsed = parseModule(source(type, fields));
    expect(parsed.ok ? [] : parsed.faults.map(({ message }) => message)).toEqual([expect.stringContaining(fault)]);
  });

  test('gives both spellings of a kernel parameter the same resource key', () => {
    const key = (name: string) => identify('sysctl', { key: name, value: '1' }).key;
    expect(key('net/ipv4/conf/eth0.1/mtu')).toBe(key('net.ipv4.conf.eth0/1.mtu'));
    expect(key('net/ipv4/ip_forward')).toBe('sysctl:net.ipv4.ip_forward');
    expect(key('net.ipv4.conf.eth0/1.mtu')).not.toBe(key('net.ipv4.conf.eth0.1.mtu'));
  });

  test('distinguishes two-part identities whose concatenations are equal', () => {
    const key = (path: string, marker: string) => identify('block-unix', { path, marker }).key;
    expect(key('/a#b', 'c')).not.toBe(key('/a', 'b#c'));
    expect(key('/a%23b', 'c')).not.toBe(key('/a#b', 'c'));
    expect(key('/a b', 'c')).toBe('block-unix:/a b#c');
  });
});
