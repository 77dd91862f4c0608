// Checks names against docs/glossary.md: noun folders, command-line nouns, API tags, and event areas. Checks file names
// against tools/checks/nouns.ts: a noun has the same file name in every layer.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventTypes, tagDescriptions } from '@muster/protocol/http';
import { root } from '../suite/cli.ts';
import { namesIn, nounFaults } from './nouns.ts';

/** Folders whose child folders are named after nouns. */
const nounFolders = ['orchestrator/src/domain', 'console/src/pages', 'cli/src/verbs'];
/** Child folders that are not nouns. */
const notNouns = new Set(['operation-end', 'shared']);

const page = 'docs/glossary.md';

/** Reads the terms in the glossary. A row may have several spellings, separated by commas. */
export function termsOf(markdown: string): { terms: Set<string>; repeated: string[]; misplaced: string[] } {
  const rows = [...markdown.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map(([, names = '']) => names).slice(1);
  const all = rows.flatMap((names) => names.split(', ')).map(normalized);
  const firsts = rows.map((names) => names.split(', ')[0] as string);
  return {
    terms: new Set(all),
    repeated: all.filter((name, index) => all.indexOf(name) !== index),
    misplaced: firsts.filter((name, index) => index > 0 && name.localeCompare(firsts[index - 1] as string, 'en') < 0),
  };
}

const normalized = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, ' ');

/** Reports whether a name is a term or the plural of a term, such as `enrolment-tokens`. */
export function isTerm(name: string, terms: ReadonlySet<string>): boolean {
  const words = normalized(name);
  return terms.has(words) || (words.endsWith('s') && terms.has(words.slice(0, -1)));
}

function names(): [place: string, names: string[]][] {
  const commandNouns = readFileSync(join(root, 'cli/src/program/nouns.ts'), 'utf8');
  return [
    ...nounFolders.map((folder): [string, string[]] => [
      folder,
      readdirSync(join(root, folder), { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && !notNouns.has(entry.name))
        .map(({ name }) => name),
    ]),
    ['command line', [...commandNouns.matchAll(/^ {4}name: '([^']+)'/gm)].map(([, name = '']) => name)],
    ['API tags', Object.keys(tagDescriptions)],
    ['event areas', [...new Set(Object.keys(eventTypes).map((type) => type.split('.')[0] as string))]],
  ];
}

if (import.meta.main) {
  const { terms, repeated, misplaced } = termsOf(readFileSync(join(root, page), 'utf8'));
  const faults = [
    ...repeated.map((name) => `${page}  ${name} has two definitions; keep one`),
    ...nounFaults(namesIn(root)),
    ...misplaced.map((name) => `${page}  ${name} is out of alphabetical order`),
    ...names().flatMap(([path, list]) =>
      list
        .filter((name) => !isTerm(name, terms))
        .map((name) => `${path}: ${name} is not a term in ${page}; use one that is, or define it there`),
    ),
  ];
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
