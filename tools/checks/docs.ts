// Checks the documentation: links resolve, commands exist, modules parse, and the tables of errors, events, and kinds
// match the code. With `--write`, regenerates the generated pages:
//
//   node tools/checks/docs.ts --write
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { errorKinds } from '@muster/protocol';
import { parseModule } from '@muster/protocol/module';
import { type CliDescription, cliPage } from '../docs/cli-page.ts';
import { eventsPage } from '../docs/events-page.ts';
import { expressionsPage } from '../docs/expressions-page.ts';
import { kindsPage } from '../docs/kinds-page.ts';
import { anchorsOf, blocksOf, codePathsOf, commandsOf, linksOf } from '../docs/markdown.ts';
import { recipePage } from '../docs/recipe-pages.ts';
import { orphans } from '../site/outline.ts';
import { startHelp } from '../start/start-options.ts';
import { muster, root } from '../suite/cli.ts';

const skipped = new Set(['node_modules', 'dist', 'data', 'coverage']);

/** Returns the files below a folder whose names end with `ending`, relative to the root. */
function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith('.') || skipped.has(entry.name)) return [];
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

function linkFault(page: string, target: string): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return null;
  const [file, anchor] = target.split('#') as [string, string | undefined];
  const path = file === '' ? page : relative(root, join(root, dirname(page), decodeURIComponent(file)));
  if (path.startsWith('..')) return `${target} is outside the repository`;
  if (!existsSync(join(root, path))) return `${target} does not exist`;
  if (anchor && path.endsWith('.md') && !anchorsOf(read(path)).has(anchor)) return `${path} has no heading #${anchor}`;
  return null;
}

/** Folders, besides the root, to which code paths on pages may be relative. */
const codeFolders = [
  '',
  ...['orchestrator', 'agent', 'cli', 'console', 'protocol', 'client', 'bench'].flatMap((name) => [
    `${name}/src/`,
    `${name}/`,
  ]),
];

/**
 * Reports whether a page names a source file that does not exist. Decision records keep the paths that existed when
 * they were written.
 */
function codePathFault(page: string, target: string): string | null {
  if (!page.startsWith('docs/') || page.startsWith('docs/decisions/')) return null;
  if (codeFolders.some((folder) => existsSync(join(root, folder + target)))) return null;
  return `\`${target}\` does not exist; name the file from the root, or from the src/ of its workspace`;
}

/** A command's subcommands and flags, from its help text. */
interface Help {
  verbs: string[];
  flags: Set<string>;
}

const cli: CliDescription = JSON.parse(
  execFileSync(process.execPath, [join(root, 'cli/src/program/every-verb.ts')], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  }),
);
/** The page with recorded performance, and the benches without a section. */
const performance: { page: string; withoutSection: string[] } = JSON.parse(
  execFileSync(process.execPath, [join(root, 'bench/src/performance-text.ts')], { encoding: 'utf8' }),
);
/** Help output by command, such as `run list`, without the subcommands of separate programs. */
const said = cli.helps;
const helps = new Map<string, Help>();
function helpOf(words: readonly string[]): Help {
  const key = words.join(' ');
  const known = helps.get(key);
  if (known) return known;
  const text = helpText(words);
  const help = {
    // Help output lists commands in groups with headings. Entries under `Arguments:` are not commands.
    verbs: text
      .split(/^(?=\S.*:$)/m)
      .filter((section) => !/^(Usage|Arguments|Examples?):/.test(section))
      .flatMap((section) => [...section.matchAll(/^ {2}([a-z][a-z-]*)\b/gm)].map((match) => match[1] as string)),
    flags: new Set(text.match(/(?<![\w-])--[a-z][a-z0-9-]*/g) ?? []),
  };
  helps.set(key, help);
  return help;
}

