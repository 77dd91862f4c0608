/** A file to create or change. `after` receives the current text; null if the file does not exist. */
export interface Edit {
  readonly path: string;
  after(before: string | null): string;
}

/** A generator's edits, and the remaining manual steps. */
export interface Skeleton {
  readonly edits: readonly Edit[];
  readonly next: readonly string[];
}

/**
 * Creates a file.
 * @throws Error if it exists
 */
export const create = (path: string, text: string): Edit => ({
  path,
  after(before) {
    if (before !== null) throw new Error(`${path} already exists; choose another name`);
    return text;
  },
});

/**
 * Replaces parts of a file.
 * @param pairs strings, each of which the file must contain exactly once, with their replacements
 * @throws Error that names the string if it is missing or ambiguous
 */
export const substitute = (path: string, ...pairs: readonly (readonly [from: string, to: string])[]): Edit => ({
  path,
  after(before) {
    if (before === null) throw new Error(`${path} is missing; correct its path in tools/new`);
    return pairs.reduce((text, [from, to]) => {
      if (text.split(from).length !== 2)
        throw new Error(`${path} must contain ${JSON.stringify(from)} exactly once; correct the anchor in tools/new`);
      return text.replace(from, () => to);
    }, before);
  },
});

/** Inserts lines into a file, each before a string that the file must contain exactly once. */
export const insert = (path: string, ...anchors: readonly (readonly [before: string, lines: string])[]): Edit =>
  substitute(path, ...anchors.map(([anchor, lines]) => [anchor, `${lines}${anchor}`] as const));

/** Appends text to a file that an earlier edit created. */
export const append = (path: string, text: string): Edit => ({
  path,
  after(before) {
    if (before === null) throw new Error(`${path} is missing; correct its path in tools/new`);
    return `${before}${text}`;
  },
});

/**
 * Appends a line to a section of the newest release in the changelog, and adds the section if it is missing.
 * @throws Error if the file has no release
 */
export const addChange = (section: string, line: string): Edit => ({
  path: 'CHANGELOG.md',
  after(before) {
    const [introduction, release, ...older] = (before ?? '').split(/^(?=## )/m);
    if (release === undefined) throw new Error('CHANGELOG.md has no release; correct tools/new');
    const sections = release.trimEnd().split(/\n+(?=### )/);
    const at = sections.findIndex((text) => text.startsWith(`### ${section}\n`));
    const changed =
      at === -1
        ? [...sections, `### ${section}\n${line}`]
        : sections.map((text, i) => (i === at ? `${text}\n${line}` : text));
    const end = older.length > 0 ? '\n\n' : release.endsWith('\n') ? '\n' : '';
    return [introduction, changed.join('\n\n'), end, ...older].join('');
  },
});

/** Returns the text as a string literal. */
export const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** Converts `dnf-module` to `dnfModule`. */
export const camelCase = (name: string): string => name.replaceAll(/-(.)/g, (_, char: string) => char.toUpperCase());
/** Converts `dnf-module` to `DnfModule`. */
export const pascalCase = (name: string): string => camelCase(`-${name}`);
