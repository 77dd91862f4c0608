import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readModuleTests } from '@muster/protocol/module-trial';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { defaultConfig as agentDefaults, parseConfig as parseAgentConfig } from '../agent/src/config.ts';
import { describeProgram } from '../cli/src/program/program.ts';
import { configSchema } from '../orchestrator/src/config/schema.ts';
import { blocksOf, commandsOf } from '../tools/docs/markdown.ts';

const root = join(import.meta.dirname, '..');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) => join('docs', path)),
]
  .filter((path) => path.endsWith('.md') && !path.includes('.vitepress'))
  .toSorted();

/** Returns the `muster` commands in a page's shell blocks. Joins a command that spans several lines. */
function typedOn(page: string): { words: string[]; line: number }[] {
  return blocksOf(readFileSync(join(root, page), 'utf8'))
    .filter(({ language }) => ['sh', 'console'].includes(language))
    .flatMap(({ source, line }) =>
      commandsOf(`\`\`\`\n${source.replaceAll(/\\\n\s*/g, '')}\`\`\`\n`, ['muster', 'npx']).map((command) => ({
        words: command.words[0] === 'npx' ? command.words.slice(1) : command.words,
        line: line + command.line - 1,
      })),
    )
    .filter(({ words }) => words[0] === 'muster' && !words.some((word) => word.includes('…')));
}

const program = await describeProgram();
// Commands that start a separate program, which parses its own arguments.
const own = new Set(
  program.commands
    .filter(
      (command) =>
        command.commands.length === 0 &&
        command.args.length === 0 &&
        command.registeredArguments[0]?.variadic &&
        command.options.length === 0,
    )
    .map((command) => command.name()),
);

describe('commands in the documentation', () => {
  test.each(pages.map((page) => ({ page, commands: typedOn(page) })).filter(({ commands }) => commands.length > 0))(
    'the CLI accepts the commands in $page',
    async ({ commands }) => {
      const faults: string[] = [];
      for (const { words, line } of commands) {
        const [, ...typed] = words.map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
        if (own.has(typed[0] as string)) continue;
        try {
          await program.parseAsync(typed, { from: 'user' });
        } catch (error) {
          if ((error as Error).name !== 'CommanderError') throw error;
          const { exitCode, message } = error as { exitCode: number; message: string };
          if (exitCode !== 0) faults.push(`line ${line}: muster ${typed.join(' ')}: ${message}`);
        }
      }
      expect(faults).toEqual([]);
    },
  );

  test('the documentation has more than 100 commands to check', () => {
    expect(pages.flatMap(typedOn).length).toBeGreaterThan(100);
  });
});

describe('configurations in the documentation', () => {
  /** First keys in the configurations of other programs, and in module tests. */
  const others = new Set(['scrape_configs', 'tests']);
  const shown = pages.flatMap((page) =>
    blocksOf(readFileSync(join(root, page), 'utf8'))
      .filter(({ language, source }) => /^ya?ml$/.test(language) && !/^(name|resources|- id):/m.test(source))
      .map(({ source, line }) => ({ place: `${page}:${line}`, source, first: /^([a-z_]+):/m.exec(source)?.[1] ?? '' })),
  );

  test.each(shown.filter(({ first }) => !others.has(first)))(
    'Muster accepts the configuration or module tests at $place',
    ({ source, first }) => {
      if (first === 'tests') {
        expect(readModuleTests(source)).toMatchObject({ ok: true });
        return;
      }
      const orchestrators = configSchema.safeParse(parse(source));
      // Tries both schemas, because orchestrator and agent have sections with the same names, such as `metrics`.
      if (orchestrators.success) return;
      if (first in agentDefaults) expect(() => parseAgentConfig(source)).not.toThrow();
      else expect(orchestrators.error.issues).toEqual([]);
    },
  );

  test('the documentation has several configurations to check', () => {
    expect(shown.length).toBeGreaterThan(2);
  });
});
