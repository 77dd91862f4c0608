import type { Subject } from './subject.ts';

const service = (fields: object) => ({ 'service-systemd': { name: 'web', ...fields } });
const sleeper = (seconds: number) => `/bin/sleep ${seconds}`;

/** Returns shell text that prints whether a unit is enabled, active, and failed. */
const stateOf = (name: string) =>
  `systemctl is-enabled ${name} || true; systemctl is-active ${name} || true; systemctl --failed --no-legend`;

const write = (path: string, seconds: number) =>
  `printf '[Service]\\nExecStart=${sleeper(seconds)}\\n[Install]\\nWantedBy=graphical.target\\n' > ${path}/web.service`;

export const serviceSubjects: Subject[] = [
  {
    name: 'service-systemd, created',
    desired: service({ exec_start: sleeper(1000), enabled: true, running: true, environment: { A: "100% of it's\n" } }),
    changed: service({ exec_start: sleeper(2000), enabled: false, user: 'nobody', restart: 'always' }),
    tamper: "sed -i '/^Environment/d' /etc/systemd/system/web.service; systemctl disable --now web",
    moved: ['environment', 'enabled', 'running'],
    state: stateOf('web'),
  },
  {
    name: 'service-systemd, adopted with a drop-in',
    prepare: `${write('/usr/lib/systemd/system', 1000)}; systemctl daemon-reload; systemctl start web`,
    desired: service({ enabled: true, running: true, description: 'Ours', working_directory: '/srv' }),
    changed: service({ enabled: false, running: false, description: 'Ours' }),
    tamper: 'sed -i s/Ours/Theirs/ /etc/systemd/system/web.service.d/50-muster.conf',
    moved: ['description'],
    state: `${stateOf('web')}; readlink /proc/$(systemctl show -P MainPID web)/cwd || true`,
  },
  {
    name: 'service-systemd, absent',
    prepare: `${write('/etc/systemd/system', 1000)}; systemctl daemon-reload; systemctl enable --now web`,
    desired: service({ ensure: 'absent' }),
    changed: service({ exec_start: sleeper(2000), enabled: true, running: true }),
    tamper: write('/etc/systemd/system', 3000),
    moved: ['ensure'],
    state: stateOf('web'),
  },
  {
    // OpenRC's programs also work under systemd if `/run/openrc/softlevel` exists.
    name: 'service-openrc',
    packages: true,
    prepare: [
      'apt-get -qq install --no-install-recommends openrc > /dev/null 2>&1; mkdir -p /run/openrc; echo default > /run/openrc/softlevel',
      `printf '#!/sbin/openrc-run\ncommand=/bin/sleep\ncommand_args=1000\ncommand_background=yes\npidfile=/run/web.pid\n' > /etc/init.d/web`,
      'chmod 755 /etc/init.d/web; rc-status --servicelist > /dev/null 2>&1; systemctl daemon-reload',
    ].join('\n'),
    desired: { 'service-openrc': { name: 'web', enabled: true, running: true } },
    changed: { 'service-openrc': { name: 'web', enabled: true, running: false, runlevel: 'nonetwork' } },
    tamper: 'rc-service web stop; rc-update del web default',
    moved: ['enabled', 'running'],
    state: 'rc-service web status || true',
  },
];
