/** A file to write or to change. `after` gets the present text; null: there is no such file. */
export interface Edit {
  readonly path: string;
  after(before: string | null): string;
}

/** The files of one generator, and the work that is left to a person. */
export interface Skeleton {
  readonly edits: readonly Edit[];
  readonly next: readonly string[];
}

/** Writes a new file. @throws Error if it exists */
export const create = (path: string, text: string): Edit => ({
  path,
  after(before) {
    if (before !== null) throw new Error(`${path} exists already; choose another name`);
    return text;
  },
});

/**
 * Inserts lines into a file.
 * @param anchors pairs: the text that must be there once, and the lines to insert before it
 * @throws Error that names the anchor if it is missing or ambiguous
 */
export const insert = (path: string, ...anchors: readonly (readonly [before: string, lines: string])[]): Edit => ({
  path,
  after(before) {
    if (before === null) throw new Error(`${path} is missing; correct its path in tools/new`);
    return anchors.reduce((text, [anchor, lines]) => {
      if (text.split(anchor).length !== 2)
        throw new Error(`${path} must hold ${JSON.stringify(anchor)} once; correct the anchor in tools/new`);
      return text.replace(anchor, () => `${lines}${anchor}`);
    }, before);
  },
});

/** `dnf-module` → `dnfModule` */
export const camelCase = (name: string): string => name.replaceAll(/-(.)/g, (_, char: string) => char.toUpperCase());
/** `dnf-module` → `DnfModule` */
export const pascalCase = (name: string): string => camelCase(`-${name}`);
