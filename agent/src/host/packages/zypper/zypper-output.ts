import { isRpmLocked, scriptComplaint } from '../dnf-output.ts';
import type { NamedVersion } from '../installed-packages.ts';
import { parseVersion } from '../rpm-version.ts';

/** Pure functions that parse the output of zypper in the locale `C`. */

const maxLines = 6;
const complaints = [
  /^Problem: (?:\d+: )?(.+)$/,
  /^(No provider of '.+' found)\.$/,
  /^(Package '.+' not found)\.$/,
  /^(Repository '.+' is invalid)\.$/,
  /^(?:Error: )?(?:Subprocess failed\. Error: )?(RPM failed: .+)$/,
  /^(System management is locked by the application with pid .+)\.$/,
  /^[Ee]rror: (?!Failed dependencies:)(.+)$/,
  /^(.+ is needed by \(installed\) .+)$/,
];
const noise =
  /^(Loading |Reading |Resolving |Retrieving |Checking |Choose from |Choose the |Abort, retry|rpm: |\( *\d+\/\d+\)|\s*$)/;

/** Summarizes for operators why a transaction failed. */
export function zypperComplaint(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  const found = lines.flatMap((line) => {
    for (const pattern of complaints) {
      const [, said] = pattern.exec(line) ?? [];
      if (said !== undefined) return [said];
    }
    return [];
  });
  if (found.length > 0) return [...new Set(found)].slice(0, maxLines).join('; ');
  return (
    lines
      .filter((line) => !noise.test(line))
      .at(-1)
      ?.slice(0, 500) ?? 'it printed nothing'
  );
}

/** Reports whether the command failed because another process held the lock of zypper or rpm. */
export const isZypperLocked = (output: string): boolean =>
  isRpmLocked(output) ||
  /^\W*System management is locked by the application with pid /m.test(output.replace(/<[^>]*>/g, ''));

/** Finds a package's failed script in the output of rpm, which zypper prints. See `scriptComplaint`. */
export const zypperScriptComplaint = (output: string, name: string): string | null =>
  scriptComplaint(
    output
      .replace(/^Error: Subprocess failed\. Error: RPM failed: /gm, `${beginning}\n`)
      .replace(/^Additional rpm output:$/gm, beginning)
      // A warning that only Debian's rpm prints.
      .replace(/^rpm: .*\n/gm, ''),
    name,
  );

/** A line at which the output of a script begins, as in the output of dnf. */
const beginning = 'Running scriptlet:';

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const decoded = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => entities[name] ?? '');

/** Returns the text of XML output, for `zypperComplaint`. */
export const textOfXml = (xml: string): string => decoded(xml.replace(/<[^>]*>/g, '\n'));

function attributesOf(tag: string): Record<string, string> {
  const pairs = [...tag.matchAll(/ ([a-z-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, decoded(value)]);
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** A package that zypper lists: installed, or offered by a repository. */
interface Listed extends NamedVersion {
  /** Name of the repository; null if the output does not name one. */
  repository: string | null;
}

function listed(xml: string): Listed[] {
  return [...xml.matchAll(/<solvable ([^>]*)>/g)].flatMap(([, attributes = '']) => {
    const { name, edition, arch, repository = null, kind, type } = attributesOf(` ${attributes}`);
    if (name === undefined || edition === undefined || arch === undefined) return [];
    return (kind ?? type) === 'package' ? [{ name, arch, ...parseVersion(edition), repository }] : [];
  });
}

/** @param xml output of `zypper --xmlout search --details` */
export const parseOffers = (xml: string): NamedVersion[] =>
  listed(xml).flatMap(({ repository, ...found }) =>
    // zypper lists installed packages that no repository offers under this name.
    repository === null || repository === '(System Packages)' ? [] : [found],
  );

/** @param xml output of `zypper --xmlout search` without details */
export const parseNames = (xml: string): string[] => [
  ...new Set([...xml.matchAll(/<solvable ([^>]*)>/g)].flatMap(([, tag = '']) => attributesOf(` ${tag}`).name ?? [])),
];

/** @param xml output of `zypper --xmlout remove --dry-run` */
export const parseRemovals = (xml: string): NamedVersion[] =>
  [...xml.matchAll(/<to-remove\b[^>]*>(.*?)<\/to-remove>/gs)].flatMap(([, list = '']) =>
    listed(list).map(({ repository: _, ...found }) => found),
  );
