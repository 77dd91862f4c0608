import type { Subject } from './subject.ts';

const timer = (fields: object) => ({ 'unit-systemd': { name: 'backup.timer', ...fields } });

/** Returns shell text that prints whether units are enabled, active, and failed. */
const stateOf = (...names: string[]) =>
  `for u in ${names.join(' ')}; do systemctl is-enabled $u || true; systemctl is-active $u || true; done; systemctl --failed --no-legend`;

const service = `printf '[Service]\\nType=oneshot\\nExecStart=/bin/true\\n' > /usr/lib/systemd/system/backup.service`;
const packaged = `${service}; printf '[Timer]\\nOnCalendar=weekly\\n[Install]\\nWantedBy=timers.target\\n' > /usr/lib/systemd/system/backup.timer`;
const socket = (port: number) =>
  `[Socket]\nListenStream=127.0.0.1:${port}\nAccept=yes\n[Install]\nWantedBy=sockets.target\n`;

export const unitSystemdSubjects: Subject[] = [
  {
    name: 'unit-systemd, a timer from settings',
    prepare: `${service}; systemctl daemon-reload`,
    desired: timer({
      settings: { 'Timer.OnCalendar': 'Mon 03:00\nFri 03:00', 'Timer.Persistent': 'true' },
      enabled: true,
      running: true,
    }),
    changed: timer({ settings: { 'Timer.OnCalendar': 'daily' }, enabled: false, running: true }),
    tamper: "sed -i '/^OnCalendar=Fri/d' /etc/systemd/system/backup.timer; systemctl disable --now backup.timer",
    moved: ['settings', 'enabled', 'running'],
    state: stateOf('backup.timer'),
  },
  {
    name: 'unit-systemd, a drop-in of a packaged timer',
    prepare: `${packaged}; systemctl daemon-reload; systemctl enable --now backup.timer`,
    desired: timer({ settings: { 'Timer.OnCalendar': '\ndaily' }, drop_in: true, running: true }),
    changed: timer({ settings: { 'Timer.OnCalendar': '\nhourly' }, drop_in: true, running: false }),
    tamper: 'echo OnBootSec=1h >> /etc/systemd/system/backup.timer.d/50-muster.conf',
    moved: ['settings'],
    state: `${stateOf('backup.timer')}; systemctl show -P TimersCalendar backup.timer | sed 's/ ;.*//'`,
  },
  {
    name: 'unit-systemd, a socket from content',
    prepare: `printf '[Service]\\nExecStart=/bin/cat\\nStandardInput=socket\\n' > '/usr/lib/systemd/system/echo@.service'; systemctl daemon-reload`,
    desired: { 'unit-systemd': { name: 'echo.socket', content: socket(7007), enabled: true, running: true } },
    changed: { 'unit-systemd': { name: 'echo.socket', content: socket(7008), enabled: true, running: true } },
    // Leaves the link that enables the unit.
    tamper: 'systemctl stop echo.socket; rm /etc/systemd/system/echo.socket; systemctl daemon-reload',
    moved: ['ensure', 'content', 'enabled', 'running'],
    state: stateOf('echo.socket'),
  },
  {
    name: 'unit-systemd, masked',
    prepare: `${packaged}; systemctl daemon-reload; systemctl enable --now backup.timer`,
    desired: timer({ masked: true, running: false }),
    changed: timer({ masked: false, running: true }),
    tamper: 'systemctl unmask backup.timer',
    moved: ['masked'],
    state: stateOf('backup.timer'),
  },
  {
    name: 'unit-systemd, absent',
    prepare: `${service}; printf '[Timer]\\nOnCalendar=weekly\\n[Install]\\nWantedBy=timers.target\\n' > /etc/systemd/system/backup.timer; systemctl daemon-reload; systemctl enable --now backup.timer`,
    desired: timer({ ensure: 'absent' }),
    changed: timer({ settings: { 'Timer.OnCalendar': 'daily' }, enabled: true, running: true }),
    tamper: `printf '[Timer]\\nOnCalendar=monthly\\n' > /etc/systemd/system/backup.timer`,
    moved: ['ensure'],
    state: stateOf('backup.timer'),
  },
];
