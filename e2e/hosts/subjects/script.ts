import type { Subject } from './subject.ts';

const script = (value: string) => ({
  script: {
    program: 'sh' as const,
    manages: 'the state',
    check: `test "$(cat /opt/state)" = ${value}`,
    apply: `echo ${value} > /opt/state`,
    undo: 'rm -f /opt/state',
  },
});

const built = (name: string) => ({
  script: {
    program: '/usr/bin/perl',
    manages: 'the build',
    user: 'daemon',
    working_directory: '/opt/work',
    creates: `/opt/work/${name}`,
    apply: `unlink glob("*"); open(my $f, ">", "${name}") or die; print $f "$>";`,
    undo: 'unlink glob("*");',
  },
});

/** Scripts run in their own systemd scopes here, whereas the unit tests have no systemd. */
export const scriptSubjects: Subject[] = [
  {
    name: 'script',
    desired: script('one'),
    changed: script('two'),
    tamper: 'echo by hand > /opt/state',
    moved: ['check'],
  },
  {
    name: 'script, run as a user, that creates a file',
    prepare: 'mkdir /opt/work && chown daemon /opt/work',
    desired: built('one'),
    changed: built('two'),
    tamper: 'rm /opt/work/*',
    moved: ['creates'],
  },
];
