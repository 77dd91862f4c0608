import type { Subject } from './subject.ts';

const mnt = { path: '/mnt', device: 'tmpfs', type: 'tmpfs' };
const state = 'findmnt --noheadings --output SOURCE,FSTYPE,OPTIONS /mnt || true';
const others = `printf '# By hand.\\n\\nUUID=0123\\t/data  ext4\\tnoauto,noatime 0\\t2\\n' > /etc/fstab`;

export const mountUnixSubjects: readonly Subject[] = [
  {
    name: 'mount-unix, not mounted, with other lines in fstab',
    prepare: others,
    desired: { 'mount-unix': { ...mnt, options: 'nosuid,size=1m', pass: 0 } },
    changed: { 'mount-unix': { ...mnt, options: 'noexec,size=2m', pass: 1 } },
    tamper: `sed -i 's/ 0 0$/ 0 1/' /etc/fstab; mount -o remount,suid,size=3m /mnt`,
    moved: ['pass', 'live_options'],
    state,
  },
  {
    name: 'mount-unix, bound, previously mounted from a line without the last fields',
    prepare: `${others}; printf '  tmpfs /mnt\\ttmpfs size=1m' >> /etc/fstab; mount /mnt`,
    desired: { 'mount-unix': { path: '/mnt/', device: '/srv', type: 'none', options: 'bind,ro' } },
    changed: { 'mount-unix': { path: '/mnt', device: '/var', type: 'none', options: 'bind', pass: 0 } },
    tamper: 'umount /mnt',
    moved: ['mounted'],
    state,
  },
  {
    name: 'mount-unix, previously mounted with an option that the kernel shows differently',
    prepare: `echo 'tmpfs /mnt tmpfs size=1m' >> /etc/fstab; mount /mnt`,
    desired: { 'mount-unix': { ...mnt, options: 'nr_blocks=512' } },
    changed: { 'mount-unix': { ...mnt, options: 'nr_blocks=1024' } },
    tamper: 'umount /mnt',
    moved: ['mounted'],
    state,
  },
  {
    name: 'mount-unix, absent, previously mounted without a line',
    prepare: `${others}; mount -t tmpfs -o size=1m,noatime mine /mnt`,
    desired: { 'mount-unix': { path: '/mnt', ensure: 'absent' } },
    changed: { 'mount-unix': { ...mnt, mounted: false } },
    tamper: 'mount -t tmpfs -o size=1m,noatime mine /mnt; echo "mine /mnt tmpfs" >> /etc/fstab',
    moved: ['ensure', 'device', 'type', 'options', 'dump', 'pass', 'mounted'],
    state,
  },
];
