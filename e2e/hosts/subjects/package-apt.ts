import { buildDeb, debs, fileServerUp, urlOf } from '../registries/package-files.ts';
import type { Subject } from './subject.ts';

const quiet = 'DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 > /dev/null';
/** Shell text that prints the state of the test packages in dpkg and apt. */
const state =
  "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' 'sample-*' 2> /dev/null || true; apt-mark showauto; apt-mark showhold";
const common = { packages: true, slow: true, state } as const;

export const packageAptSubjects: Subject[] = [
  {
    ...common,
    name: 'package-apt, installed with dependencies',
    desired: { 'package-apt': { name: 'sample-dependent', version: '2.0' } },
    changed: { 'package-apt': { name: 'sample-dependent', version: '1.0' } },
    tamper: `${quiet} remove sample-dependent`,
    moved: ['ensure', 'version'],
  },
  {
    ...common,
    name: 'package-apt, with a configuration file and an exact version',
    desired: { 'package-apt': { name: 'sample-config', version: '1.0' } },
    changed: { 'package-apt': { name: 'sample-config', version: 'latest' } },
    tamper: `${quiet} install sample-config=2.0`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-apt, with a version range',
    prepare: `${quiet} install sample-plain=1.0`,
    desired: { 'package-apt': { name: 'sample-plain', version: '>=1.5' } },
    changed: { 'package-apt': { name: 'sample-plain', version: '1.*' } },
    tamper: `${quiet} install --allow-downgrades sample-plain=1.0`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-apt, another version of an automatically installed package',
    prepare: `${quiet} install sample-plain=1.0; apt-mark -qq auto sample-plain`,
    desired: { 'package-apt': { name: 'sample-plain', version: '2.0' } },
    changed: { 'package-apt': { name: 'sample-plain', version: '1.0' } },
    tamper: `${quiet} install --allow-downgrades sample-plain=1.0`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-apt, on hold',
    desired: { 'package-apt': { name: 'sample-plain', version: '1.0', hold: true } },
    changed: { 'package-apt': { name: 'sample-plain', version: '2.0', hold: true } },
    tamper: 'apt-mark -qq unhold sample-plain',
    moved: ['hold'],
  },
  {
    ...common,
    name: 'package-apt, previously on hold, then released',
    prepare: `${quiet} install sample-plain=1.0; apt-mark -qq hold sample-plain`,
    desired: { 'package-apt': { name: 'sample-plain', version: '2.0', hold: false } },
    changed: { 'package-apt': { name: 'sample-plain', version: '1.0', hold: true } },
    tamper: 'apt-mark -qq hold sample-plain',
    moved: ['hold'],
  },
  {
    ...common,
    name: 'package-apt, absent',
    prepare: `${quiet} install sample-config=1.0`,
    desired: { 'package-apt': { name: 'sample-config', ensure: 'absent' } },
    changed: { 'package-apt': { name: 'sample-config', version: '2.0' } },
    tamper: `${quiet} install sample-config=1.0`,
    moved: ['ensure'],
  },
  {
    ...common,
    name: 'package-apt, from a file, with dependencies from the sources',
    prepare: `${['1.0', '2.0'].map((version) => buildDeb('sample-file', version, { Depends: 'sample-plain' })).join('')}${fileServerUp(debs)}`,
    desired: { 'package-apt': { name: 'sample-file', url: urlOf('sample-file_1.0.deb') } },
    changed: { 'package-apt': { name: 'sample-file', url: urlOf('sample-file_2.0.deb') } },
    hashed: { desired: `${debs}/sample-file_1.0.deb`, changed: `${debs}/sample-file_2.0.deb` },
    tamper: `${quiet} remove sample-file`,
    moved: ['ensure'],
  },
  {
    ...common,
    name: 'package-apt, from a file, previously from the sources',
    prepare: `${buildDeb('sample-plain', '3.0')}${fileServerUp(debs)}${quiet} install sample-plain=1.0`,
    desired: { 'package-apt': { name: 'sample-plain', url: urlOf('sample-plain_3.0.deb'), version: '3.0' } },
    changed: { 'package-apt': { name: 'sample-plain', version: '2.0' } },
    hashed: { desired: `${debs}/sample-plain_3.0.deb` },
    tamper: `${quiet} install --allow-downgrades sample-plain=1.0`,
    moved: ['version'],
  },
];
