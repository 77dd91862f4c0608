export interface WebModule {
  /** nginx's port. */
  port?: number;
}

/** Returns a module for a web server with its configuration, user, cron job, and service. */
export const webModule = ({ port = 80 }: WebModule = {}): string => `
name: web
supports:
  - { platform: linux, init_system: systemd }
parameters:
  port: { type: integer, default: ${port} }
templates:
  - id: site
    content: |
      server {
        listen \${{ param.port }} default_server;
        root /srv/www;
      }
  - id: page
    content: "<h1>\${{ agent.name }}</h1>\\n"
resources:
  - id: nginx
    variants:
      - { when: { platform: linux }, resource: { package-apt: { name: nginx-light } } }
      - { when: { platform: linux, distro: kestrel }, resource: { package-apt: { name: nginx } } }
  - id: www
    resource: { directory-unix: { path: /srv/www, owner: root, group: www-data, mode: "0750" } }
  - id: page
    variants:
      - when: { platform: linux }
        resource: { file-unix: { path: /srv/www/index.html, template: page, group: www-data, mode: "0640" } }
      - when: { platform: linux, distro: kestrel }
        resource:
          file-unix: { path: /srv/www/index.html, content: "<h1>A kestrel</h1>\\n", group: www-data, mode: "0640" }
  - id: default-site
    depends_on: [nginx]
    resource: { file-unix: { path: /etc/nginx/sites-enabled/default, ensure: absent } }
  - id: site
    depends_on: [nginx]
    resource: { file-unix: { path: /etc/nginx/sites-enabled/web, template: site, mode: "0644" } }
  - id: service
    depends_on: [nginx]
    resource: { service-systemd: { name: nginx, enabled: true, running: true, reload_on: [default-site, site] } }
  - id: deployers
    resource: { group-unix: { name: deployers, gid: 3000 } }
  - id: deploy
    depends_on: [deployers]
    resource:
      user-unix:
        name: deploy
        uid: 3000
        primary_group: deployers
        additional_groups: [www-data]
        home: /home/deploy
        shell: /bin/bash
  - id: backup
    resource:
      cron-unix: { name: backup, user: deploy, schedule: "5 3 * * *", command: "tar -cf /home/deploy/www.tar /srv/www" }
  - id: heartbeat
    resource:
      service-systemd:
        name: heartbeat
        description: A heartbeat
        exec_start: /bin/sleep infinity
        user: deploy
        enabled: true
        running: true
        restart: always
  - id: forwarding
    resource: { sysctl: { key: net.ipv4.ip_forward, value: "1" } }
`;
