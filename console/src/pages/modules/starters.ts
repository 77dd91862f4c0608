export interface Starter {
  readonly label: string;
  readonly description: string;
  readonly content: string;
}

export const starters: readonly Starter[] = [
  {
    label: 'A file',
    description: 'Content from a template, owner, and mode',
    content: `name: login-banner
supports:
  - platform: linux
templates:
  - id: banner
    content: |
      Welcome to \${{ agent.name }}.
      Managed by Muster: manual changes are reverted.
resources:
  - id: banner
    resource:
      file-unix:
        path: /etc/issue.net
        template: banner
        owner: root
        group: root
        mode: "0644"
`,
  },
  {
    label: 'A package and its service',
    description: 'Installed, configured, and reloaded on configuration changes',
    content: `name: nginx
supports:
  - { platform: linux, distro: debian, init_system: systemd }
parameters:
  port:
    type: integer
    default: 80
    description: Port to listen on
resources:
  - id: package
    resource:
      package-apt:
        name: nginx-light
  - id: site
    depends_on: [package]
    resource:
      file-unix:
        path: /etc/nginx/conf.d/site.conf
        content: |
          server { listen \${{ param.port }}; root /var/www/html; }
        mode: "0644"
  - id: service
    depends_on: [package]
    resource:
      service-systemd:
        name: nginx
        enabled: true
        running: true
        reload_on: [site]
verify:
  - tcp: { port: "\${{ param.port }}" }
`,
  },
  {
    label: 'Accounts',
    description: 'One account per entry of a list parameter',
    content: `name: people
supports:
  - platform: linux
parameters:
  people:
    type: list
    default: []
    description: Names of the accounts
resources:
  - id: group
    resource:
      group-unix:
        name: people
  - id: account
    depends_on: [group]
    for_each: "\${{ param.people }}"
    resource:
      user-unix:
        name: "\${{ each }}"
        additional_groups: [people]
        shell: /bin/bash
`,
  },
  {
    label: 'A script',
    description: 'Runs only if its check fails',
    content: `name: swap-off
supports:
  - platform: linux
resources:
  - id: swap
    resource:
      script:
        program: sh
        manages: no swap is in use
        check: test "$(wc -l < /proc/swaps)" -le 1
        apply: swapoff -a
        undo: swapon -a
`,
  },
  {
    label: 'A scheduled job',
    description: 'A cron entry and a kernel setting',
    content: `name: housekeeping
supports:
  - platform: linux
resources:
  - id: trim
    resource:
      cron-unix:
        name: trim
        user: root
        schedule: "15 4 * * 0"
        command: /usr/sbin/fstrim --all
  - id: swappiness
    resource:
      sysctl:
        key: vm.swappiness
        value: "10"
`,
  },
  {
    label: 'Empty',
    description: 'Only the required fields',
    content: 'name: \nsupports:\n  - platform: linux\nresources:\n',
  },
];
