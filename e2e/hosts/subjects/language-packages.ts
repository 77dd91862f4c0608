import { derivedRoot } from '../derived-root.ts';
import { repositoryInside } from '../machine.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from './subject.ts';

/** Builds a Debian root with git, npm, and Python. */
export const languagesRoot = (): Promise<string> =>
  derivedRoot({ name: 'languages', packages: ['git', 'npm', 'python3-venv'] });

export const npmRegistry = 'http://127.0.0.1:4873/';

/** Returns shell text that starts a server on the machine, and waits until it answers. */
const serverUp = (program: string, port: number): string => `
systemd-run --quiet ${repositoryInside}/node_modules/.bin/node ${repositoryInside}/e2e/hosts/registries/${program} ${port}
for i in $(seq 300); do bash -c ': > /dev/tcp/127.0.0.1/${port}' 2> /dev/null && break; sleep 0.1; done
`;
export const npmRegistryUp = serverUp('npm-registry.ts', 4873);
export const pipIndexUp = serverUp('pip-index.ts', 4874);
export const pipIndex = 'http://127.0.0.1:4874/simple/';
const npm = `npm install --silent --no-audit --no-fund --no-update-notifier --cache=/tmp/npm --registry=${npmRegistry} --global`;
const registry = npmRegistry;
const tool = { name: 'tool', registry };
const scoped = { name: '@scope/tool', prefix: '/home/ada/npm', user: 'ada', registry };
/** Prints the output of the installed commands, which shows whether their files are complete. */
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

const venv = '/opt/venv';
const pip = { name: 'tool', virtualenv: venv, index_url: pipIndex };
const fromFile = { requirements: '/srv/requirements.txt', virtualenv: venv, index_url: pipIndex };
const site = (path: string): string => `${path}/lib/python3.11/site-packages`;
/** Shell text that creates a virtual environment and installs packages by hand. */
const byHand = (path: string, ...packages: string[]): string =>
  `python3 -m venv ${path}; ${path}/bin/pip install --quiet --no-cache-dir --index-url ${pipIndex} ${packages.join(' ')}`;
const pipCommon = {
  slow: true,
  state: 'for i in /opt/venv/bin/tool* /home/ada/venv/bin/tool*; do [ ! -f "$i" ] || echo "$i $("$i")"; done',
  // Bytecode contains the modification time of its source file.
  volatile: [...volatilePaths, ...[venv, '/home/ada/venv'].map((path) => `${site(path)}/__pycache__`)],
};

export const pipSubjects: readonly Subject[] = [
  {
    ...pipCommon,
    name: 'package-pip, new, in a new virtual environment',
    // The tests kill this agent at every kind of step, such as while pip runs.
    slow: false,
    prepare: pipIndexUp,
    desired: { 'package-pip': { ...pip, version: '1.0.0' } },
    changed: { 'package-pip': { ...pip, version: '2.0' } },
    tamper: `${venv}/bin/pip install --quiet --no-cache-dir --index-url ${pipIndex} tool==1.1.0; rm ${site(venv)}/tool.py`,
    moved: ['version', 'files'],
  },
  {
    ...pipCommon,
    name: 'package-pip, new, in the virtual environment of a user',
    prepare: `${pipIndexUp}useradd --create-home ada`,
    desired: { 'package-pip': { ...pip, version: '1.0.0', virtualenv: '/home/ada/venv', user: 'ada' } },
    changed: { 'package-pip': { ...pip, version: '1.1.0', virtualenv: '/home/ada/venv', user: 'ada' } },
    // Removal leaves the dependencies of a package that was uninstalled by hand.
    tamper: '/home/ada/venv/bin/pip uninstall --quiet --yes tool part',
    moved: ['ensure', 'version'],
  },
  {
    ...pipCommon,
    name: 'package-pip, previously another version',
    prepare: `${pipIndexUp}${byHand(venv, 'tool==2.0.0', 'other')}`,
    desired: { 'package-pip': { ...pip, version: '1.1.0' } },
    changed: { 'package-pip': { ...pip, ensure: 'absent' } },
    tamper: byHand(venv, 'tool==1.0.0'),
    moved: ['version'],
  },
  {
    ...pipCommon,
    name: 'package-pip, absent, previously installed',
    prepare: `${pipIndexUp}${byHand(venv, 'tool==1.1.0')}`,
    desired: { 'package-pip': { ...pip, ensure: 'absent' } },
    changed: { 'package-pip': { ...pip, version: '1.0.0' } },
    tamper: byHand(venv, 'tool==2.0.0'),
    moved: ['ensure', 'version'],
  },
  {
    ...pipCommon,
    name: 'package-pip, requirements, in a new virtual environment',
    // The tests kill this agent at every kind of step, such as while pip runs.
    slow: false,
    prepare: `${pipIndexUp}printf '%s\\n' 'tool==1.1.0' 'other; python_version > "3"' > /srv/requirements.txt`,
    desired: { 'package-pip': fromFile },
    tamper: `${venv}/bin/pip install --quiet --no-cache-dir --index-url ${pipIndex} tool==2.0.0`,
    moved: ['requirements'],
  },
  {
    ...pipCommon,
    name: 'package-pip, requirements, previously other versions',
    prepare: `${pipIndexUp}${byHand(venv, 'tool==2.0.0')}; echo 'tool<2' > /srv/requirements.txt`,
    desired: { 'package-pip': fromFile },
    tamper: `rm ${site(venv)}/tool.py`,
    moved: ['files'],
  },
];
