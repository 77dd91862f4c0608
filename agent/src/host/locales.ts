import { canonicalLocale } from '@muster/protocol/module';
import { HostFailure } from './failure.ts';
import { failureText, lastLine } from './processes/failure-text.ts';
import { missingProgram } from './processes/find-program.ts';
import { type Runner, runInEnglish } from './processes/run-command.ts';
import { exists, readText } from './read-system.ts';
import { removeEntry } from './trees/entries.ts';

/** Lists, generates, and removes the locales of glibc. */

export interface Locales {
  /** Canonical names of the locales that programs can use. */
  available: ReadonlySet<string>;
  /** Names in the locale archive, where `localedef` adds locales. Includes aliases. */
  archived: readonly string[];
}

/** A locale that `localedef` can generate. */
export interface LocaleSource {
  name: string;
  charset: string;
}

/** The file of all generated locales. */
export const archive = '/usr/lib/locale/locale-archive';
const localData = '/usr/local/share/i18n';
const data = [localData, '/usr/share/i18n'];
const aliases = '/usr/share/locale/locale.alias';

/** Reports whether the C library itself contains the locale. */
export const isBuiltIn = (name: string): boolean => ['C', 'POSIX', 'C.utf8'].includes(canonicalLocale(name));

/**
 * Returns the character set of a locale: the one in its name or, if the name has none, the one in a list.
 * @param supported text of /usr/share/i18n/SUPPORTED: in each line, a name and a character set
 */
export function charsetOf(name: string, supported: string | null): string | null {
  const inName = /\.([^@]*)/.exec(name)?.[1];
  if (inName !== undefined) return /^utf-?8$/i.test(inName) ? 'UTF-8' : inName;
  for (const line of supported?.split('\n') ?? []) {
    const [supportedName, charset] = line.trim().split(/[ \t]+/);
    if (supportedName === name && charset !== undefined) return charset;
  }
  return null;
}

export const readSupported = (): string | null => readText('/usr/share/i18n/SUPPORTED');

/** Returns the name of the locale's definition, or null if this machine does not have it. */
export function definitionOf(name: string): string | null {
  const plain = name.replace(/\.[^@]*/, '');
  return [name, plain].find((each) => data.some((folder) => exists(`${folder}/locales/${each}`))) ?? null;
}

export const hasCharset = (charset: string): boolean =>
  data.some((folder) => ['', '.gz'].some((suffix) => exists(`${folder}/charmaps/${charset}${suffix}`)));

const limits = { timeLimit: 10 * 60_000, outputCap: 1024 * 1024 };

/** @throws HostFailure if a program fails */
export async function readLocales(runner: Runner): Promise<Locales> {
  // Other C libraries have no such programs.
  if (missingLocaleProgram() !== null) return { available: new Set(), archived: [] };
  const [available, archived] = [
    await list('locale', ['-a'], runner),
    await list('localedef', ['--list-archive'], runner),
  ];
  return { available: new Set(available.map(canonicalLocale)), archived };
}

export const missingLocaleProgram = (): string | null =>
  ['locale', 'localedef'].find((program) => missingProgram(program) !== null) ?? null;

async function list(program: string, args: readonly string[], runner: Runner): Promise<string[]> {
  const result = await runInEnglish(program, args, limits, runner);
  if (result.exitCode === 0 && !result.truncated) return result.stdout.split('\n').filter((line) => line !== '');
  throw new HostFailure(
    `cannot list the locales of the machine: ${failureText(result, program, limits.timeLimit, lastLine)}`,
  );
}

/**
 * Adds one locale to the archive, as locale-gen does for each of its entries. Other locales stay available, even if the
 * program is killed.
 * @throws HostFailure with the last line that localedef printed
 */
export async function generateLocale({ name, charset }: LocaleSource, runner: Runner): Promise<void> {
  const definition = definitionOf(name);
  if (definition === null) throw new HostFailure(`there is no definition of the locale ${name} on this machine`);
  // `-c` ignores warnings, which many definitions cause, so the exit code does not show whether it succeeded.
  const args = ['-i', definition, '-c', '-f', charset, ...(exists(aliases) ? ['-A', aliases] : []), name];
  // Without I18NPATH, localedef searches only /usr/share/i18n. It expands a compressed character set only by its name.
  const searching = { ...limits, environment: { I18NPATH: localData } };
  const result = await runInEnglish('localedef', args, searching, runner);
  if ((await readLocales(runner)).available.has(canonicalLocale(name))) return;
  throw new HostFailure(
    `cannot generate the locale ${name}: ${failureText(result, 'localedef', limits.timeLimit, lastLine)}`,
  );
}

/**
 * Removes a locale and its aliases from the archive, and the archive if no locale is left.
 * @throws HostFailure with the last line that localedef printed
 */
export async function removeLocale(locale: LocaleSource, { archived }: Locales, runner: Runner): Promise<void> {
  const names = archivedNames(locale, archived, readText(aliases));
  if (names.length > 0) {
    const result = await runInEnglish('localedef', ['--delete-from-archive', ...names], limits, runner);
    if (result.exitCode !== 0)
      throw new HostFailure(
        `cannot remove the locale ${locale.name}: ${failureText(result, 'localedef', limits.timeLimit, lastLine)}`,
      );
  }
  if ((await readLocales(runner)).archived.length === 0) removeEntry(archive);
}

/**
 * Returns the names under which the archive contains a locale: its own, with and without a character set, and aliases
 * such as `german`.
 * @param aliasText text of locale.alias: in each line, an alias and a name
 */
export function archivedNames(
  { name, charset }: LocaleSource,
  archived: readonly string[],
  aliasText: string | null,
): string[] {
  const [base = '', modifier] = name.split('@');
  const full = `${base.replace(/\..*/, '')}.${charset}${modifier === undefined ? '' : `@${modifier}`}`;
  const own = new Set([canonicalLocale(name), canonicalLocale(full)]);
  const pairs = (aliasText ?? '').split('\n').map((line) => line.trim().split(/[ \t]+/));
  const named = new Set(
    pairs.flatMap(([alias, target]) =>
      alias !== undefined && target !== undefined && own.has(canonicalLocale(target)) ? [alias] : [],
    ),
  );
  return archived.filter((each) => !each.startsWith('-') && (own.has(canonicalLocale(each)) || named.has(each)));
}
