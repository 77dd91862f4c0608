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

/** A script runs in its own systemd scope here, unlike in the unit tests, which have no systemd. */
export const scriptSubjects: Subject[] = [
  {
    name: 'script',
    desired: script('one'),
    changed: script('two'),
    tamper: 'echo by hand > /opt/state',
    moved: ['check'],
  },
];
