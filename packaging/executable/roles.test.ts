import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { launched } from '../../cli/src/program/program.ts';
import { launchedWords, programFor } from './roles.ts';

describe('roles of the executable', () => {
  test('chooses the program by the first word, and the command line for any other word', () => {
    expect(programFor(['agent', 'connect', 'h:1'])).toEqual({ program: 'agent', words: ['connect', 'h:1'] });
    expect(programFor(['orchestrator', '--help'])).toEqual({ program: 'orchestrator', words: ['--help'] });
    expect(programFor(['backup', 'file'])).toEqual({ program: 'orchestrator', words: ['backup', 'file'] });
    for (const words of [[], ['--help'], ['agents', 'list'], ['toString'], ['--json', 'agent']])
      expect(programFor(words)).toEqual({ program: 'cli', words });
  });

  test('defines the same first words as the launcher and the help', () => {
    const launcher = readFileSync(join(import.meta.dirname, '../../cli/bin/muster'), 'utf8');
    const cases = launcher.slice(launcher.indexOf('case $1 in')).matchAll(/^ {2}([a-z |]+)\)$/gm);
    const words = [...cases].flatMap(([, list]) => (list as string).split(' | '));
    expect(words.sort()).toEqual([...launchedWords].sort());
    expect([...launched].sort()).toEqual([...launchedWords].sort());
  });
});
