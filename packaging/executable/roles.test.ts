import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { launched } from '../../cli/src/program/program.ts';
import { launchedWords, programFor } from './roles.ts';

describe('what the executable runs', () => {
  it('is the part that is typed first, the command line for everything else', () => {
    expect(programFor(['agent', 'connect', 'h:1'])).toEqual({ program: 'agent', words: ['connect', 'h:1'] });
    expect(programFor(['orchestrator', '--help'])).toEqual({ program: 'orchestrator', words: ['--help'] });
    expect(programFor(['backup', 'file'])).toEqual({ program: 'orchestrator', words: ['backup', 'file'] });
    for (const words of [[], ['--help'], ['agents', 'list'], ['toString'], ['--json', 'agent']])
      expect(programFor(words)).toEqual({ program: 'cli', words });
  });

  it('is what the launcher of a clone runs, and what the help of the command line names', () => {
    const launcher = readFileSync(join(import.meta.dirname, '../../cli/bin/muster'), 'utf8');
    const cases = launcher.slice(launcher.indexOf('case $1 in')).matchAll(/^ {2}([a-z |]+)\)$/gm);
    const words = [...cases].flatMap(([, list]) => (list as string).split(' | '));
    expect(words.sort()).toEqual([...launchedWords].sort());
    expect([...launched].sort()).toEqual([...launchedWords].sort());
  });
});
