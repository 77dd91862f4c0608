import { derivedRoot } from '../derived-root.ts';
import { repositoryInside } from '../machine.ts';
import type { Subject } from './subject.ts';

/** Builds a Debian root with npm. */
export const languagesRoot = (): Promise<string> => derivedRoot({ name: 'languages', packages: ['npm'] });

export const npmRegistry = 'http://127.0.0.1:4873/';

/** Returns shell text that starts a server on the machine, and waits until it answers. */
const serverUp = (program: string, port: number): string => `
systemd-run --quiet ${repositoryInside}/node_modules/.bin/node ${repositoryInside}/e2e/hosts/registries/${program} ${port}
for i in $(seq 300); do bash -c ': > /dev/tcp/127.0.0.1/${port}' 2> /dev/null && break; sleep 0.1; done
`;
export const npmRegistryUp = serverUp('npm-registry.ts', 4873);
const npm = `npm install --silent --no-audit --no-fund --no-update-notifier --cache=/tmp/npm --registry=${npmRegistry} --global`;
const registry = npmRegistry;
const tool = { name: 'tool', registry };
const scoped = { name: '@scope/tool', prefix: '/home/ada/npm', user: 'ada', registry };
/** Prints what the commands print, which shows whether their files are complete. */
const state = 'for i in /usr/local/bin/* /home/ada/npm/bin/*; do [ ! -L "$i" ] || echo "$i $("$i")"; done';
const common = { slow: true, state };

export const npmSubjects: readonly Subject[] = [
  {
    ...common,
    name: 'package-npm, new, for all users',
    // The tests kill this agent at every kind of step, such as while npm runs.
    slow: false,
    prepare: npmRegistryUp,
    desired: { 'package-npm': { ...tool, version: '1.0.0' } },
    changed: { 'package-npm': { ...tool, version: '^2' } },
    tamper: `rm /usr/local/bin/tool; sed -i 's/"version":"1.0.0"/"version":"0.9.0"/' /usr/local/lib/node_modules/tool/package.json`,
    moved: ['version', 'commands'],
  },
  {
    ...common,
    name: 'package-npm, new, in the home directory of a user',
    prepare: `${npmRegistryUp}useradd --create-home ada`,
    desired: { 'package-npm': { ...scoped, version: '1.0.0' } },
    changed: { 'package-npm': { ...scoped, version: '1.1.x' } },
    tamper: 'rm -r /home/ada/npm/lib/node_modules/@scope/tool',
    moved: ['ensure', 'version'],
  },
  {
    ...common,
    name: 'package-npm, previously another version',
    prepare: `${npmRegistryUp}${npm} tool@1.1.0`,
    desired: { 'package-npm': { ...tool, version: '>=2' } },
    changed: { 'package-npm': { ...tool, ensure: 'absent' } },
    tamper: `${npm} tool@1.0.0`,
    moved: ['version'],
  },
  {
    ...common,
    name: 'package-npm, absent, previously installed',
    prepare: `${npmRegistryUp}${npm} tool@1.1.0`,
    desired: { 'package-npm': { ...tool, ensure: 'absent' } },
    changed: { 'package-npm': { ...tool, version: '1.0.0' } },
    tamper: `${npm} tool@2.0.0`,
    moved: ['ensure', 'version'],
  },
];
