import type { Subject } from './subject.ts';

const key = (words: string) => `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${words}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
const source = { name: 'extra', uris: ['http://192.0.2.1/debian'], suites: ['stable'], components: ['main'] };

export const aptRepositorySubjects: Subject[] = [
  {
    name: 'apt-repository, created',
    prepare: 'rmdir /etc/apt/keyrings || true',
    desired: { 'apt-repository': { ...source, signed_by: key('b25l') } },
    changed: { 'apt-repository': { ...source, components: ['main', 'contrib'], signed_by: key('dHdv') } },
    tamper: "sed -i 's/^Suites: stable/Suites: testing/' /etc/apt/sources.list.d/extra.sources",
    moved: ['suites'],
  },
  {
    name: 'apt-repository, adopted with its key',
    prepare: `mkdir -p /etc/apt/keyrings
printf 'Types: deb\\nURIs: http://192.0.2.2/\\nSuites: ./\\n' > /etc/apt/sources.list.d/extra.sources
chmod 600 /etc/apt/sources.list.d/extra.sources
echo theirs > /etc/apt/keyrings/extra.asc`,
    desired: { 'apt-repository': { ...source, signed_by: key('b25l') } },
    changed: { 'apt-repository': { name: 'extra', uris: ['http://192.0.2.3/'], suites: ['./'] } },
    tamper: 'echo by hand > /etc/apt/keyrings/extra.asc',
    moved: ['signed_by'],
  },
  {
    name: 'apt-repository, absent',
    prepare: `printf 'Types: deb\\nURIs: http://192.0.2.2/\\nSuites: ./\\n' > /etc/apt/sources.list.d/extra.sources`,
    desired: { 'apt-repository': { ...source, ensure: 'absent' } },
    changed: { 'apt-repository': source },
    tamper: 'echo > /etc/apt/sources.list.d/extra.sources',
    moved: ['ensure'],
  },
];
