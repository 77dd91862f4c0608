import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentVerbs } from '../../cli/src/aliases.ts';
import { launched } from '../../cli/src/program/nouns.ts';
import { describeProgram } from '../../cli/src/program/program.ts';
import { launchedWords, programFor } from './roles.ts';

describe('roles of the executable', () => {
  test('chooses the program by the first word, and the command line for unknown words', () => {
    expect(programFor(['agent', 'connect', 'h:1'])).toEqual({ program: 'agent', words: ['connect', 'h:1'] });
    expect(programFor(['orchestrator', '--help'])).toEqual({ program: 'orchestrator', words: ['--help'] });
    expect(programFor(['backup', 'file'])).toEqual({ program: 'orchestrator', words: ['backup', 'file'] });
    expect(programFor(['agent'])).toEqual({ program: 'agent', words: [] });
    for (const words of [[], ['--help'], ['agents', 'list'], ['agent', 'list'], ['toString'], ['--json', 'agent']])
      expect(programFor(words)).toEqual({ program: 'cli', words });
  });

  test('defines the same first words in the executable, the launcher, and the help', () => {
    const launcher = readFileSync(join(import.meta.dirname, '../../cli/bin/muster'), 'utf8');
    const cases = launcher.slice(launcher.indexOf('case $role in')).matchAll(/^ {2}([a-z |]+)\)$/gm);
    const words = [...cases].flatMap(([, list]) => (list as string).split(' | '));
    expect(words.sort()).toEqual([...launchedWords].sort());
    expect([...launched].sort()).toEqual([...launchedWords].sort());
  });

  test('accepts all subcommands of `muster agents` as `muster agent`, in the launcher too', async () => {
    const agents = (await describeProgram()).commands.find((command) => command.name() === 'agents');
    const verbs = agents?.commands.flatMap((command) => [command.name(), ...command.aliases()]);
    expect([...agentVerbs].sort()).toEqual(verbs?.sort());
    const launcher = readFileSync(join(import.meta.dirname, '../../cli/bin/muster'), 'utf8');
    const [, inLauncher = ''] = /^ {4}([a-z |]+)\) role=agents ;;$/m.exec(launcher) ?? [];
    expect(inLauncher.split(' | ')).toEqual([...agentVerbs].sort());
  });

  test.each([
    ['agent', ['MALLOC_ARENA_MAX=1', 'MALLOC_TRIM_THRESHOLD_=131072']],
    ['orchestrator', ['MALLOC_ARENA_MAX=1']],
  ])("limits the C library's heap in the launcher as in the unit of the %s", (program, limits) => {
    const text = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');
    expect(text(`packaging/systemd/muster-${program}.service`)).toContain(`\nEnvironment=${limits.join(' ')}\n`);
    const launcher = text('cli/bin/muster').replaceAll(/"\$\{\w+-(\d+)\}"/g, '$1');
    expect(launcher.slice(launcher.indexOf(`\n  ${program})\n`))).toMatch(
      new RegExp(`^(?:(?!;;)[^])*export ${limits.join(' ')}\n`),
    );
  });
});
