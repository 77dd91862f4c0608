import type { Subject } from '../subjects/subject.ts';

const state = 'lsattr -d /srv/* 2>/dev/null || true; lsattr -R /srv';

export const attributesSubjects: readonly Subject[] = [
  {
    name: 'file-unix with attributes, created',
    state,
    desired: { 'file-unix': { path: '/srv/new/f', content: 'one\n', mode: '0640', attributes: ['immutable'] } },
    changed: { 'file-unix': { path: '/srv/new/f', content: 'two\n', mode: '0600', attributes: ['append_only', 'A'] } },
    tamper: 'chattr -i /srv/new/f; echo more >> /srv/new/f',
    moved: ['content', 'attributes'],
  },
  {
    name: 'file-unix with attributes, previously immutable',
    state,
    prepare: 'echo theirs > /srv/f; chmod 604 /srv/f; chattr +iA /srv/f',
    desired: { 'file-unix': { path: '/srv/f', content: 'ours\n', attributes: [] } },
    changed: { 'file-unix': { path: '/srv/f', owner: 'games', mode: '0640', attributes: ['i'] } },
    tamper: 'chattr +a /srv/f',
    moved: ['attributes'],
  },
  {
    name: 'file-unix declared absent, previously immutable',
    state,
    prepare: 'echo theirs > /srv/f; chattr +i /srv/f',
    desired: { 'file-unix': { path: '/srv/f', ensure: 'absent', attributes: [] } },
    changed: { 'file-unix': { path: '/srv/f', content: 'ours\n', attributes: ['immutable'] } },
    tamper: 'echo mine > /srv/f',
    moved: ['ensure'],
  },
  {
    name: 'directory-unix with attributes, created',
    state,
    desired: { 'directory-unix': { path: '/srv/new/d', mode: '0750', attributes: ['immutable'] } },
    changed: { 'directory-unix': { path: '/srv/new/d', mode: '0700', attributes: ['append_only'] } },
    tamper: 'chattr -i /srv/new/d',
    moved: ['attributes'],
  },
  {
    name: 'directory-unix with attributes, previously append-only',
    state,
    prepare: 'mkdir /srv/d; echo a > /srv/d/f; chattr +a /srv/d',
    desired: { 'directory-unix': { path: '/srv/d', purge: true, attributes: ['immutable'] } },
    changed: { 'directory-unix': { path: '/srv/d', owner: 'games', mode: '0700', attributes: [] } },
    tamper: 'chattr -i /srv/d',
    moved: ['attributes'],
  },
];
