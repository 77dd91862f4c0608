import type { Subject } from './subject.ts';

export const cronSubjects: Subject[] = [
  {
    name: 'cron-unix, created',
    desired: { 'cron-unix': { name: 'backup', user: 'root', schedule: '5 3 * * *', command: 'echo 100% done' } },
    changed: { 'cron-unix': { name: 'backup', user: 'root', schedule: '@daily', command: 'echo 100% done' } },
    tamper: "sed -i 's/^5 3/6 3/' /etc/cron.d/*backup*",
    moved: ['schedule'],
  },
];
