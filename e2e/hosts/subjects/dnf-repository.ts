import type { Subject } from './subject.ts';

const key = (words: string) => `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${words}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
const source = { name: 'extra', baseurl: ['http://192.0.2.1/rpm'] };

export const dnfRepositorySubjects: Subject[] = [
  {
    name: 'dnf-repository, created with its key and directories',
    desired: { 'dnf-repository': { ...source, gpgkey: key('b25l'), enabled: true } },
    changed: {
      'dnf-repository': { ...source, gpgkey: key('dHdv'), enabled: false, excludepkgs: ['x*'], module_hotfixes: true },
    },
    tamper: "sed -i 's/^gpgcheck=1/gpgcheck=0/' /etc/yum.repos.d/extra.repo",
    moved: ['gpgcheck'],
  },
  {
    name: 'dnf-repository, adopted, then absent',
    prepare: `mkdir -p /etc/yum.repos.d
printf '[extra]\\nname = theirs\\nbaseurl = http://192.0.2.2/\\n' > /etc/yum.repos.d/extra.repo
chmod 600 /etc/yum.repos.d/extra.repo`,
    desired: { 'dnf-repository': { ...source, title: 'ours', metalink: 'https://192.0.2.3/m' } },
    changed: { 'dnf-repository': { name: 'extra', ensure: 'absent' } },
    tamper: "sed -i 's/^name=ours/name=by hand/' /etc/yum.repos.d/extra.repo",
    moved: ['title'],
  },
];
