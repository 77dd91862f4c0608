import type { Subject } from './subject.ts';

const tool = 'update-alternatives --quiet';
/** Shell text that installs two alternatives, each with a slave link. `two` has the higher priority. */
const prepare = `mkdir -p /opt/tool/one /opt/tool/two
for one in one two; do echo "$one" > "/opt/tool/$one/tool"; echo "$one" > "/opt/tool/$one/tool.1"; done
for one in '10 one' '20 two'; do set -- $one
  ${tool} --install /usr/local/bin/tool tool "/opt/tool/$2/tool" "$1" --slave /usr/local/bin/tool.1 tool.1 "/opt/tool/$2/tool.1"
done`;
const state = 'update-alternatives --query tool';
const one = { name: 'tool', path: '/opt/tool/one/tool' };
const two = { name: 'tool', path: '/opt/tool/two/tool' };

export const alternativesSubjects: readonly Subject[] = [
  {
    name: 'alternatives, previously automatic',
    prepare,
    desired: { alternatives: one },
    changed: { alternatives: two },
    tamper: `${tool} --auto tool`,
    moved: ['path', 'mode'],
    state,
  },
  {
    name: 'alternatives, previously manual, with a lost slave link',
    prepare: `${prepare}; ${tool} --set tool ${one.path}`,
    desired: { alternatives: two },
    changed: { alternatives: { ...two, ensure: 'absent' } },
    tamper: 'ln -sfn /opt/tool/one/tool.1 /etc/alternatives/tool.1',
    moved: ['slaves'],
    state,
  },
  {
    name: 'alternatives, with a removed slave link',
    prepare,
    desired: { alternatives: one },
    changed: { alternatives: two },
    tamper: 'rm /usr/local/bin/tool.1',
    moved: ['slaves'],
    state,
  },
  {
    name: 'alternatives, absent, previously manual',
    prepare: `${prepare}; ${tool} --set tool ${one.path}`,
    desired: { alternatives: { ...one, ensure: 'absent' } },
    changed: { alternatives: two },
    tamper: `${tool} --set tool ${one.path}`,
    moved: ['path', 'mode'],
    state,
  },
  {
    name: 'alternatives, with a removed link',
    prepare,
    desired: { alternatives: one },
    changed: { alternatives: two },
    tamper: 'rm /usr/local/bin/tool',
    moved: ['link'],
    state: `${state}; readlink /usr/local/bin/tool || true`,
  },
  {
    name: 'alternatives, registered in a new group',
    prepare: 'mkdir -p /opt/tool; echo one > /opt/tool/one; echo two > /opt/tool/two; echo page > /opt/tool/one.1',
    desired: {
      alternatives: {
        ...{ name: 'tool', path: '/opt/tool/one', link: '/usr/local/bin/tool', priority: 10 },
        slaves: ['/usr/local/share/tool.1 tool.1 /opt/tool/one.1'],
      },
    },
    changed: { alternatives: { name: 'tool', path: '/opt/tool/one', link: '/usr/local/bin/tool' } },
    tamper: `${tool} --remove tool /opt/tool/one`,
    moved: ['registered', 'path', 'mode', 'link'],
    state: `${state} || true`,
  },
  {
    name: 'alternatives, registered in an existing group',
    prepare: `${prepare}; ${tool} --set tool ${one.path}; echo three > /opt/tool/three`,
    desired: { alternatives: { name: 'tool', path: '/opt/tool/three', link: '/usr/local/bin/tool', priority: 30 } },
    changed: {
      alternatives: {
        ...{ name: 'tool', path: '/opt/tool/three', link: '/usr/local/bin/tool', priority: 5 },
        slaves: ['/usr/local/bin/tool.1 tool.1 /opt/tool/one/tool.1'],
      },
    },
    tamper: `${tool} --install /usr/local/bin/tool tool /opt/tool/three 31`,
    moved: ['registered'],
    state,
  },
];
