import type { Subject } from './subject.ts';

const user = (fields: object) => ({ 'user-unix': { name: 'ann', ...fields } });
const group = (fields: object = {}) => ({ 'group-unix': { name: 'ops', ...fields } });

export const accountSubjects: Subject[] = [
  {
    name: 'group-unix, created',
    desired: group({ gid: 1700, system: true }),
    changed: group({ gid: 1701 }),
    tamper: 'groupmod -g 1800 ops',
    moved: ['gid'],
  },
  {
    name: 'group-unix, members of a group that has other members',
    prepare: 'useradd -M ann; useradd -M bob; useradd -M eve; groupadd ops; gpasswd -M bob,ann ops',
    desired: group({ members: ['eve', 'ann'] }),
    changed: group({ members_append: ['bob'] }),
    tamper: 'gpasswd -d eve ops; gpasswd -a bob ops',
    moved: ['members'],
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
    desired: user({
      ...{ uid: 1500, shell: '/bin/bash', home: '/srv/deep/ann', additional_groups: ['audio', '60'] },
      ...{ comment: 'Ann', password_hash: '$6$salt$oursours', expires: '2030-01-31', password_max_days: 60 },
    }),
    changed: user({ uid: 1501, primary_group: 'games', additional_groups: ['video'] }),
    tamper: 'usermod -s /bin/false -aG daemon ann; usermod -p x ann',
    moved: ['additional_groups', 'shell', 'password_hash'],
  },
  {
    name: 'user-unix, system account with a home directory',
    desired: user({ system: true, create_home: true, shell: '/bin/bash' }),
    changed: user({ system: true, create_home: true, shell: '/bin/sh' }),
    tamper: 'usermod -s /bin/false ann',
    moved: ['shell'],
  },
  {
    name: 'user-unix, adopted',
    // The account is the first or the last member of its groups. The removal must also restore the order of members.
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
    name: 'user-unix, sign-in of an adopted account',
    prepare:
      "useradd -M -c 'A. Nn' ann; echo ann:secret | chpasswd; chage -d 1000 -M 90 -I 7 ann; gpasswd -M ann,root games; groupadd ops",
    desired: user({
      comment: 'Ann, 3rd floor',
      password_hash: '$6$salt$oursours',
      locked: true,
      expires: '2030-01-31',
      password_max_days: 60,
      password_inactive_days: -1,
      groups_append: ['ops', 'audio'],
    }),
    changed: user({ password_hash: '$6$salt$ours-too', locked: false, expires: 'never', groups_append: ['video'] }),
    tamper: "usermod -U -c '' ann; gpasswd -d ann ops; chage -E 0 ann",
    moved: ['groups_append', 'comment', 'locked', 'expires'],
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
