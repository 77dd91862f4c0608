import { derivedRoot } from '../derived-root.ts';
import type { Subject } from '../subjects/subject.ts';

/** Builds a Debian root with the programs for capabilities and ACLs. */
export const capabilitiesRoot = (): Promise<string> =>
  derivedRoot({ name: 'capabilities', packages: ['libcap2-bin', 'acl'] });

const state = 'getcap -n -r /srv';

export const capabilitiesSubjects: readonly Subject[] = [
  {
    name: 'file-unix with capabilities, created',
    state,
    desired: {
      'file-unix': {
        path: '/srv/new/f',
        content: 'one\n',
        mode: '0755',
        capabilities: ['cap_net_raw,cap_net_admin+ep'],
      },
    },
    changed: { 'file-unix': { path: '/srv/new/f', content: 'two\n', mode: '0750', capabilities: ['cap_kill=p'] } },
    tamper: 'echo more >> /srv/new/f',
    moved: ['content', 'capabilities'],
  },
  {
    name: 'file-unix with capabilities, previously others',
    state,
    prepare: 'echo theirs > /srv/f; chmod 755 /srv/f; setcap cap_chown=i /srv/f',
    desired: {
      'file-unix': {
        path: '/srv/f',
        content: 'ours\n',
        owner: 'root',
        group: 'games',
        capabilities: ['cap_net_raw=ep'],
      },
    },
    changed: { 'file-unix': { path: '/srv/f', content: 'ours\n', owner: 'games', capabilities: [] } },
    tamper: 'setcap cap_net_raw=p /srv/f',
    moved: ['capabilities'],
  },
  {
    name: 'file-unix with only capabilities',
    state,
    prepare: 'echo theirs > /srv/f; chmod 755 /srv/f',
    desired: { 'file-unix': { path: '/srv/f', attributes: [], capabilities: ['cap_net_bind_service=ep'] } },
    changed: {
      'file-unix': { path: '/srv/f', group: 'games', attributes: ['immutable'], capabilities: ['cap_kill=ei'] },
    },
    tamper: 'setcap -r /srv/f',
    moved: ['capabilities'],
  },
  {
    name: 'file-unix declared absent, previously with capabilities',
    state,
    prepare: 'echo theirs > /srv/f; chmod 750 /srv/f; setcap cap_net_raw=ep /srv/f',
    desired: { 'file-unix': { path: '/srv/f', ensure: 'absent', capabilities: [] } },
    changed: { 'file-unix': { path: '/srv/f', content: 'ours\n', capabilities: ['cap_kill=ep'] } },
    tamper: 'echo mine > /srv/f',
    moved: ['ensure'],
  },
];
