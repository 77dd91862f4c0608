import type { Subject } from './subject.ts';

const user = (fields: object) => ({ 'user-unix': { name: 'ann', ...fields } });
const group = (fields: object = {}) => ({ 'group-unix': { name: 'ops', ...fields } });

export const accountSubjects: Subject[] = [
  {
    name: 'group-unix, created',
    desired: group({ gid: 1700 }),
    changed: group({ gid: 1701 }),
    tamper: 'groupmod -g 1800 ops',
    moved: ['gid'],
  },
  {
    name: 'group-unix, absent',
    prepare: "groupadd -g 1600 ops; echo 'ops:$6$x$y' | chgpasswd -e; gpasswd -A daemon ops",
    desired: group({ ensure: 'absent' }),
    changed: group({ gid: 1701 }),
    tamper: 'groupadd ops',
    moved: ['ensure'],
  },
  {
    name: 'user-unix, created',
    desired: user({ uid: 1500, shell: '/bin/bash', home: '/srv/deep/ann', additional_groups: ['audio', '60'] }),
    changed: user({ uid: 1501, primary_group: 'games', additional_groups: ['video'] }),
    tamper: 'usermod -s /bin/false -aG daemon ann',
    moved: ['additional_groups', 'shell'],
  },
  {
    name: 'user-unix, adopted',
    // In its groups, the account is the first or the last member. The removal must also restore the order of members.
    prepare:
      'useradd -m ann; useradd -M bob; echo ann:secret | chpasswd; chage -d 1000 ann; gpasswd -M ann,bob games; gpasswd -M bob,ann audio',
    desired: user({
      uid: 1600,
      primary_group: 'daemon',
      home: '/home/annie',
      shell: '/bin/bash',
      additional_groups: ['audio', 'video'],
    }),
    changed: user({ shell: '/bin/false', additional_groups: [] }),
    tamper: 'usermod -u 1700 -g users ann',
    moved: ['uid', 'primary_group'],
  },
  {
    name: 'user-unix, absent',
    prepare:
      "useradd -m -c 'A. Nn' ann; echo ann:secret | chpasswd; chage -d 1000 -M 90 ann; gpasswd -M ann,root games; usermod -v 300000-300099 ann",
    desired: user({ ensure: 'absent' }),
    changed: user({ shell: '/bin/false' }),
    tamper: 'useradd -u 1777 -M ann',
    moved: ['ensure'],
  },
];
