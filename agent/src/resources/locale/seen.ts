import { posix } from 'node:path';
import { canonicalLocale, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import {
  charsetOf,
  definitionOf,
  hasCharset,
  isBuiltIn,
  type Locales,
  missingLocaleProgram,
  readLocales,
  readSupported,
} from '../../host/locales.ts';
import { exists, linkTarget } from '../../host/read-system.ts';
import type { Database, Machine } from '../provider/provider.ts';
import { type LinesBefore, type PlacedLine, placedLine } from '../text-edit/placed-lines.ts';
import { linesOf, lookAtText, type SeenText } from '../text-edit/text-file.ts';
import { entriesOf, langIn, langLines, localeGen } from './lines.ts';

export type Declared = ResolvedResource<'locale'>;

export interface SeenLocale {
  /** The file /etc/locale.gen, and its lines for the locale, including lines that are comments. */
  list: Omit<SeenText, 'content'>;
  entries: PlacedLine[];
  /** Null if the character set is not known. */
  charset: string | null;
  /** Whether programs can use the locale. */
  available: boolean;
  /** Whether the locale is in the archive, so that it can be removed. */
  archived: boolean;
  /** The file with the default locale, and its lines that set LANG. */
  settings: Omit<SeenText, 'content'>;
  lang: PlacedLine[];
  /** Whether the file with the default locale exists and is empty. */
  isEmptySettings: boolean;
  /** Whether LANG is the locale of another resource. */
  isLangOfOther: boolean;
  /** How to enable the machine to generate the locale; null if it already can. */
  missing: string | null;
}

/** State before the agent's first change. */
export type LocaleBefore = {
  entries: LinesBefore;
  available: boolean;
  /** Null if the agent has not managed LANG. */
  lang: LinesBefore | null;
};

export const locales: Database<Locales> = { name: 'locales', read: readLocales };

export const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

const debianSettings = '/etc/default/locale';
const systemdSettings = '/etc/locale.conf';

/** Returns the path of the file with the default locale. On newer Debian releases, the first path is a link. */
export function settingsPath(): string {
  const target = linkTarget(debianSettings);
  if (target !== null) return posix.resolve('/etc/default', target);
  return !exists(debianSettings) && exists(systemdSettings) ? systemdSettings : debianSettings;
}

export const settingsPaths = [debianSettings, systemdSettings];

/** Returns the resource with a path in its body, where the functions in text-edit expect it. */
export const inFile = (resource: Declared, path: string) => ({ ...resource, body: { ...resource.body, path } });

export async function look(resource: Declared, machine: Machine): Promise<SeenLocale> {
  const { name, charset: declared } = resource.body;
  const { content: listed, ...list } = lookAtText(inFile(resource, localeGen), machine);
  const { content: set, ...settings } = lookAtText(inFile(resource, settingsPath()), machine);
  const [entryLines, settingLines] = [linesOf({ ...list, content: listed }), linesOf({ ...settings, content: set })];
  const { available, archived } = await machine.database(locales);
  const charset = declared ?? charsetOf(name, readSupported());
  const lang = langIn(settingLines);
  return {
    list,
    entries: entriesOf(name, entryLines).map((index) => placedLine(entryLines, index)),
    charset,
    available: isBuiltIn(name) || available.has(canonicalLocale(name)),
    archived: archived.some((each) => canonicalLocale(each) === canonicalLocale(name)),
    settings,
    lang: langLines(settingLines).map((index) => placedLine(settingLines, index)),
    isEmptySettings: settings.type === 'file' && settingLines.length === 0,
    isLangOfOther: lang !== null && otherDefaults(resource, machine).has(canonicalLocale(lang)),
    missing: missingFor(name, charset, list.type),
  };
}

/** Returns the locales that other resources declare as the default. */
const otherDefaults = ({ key }: Declared, machine: Machine): Set<string> =>
  new Set(
    machine.resourcesOf('locale').flatMap((other) => {
      const { name, default: isDefault, ensure } = other.body as ResourceBodies['locale'];
      return other.key !== key && isDefault === true && ensure !== 'absent' ? [canonicalLocale(name)] : [];
    }),
  );

function missingFor(name: string, charset: string | null, list: SeenText['type']): string | null {
  const program = missingLocaleProgram();
  if (program !== null) return `there is no program ${program}; this kind needs the GNU C library`;
  if (list === 'absent') return `there is no file ${localeGen}; install the package \`locales\``;
  if (charset === null)
    return `there is no locale ${name} in /usr/share/i18n/SUPPORTED; check the name, or declare \`charset\``;
  if (definitionOf(name) === null || !hasCharset(charset))
    return `there is no definition of the locale ${name} with the character set ${charset} in /usr/share/i18n; check the name, or install the package \`locales\``;
  return null;
}
