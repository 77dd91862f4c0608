const base = (banner: string) => `# Settings of every machine.
name: base

supports:
  - { platform: linux }

parameters:
  timezone: { type: string, default: Europe/Paris }

templates:
  - id: banner
    content: |
      \${{ agent.name }} (\${{ attr.distro | default("Linux") }} \${{ attr.arch }})
      ${banner}

resources:
  - id: banner
    name: message at sign-in
    resource:
      file-unix: { path: /etc/motd, template: banner, mode: "0644" }
  - id: ssh
    resource:
      file-unix:
        path: /etc/ssh/sshd_config.d/50-base.conf
        content: |
          PermitRootLogin no
          PasswordAuthentication no
          X11Forwarding no
        mode: "0600"
  - id: chrony
    resource:
      package-apt: { name: chrony }
  - id: chrony-service
    depends_on: [chrony]
    resource:
      service-systemd: { name: chrony, enabled: true, running: true }
`;

const web = (workers: number, extra = '') => `name: web

supports:
  - { platform: linux, distro: debian }

templates:
  - id: nginx
    content: |
      user www-data;
      worker_processes ${workers};
      events { worker_connections 1024; }
      http {
        sendfile on;
        tcp_nopush on;
        server_tokens off;
        access_log /var/log/nginx/access.log;
        include /etc/nginx/sites-enabled/*;
      }

resources:
  - id: nginx
    resource:
      package-apt: { name: nginx }
  - id: config
    depends_on: [nginx]
    resource:
      file-unix: { path: /etc/nginx/nginx.conf, template: nginx, mode: "0644" }
  - id: site
    depends_on: [nginx]
    resource:
      file-unix:
        path: /etc/nginx/sites-enabled/shop
        content: |
          server {
            listen 443 ssl;
            server_name \${{ attr.hostname }};
            root /srv/shop/public;
            ${extra}location /health { return 200 "ok"; }
          }
        mode: "0644"
  - id: service
    resource:
      service-systemd: { name: nginx, enabled: true, running: true, reload_on: [config, site] }
`;

const database = `name: database

supports:
  - { platform: linux }

resources:
  - id: server
    resource:
      package-apt: { name: postgresql }
  - id: access
    depends_on: [server]
    resource:
      file-unix:
        path: /etc/postgresql/15/main/pg_hba.conf
        content: |
          local  all  postgres                peer
          host   shop shop     10.20.0.0/16   scram-sha-256
        mode: "0640"
  - id: password
    depends_on: [server]
    resource:
      file-unix:
        path: /etc/postgresql/shop.pass
        content: "\${{ secrets.shop_db_password }}"
        mode: "0600"
  - id: service
    resource:
      service-systemd: { name: postgresql, enabled: true, running: true, reload_on: [access] }
`;

const backup = `name: backup

supports:
  - { platform: linux }

resources:
  - id: folder
    resource:
      directory-unix: { path: /var/backups/muster, mode: "0700" }
  - id: index
    depends_on: [folder]
    resource:
      script:
        program: sh
        manages: /var/backups/muster/index
        check: test -f /var/backups/muster/index
        apply: restic snapshots --json > /var/backups/muster/index
`;

const kiosk = `name: kiosk

supports:
  - { platform: linux, distro: alpine }

resources:
  - id: page
    resource:
      file-unix: { path: /etc/kiosk/url, content: "https://boards.example/hall\\n", mode: "0644" }
`;

/** Returns a module for a real agent on this machine, with all paths in one directory. */
export const workshop = (folder: string, greeting: string) => `name: workshop

supports:
  - { platform: linux }

resources:
  - id: folder
    resource:
      directory-unix: { path: ${folder}, mode: "0755" }
  - id: greeting
    depends_on: [folder]
    resource:
      file-unix: { path: ${folder}/greeting.txt, content: "${greeting}\\nthis line stays\\nso does this one\\n", mode: "0644" }
  - id: build
    resource:
      script:
        program: sh
        rerun_on: [greeting]
        manages: ${folder}/built
        check: test -f ${folder}/built
        apply: |
          for step in fetch compile link; do echo "$step: ok"; done
          date > ${folder}/built
`;

export const showcaseModules: readonly { name: string; revisions: readonly string[] }[] = [
  { name: 'backup', revisions: [backup] },
  {
    name: 'base',
    revisions: ['Authorized use only.', 'Managed by Muster.', 'Managed by Muster. Manual changes are repaired.'].map(
      base,
    ),
  },
  { name: 'database', revisions: [database] },
  { name: 'kiosk', revisions: [kiosk] },
  { name: 'web', revisions: [web(2), web(4)] },
];
/** A newer revision of the module `web`. */
export const webToCome = web(8, 'add_header Strict-Transport-Security "max-age=31536000";\n            ');
