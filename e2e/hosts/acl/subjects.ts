import { derivedRoot } from '../derived-root.ts';
import type { Subject } from '../subjects/subject.ts';

/** Builds a Debian root with the programs for access control lists. */
export const aclRoot = (): Promise<string> => derivedRoot({ name: 'acl', packages: ['acl'] });

const state = 'getfacl --recursive --absolute-names /srv';

export const aclSubjects: readonly Subject[] = [
  {
    name: 'file-unix with an ACL, created',
    state,
    desired: {
      'file-unix': { path: '/srv/new/f', content: 'one\n', mode: '0640', acl: ['u:games:6', 'group:daemon:r'] },
    },
    changed: { 'file-unix': { path: '/srv/new/f', content: 'two\n', mode: '0600', acl: ['user:games:r--'] } },
    tamper: 'setfacl -m u:mail:rwx /srv/new/f',
    moved: ['acl'],
  },
  {
    name: 'file-unix with an ACL, previously another ACL that its mask limits',
    state,
    prepare: 'echo theirs > /srv/f; chown games:daemon /srv/f; setfacl -m u:mail:rwx,g::rw,m::r /srv/f',
    desired: { 'file-unix': { path: '/srv/f', content: 'ours\n', mode: '0604', acl: ['user:bin:rw-'] } },
    changed: { 'file-unix': { path: '/srv/f', owner: 'bin', acl: [] } },
    tamper: 'chmod 604 /srv/f',
    moved: ['acl'],
  },
  {
    name: 'file-unix with only an ACL',
    state,
    prepare: 'echo theirs > /srv/f; chmod 640 /srv/f',
    desired: { 'file-unix': { path: '/srv/f', acl: ['group:mail:rw-'] } },
    changed: { 'file-unix': { path: '/srv/f', mode: '0664', acl: ['group:mail:r--', 'user:1234:rwx'] } },
    tamper: 'setfacl -b /srv/f',
    moved: ['acl'],
  },
  {
    name: 'directory-unix with an ACL, created',
    state,
    desired: {
      'directory-unix': {
        path: '/srv/new/d',
        mode: '0750',
        acl: ['user:games:rwx', 'default:user:games:rwx', 'd:g:daemon:rx', 'default:other::---'],
      },
    },
    changed: { 'directory-unix': { path: '/srv/new/d', mode: '0700', acl: ['group:daemon:r-x'] } },
    tamper: 'setfacl -k /srv/new/d; chmod 701 /srv/new/d',
    moved: ['mode', 'acl'],
  },
  {
    name: 'directory-unix with an ACL that replaces another ACL',
    state,
    prepare: 'mkdir /srv/d; setfacl -m u:mail:rwx,d:u:mail:rwx,d:o::--- /srv/d',
    desired: { 'directory-unix': { path: '/srv/d', owner: 'games', acl: ['default:group:daemon:rwx'] } },
    changed: { 'directory-unix': { path: '/srv/d', mode: '2770', acl: [] } },
    tamper: 'setfacl -m d:u:bin:r /srv/d',
    moved: ['acl'],
  },
];
