import type { Subject } from './subject.ts';

const file = '/etc/security/limits.d/90-muster-@staff-soft-nofile.conf';
const limit = { domain: '@staff', limit_type: 'soft', item: 'nofile' } as const;

export const limitsSubjects: readonly Subject[] = [
  {
    name: 'limits, created',
    desired: { limits: { ...limit, value: '4096' } },
    changed: { limits: { ...limit, value: 'unlimited' } },
    tamper: `sed -i s/4096/1024/ ${file}`,
    moved: ['value'],
  },
  {
    name: 'limits, with a file of the same name that sets another value',
    prepare: `echo '@staff soft nofile 512' > ${file}; chmod 600 ${file}`,
    desired: { limits: { ...limit, value: '4096' } },
    changed: { limits: { ...limit, value: '8192' } },
    tamper: `chmod 640 ${file}`,
    moved: ['mode'],
  },
  {
    name: 'limits, absent',
    prepare: `echo '@staff soft nofile 512' > ${file}`,
    desired: { limits: { ...limit, value: '4096', ensure: 'absent' } },
    changed: { limits: { ...limit, value: '4096' } },
    tamper: `echo '@staff soft nofile 1024' > ${file}`,
    moved: ['ensure'],
  },
];
