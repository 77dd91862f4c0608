// Writes the skeleton of a kind or a noun:
//
//   npm run new -- kind NAME
//   npm run new -- noun NAME
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Skeleton } from './edit.ts';
import { kindSkeleton } from './kind.ts';
import { nounSkeleton } from './noun.ts';

const usage = `Usage:
  npm run new -- kind NAME   schema, provider, tests, and contract subject of a kind of resources
    --about TEXT     description of one resource, for the documentation, such as "a file, or a symbolic link"
    --like TEXT      counterparts in Salt, Puppet, and Ansible, such as "file.managed | file | copy, template"
  npm run new -- noun NAME   routes, handlers, domain, table, queries, CLI verbs, and console pages; NAME in the plural
    --about TEXT     completes "see …" in help texts and documentation, such as "the tags in use"
    --example NAME   name of an example object, for documentation and tests
    --term TEXT      definition of the term in the glossary, in the singular
    --no-table       the database does not store the objects
    --writable       Admins create and remove objects, which have a description; with an event for each change

NAME has lower-case words joined by hyphens, such as dnf-module. The generated tests fail with "fill in".`;

const options = {
  about: { type: 'string' },
  like: { type: 'string' },
  example: { type: 'string', default: 'example' },
  table: { type: 'boolean', default: true },
  term: { type: 'string' },
  writable: { type: 'boolean', default: false },
} as const;
const namePattern = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/**
 * Applies a skeleton. Writes nothing if an edit fails.
 * @returns paths of the changed files, relative to the root
 * @throws Error that names the file to correct
 */
export function write(root: string, { edits }: Skeleton): string[] {
  const texts = new Map<string, string>();
  for (const { path, after } of edits) {
    const file = join(root, path);
    texts.set(path, after(texts.get(path) ?? (existsSync(file) ? readFileSync(file, 'utf8') : null)));
  }
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const paths = [...texts.keys()];
  execFileSync(join(root, 'node_modules/.bin/biome'), ['check', '--write', '--files-ignore-unknown=true', ...paths], {
    cwd: root,
    stdio: 'pipe',
  });
  return paths;
}

/** Returns the skeleton for the arguments; null if the usage does not allow them. */
export function skeletonOf(root: string, args: readonly string[]): Skeleton | null {
  let given: ReturnType<typeof parse>;
  try {
    given = parse(args);
  } catch {
    return null;
  }
  const { values, positionals } = given;
  const [what, name = '', ...rest] = positionals;
  if (rest.length > 0 || !namePattern.test(name) || !namePattern.test(values.example)) return null;
  const { about, like, ...ofNoun } = values;
  if (what === 'kind') {
    if (args.some((arg) => /^--(no-table|example|term|writable)\b/.test(arg)) || (like ?? '||').split('|').length !== 3)
      return null;
    return kindSkeleton(name, { about: about ?? 'fill in: description of one resource', like: like ?? 'fill in | |' });
  }
  if (what !== 'noun' || !name.endsWith('s') || like !== undefined || (values.writable && !values.table)) return null;
  const texts = {
    about: about ?? `fill in: what ${name} are`,
    term: values.term ?? `fill in: what one of the ${name} is`,
  };
  return nounSkeleton(root, name, { ...ofNoun, ...texts });
}

const parse = (args: readonly string[]) =>
  parseArgs({ args: [...args], options, allowPositionals: true, allowNegative: true });

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '../..');
  const skeleton = skeletonOf(root, process.argv.slice(2));
  if (skeleton === null) {
    console.error(usage);
    process.exitCode = 2;
  } else {
    try {
      for (const path of write(root, skeleton)) console.log(`wrote  ${path}`);
      console.log('\nNext:');
      for (const step of skeleton.next) console.log(`- ${step}`);
    } catch (error) {
      console.error((error as Error).message);
      process.exitCode = 1;
    }
  }
}
