import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { muster, root } from '../tools/suite/cli.ts';

// `npx muster` runs node_modules/.bin/muster, a link to a file in node_modules/@muster/cli, which is itself a link.
describe.each([
  ['called through the link that npx uses', join(root, 'node_modules/.bin/muster')],
  ['called by its path', muster],
])('the launcher, %s', (_, program) => {
  test.each([
    { args: ['--version'], says: /^\d+\.\d+\.\d+/ },
    { args: ['orchestrator', '--help'], says: /^Usage: muster orchestrator/ },
    { args: ['agent', '--help'], says: /^Usage: muster agent/ },
  ])('the launcher runs the right program for $args', ({ args, says }) => {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', cwd: '/' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(says);
  });
});

test.each([
  'orchestrator',
  'orchestrator init',
  'orchestrator share',
  'orchestrator join',
  'agent',
  'migrate',
  'export',
  'import',
  'backup',
  'restore',
])(
  'the help of muster %s fits into 80 columns, and each option’s description begins with a capital letter',
  (words) => {
    const { stdout } = spawnSync(muster, [...words.split(' '), '--help'], { encoding: 'utf8' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    for (const line of lines.filter((each) => /^ {2}-/.test(each))) expect(line).toMatch(/^ {2}\S.* {2,}\p{Lu}/u);
  },
);
