import type { ModuleDocument } from '@muster/protocol/module';

/**
 * Finds shell commands in a module that check values of parameters. Parameters declare their values with a schema and
 * `require` instead, so that a wrong value is refused before anything is sent to a machine.
 */

const words = ['test', '[', '[[', 'case', 'expr', 'grep', 'egrep', 'fgrep', 'awk', 'sed', 'tr', 'cut', 'wc', 'cmp'];
const printers = ['cat', 'echo', 'printf'];
const keywords = /^(?:[\s{(!"]|\$\(|(?:if|elif|while|until|then|do|else)\s)+/;

/** Stands for an expression that reads a parameter. `PARAM` occurs in no command. */
const marked = 'PARAM';

/** Replaces expressions, and removes quoted text without them, because it can contain separators of commands. */
const withoutQuotes = (shell: string): string =>
  shell
    .replace(/\$\{\{(.*?)\}\}/gs, (_, expression: string) => (/\b(param|each)\b/.test(expression) ? marked : ''))
    .replace(/'[^']*'|"[^"$`]*"/g, (quoted) => (quoted.includes(marked) ? marked : ''));

/**
 * Returns the pipelines that begin with a text program, or print a text for one, and read a value.
 * @param value a regular expression for the value
 */
const checksIn = (shell: string, value: RegExp): string[] =>
  withoutQuotes(shell)
    .split(/;|&&|\|\||\n/)
    .map((pipeline) => pipeline.replace(keywords, '').trim())
    .filter((pipeline) => {
      const [first = '', ...others] = pipeline.split('|').map((command) => command.trim().split(/\s/)[0] ?? '');
      const isCheck =
        words.includes(first) || (printers.includes(first) && others.some((other) => words.includes(other)));
      return isCheck && value.test(pipeline);
    });

/** Shell fields of a resource. In `validate`, `%` is the file that contains the values. */
const fields = { validate: /(^|\s)%([\s)"]|$)|PARAM/, check: /PARAM/, apply: /PARAM/, undo: /PARAM/ };

/** Returns the commands in `validate`, scripts, and shell programs that check a parameter, as `id: command`. */
export function shellChecks({ resources, templates }: ModuleDocument): string[] {
  const inResources = resources.flatMap(({ id, variants }) =>
    variants.flatMap(({ resource }) =>
      Object.entries(fields).flatMap(([field, value]) => {
        const shell = resource?.body[field];
        return typeof shell === 'string' ? checksIn(shell, value).map((found) => `${id}: ${found}`) : [];
      }),
    ),
  );
  const programs = templates.filter(({ content }) => content.startsWith('#!'));
  return [
    ...inResources,
    ...programs.flatMap(({ id, content }) => checksIn(content, /PARAM/).map((found) => `${id}: ${found}`)),
  ];
}