function helpText(words: readonly string[]): string {
  const known = said[words.join(' ')];
  if (known !== undefined) return known;
  try {
    return execFileSync(muster, [...words, '--help'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    // Prints only the message of the program, because the stack of this process does not help.
    console.error(`muster ${words.join(' ')} --help failed:\n${(error as { stderr: string }).stderr}`);
    process.exit(1);
  }
}

const flagsOf = (words: readonly string[]): string[] =>
  words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.split('=')[0] as string);

function musterFault(words: readonly string[]): string | null {
  const verb: string[] = [];
  let help = helpOf([]);
  // These are separate programs without subcommands, and `muster --help` does not list their flags.
  if (words[0] === 'orchestrator' && ['init', 'share', 'join'].includes(words[1] ?? '')) {
    const { flags } = helpOf(words.slice(0, 2));
    const unknown = flagsOf(words).filter((flag) => !flags.has(flag));
    return unknown.length === 0 ? null : `\`muster orchestrator ${words[1]}\` has no ${unknown.join(', ')}`;
  }
  for (const word of words) {
    if (help.verbs.length === 0 || !/^[a-z][a-z-]*$/.test(word)) break;
    if (!help.verbs.includes(word))
      return `there is no verb \`muster ${[...verb, word].join(' ')}\`; choose from: ${help.verbs.join(', ')}`;
    verb.push(word);
    help = helpOf(verb);
  }
  const global = helpOf([]).flags;
  const unknown = flagsOf(words).filter((flag) => !help.flags.has(flag) && !global.has(flag));
  return unknown.length === 0 ? null : `\`muster ${verb.join(' ')}\` has no ${unknown.join(', ')}`;
}

const scripts: Record<string, string> = JSON.parse(read('package.json')).scripts;

function commandFault(words: readonly string[]): string | null {
  const [program, ...rest] = words;
  // A word with `…` is a placeholder, as in `npm run …`.
  if (words.some((word) => word.includes('…'))) return null;
  if (program === 'muster') return musterFault(rest);
  if (program === 'npx') return rest[0] === 'muster' ? musterFault(rest.slice(1)) : null;
  const [verb] = rest;
  const script = verb === 'run' ? rest.find((word, index) => index > 0 && !word.startsWith('-')) : verb;
  if (verb === 'run' || verb === 'start' || verb === 'test') {
    if (script !== undefined && !(script in scripts)) return `package.json has no script \`${script}\``;
    const unknown = script === 'start' ? flagsOf(rest).filter((flag) => !startHelp.includes(flag)) : [];
    if (unknown.length > 0) return `\`npm start\` has no ${unknown.join(', ')}`;
  }
  return null;
}

function moduleFaults(source: string): string[] {
  const parsed = parseModule(source);
  return parsed.ok ? [] : parsed.faults.map(({ line, message }) => `line ${line} of the module: ${message}`);
}

const generated: Record<string, () => string> = {
  'docs/errors.md': () => {
    const rows = Object.entries(errorKinds).map(
      ([code, { status, retry, title, remedy }]) =>
        `| \`${code}\` | ${status} | ${retry ? 'yes' : 'no'} | ${title} | ${remedy} |`,
    );
    return [
      '# Errors',
      '',
      'Every error of the API, by its `code`. "Again" says whether the same request may succeed later without any change.',
      '`node tools/checks/docs.ts --write` generates this page.',
      '',
      '| code | status | again | title | what to do |',
      '|---|---|---|---|---|',
      ...rows,
      '',
    ].join('\n');
  },
  'docs/audit-events.md': () =>
    eventsPage(
      filesBelow('orchestrator/src', '.ts').flatMap((path) => (path.endsWith('.test.ts') ? [] : [read(path)])),
    ),
  'docs/module-kinds.md': kindsPage,
  'docs/expressions.md': expressionsPage,
  'docs/performance.md': () => performance.page,
  ...Object.fromEntries(
    filesBelow('docs/recipes', '.yml')
      .filter((path) => !path.startsWith('docs/recipes/tests/'))
      .map((path) => [pageOf(path), () => recipe(path)]),
  ),
  'docs/cli-reference.md': () => cliPage(cli, read('docs/api.md')),
  'docs/cli-output.schema.json': () => `${JSON.stringify(cli.document, null, 2)}\n`,
};

function pageOf(module: string): string {
  return module.replace(/\.yml$/, '.md');
}

function recipe(module: string): string {
  return recipePage(read(pageOf(module)), basename(module), read(module));
}

function main(): void {
  const faults: string[] = [];
  for (const [path, make] of Object.entries(generated)) {
    const text = make();
    if (process.argv.includes('--write')) writeFileSync(join(root, path), text);
    else if (!existsSync(join(root, path)) || read(path) !== text)
      faults.push(`${path}:1  the page is out of date; run: node tools/checks/docs.ts --write`);
  }
  for (const page of orphans())
    faults.push(`docs/${page}:1  no section lists this page; add it to tools/site/outline.ts`);
  for (const bench of performance.withoutSection)
    faults.push(`docs/performance.md:1  add a section ### ${bench} that explains what limits its figures`);
  for (const page of filesBelow('', '.md')) {
    const text = read(page);
    const say = (line: number, fault: string | null) => {
      if (fault !== null) faults.push(`${page}:${line}  ${fault}`);
    };
    for (const { target, line } of linksOf(text)) say(line, linkFault(page, target));
    for (const { target, line } of codePathsOf(text)) say(line, codePathFault(page, target));
    for (const { words, line } of commandsOf(text, ['npm', 'npx', 'muster'])) say(line, commandFault(words));
    for (const { language, source, line } of blocksOf(text))
      if (/^ya?ml$/.test(language) && /^resources:/m.test(source))
        for (const fault of moduleFaults(source)) say(line, fault);
  }
  // tools/docs/site-modules.test.ts checks the sites, whose modules have files.
  const isSingleFile = (path: string) => !path.includes('/tests/') && !path.startsWith('examples/sites/');
  for (const example of filesBelow('examples', '.yml').filter(isSingleFile))
    for (const fault of moduleFaults(read(example))) faults.push(`${example}  ${fault}`);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}

main();
