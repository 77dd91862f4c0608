/** A file next to `module.yml` in a module's folder. */
export interface ModuleFile {
  /** Path in the module's folder, such as `files/vhost.conf`. */
  readonly path: string;
  /** SHA-256 of the content, in lower-case hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  readonly executable: boolean;
}

/** Limits for a module's folder. */
export const folderLimits = {
  /** Total size of all files, in bytes. */
  bytes: 512 * 1024 * 1024,
  files: 10_000,
  /** Maximum length of one name in a path, in bytes. Common file systems have this limit. */
  nameBytes: 255,
  pathBytes: 1024,
  depth: 32,
  /** Maximum size of a template file, in bytes. */
  templateBytes: 256 * 1024,
  /** Total size of a module's template files, in bytes. */
  templatesBytes: 8 * 1024 * 1024,
} as const;

/** File name of the module itself in its folder. */
export const moduleFileName = 'module.yml';

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/**
 * Checks a path in a module's folder: it must be relative, in canonical form, and safe on every file system.
 * @returns the error, worded to complete a sentence about the path; undefined if there is none
 */
export function filePathFault(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (path.startsWith('/')) return 'must be relative to the folder of the module, without "/" at its start';
  if (/[\x00-\x1f\x7f\\]/.test(path)) return 'must not contain control characters or "\\"';
  if (!path.isWellFormed() || path.normalize('NFC') !== path) return 'must be in Unicode Normalization Form C (NFC)';
  if (bytesOf(path) > folderLimits.pathBytes) return `must have at most ${folderLimits.pathBytes} bytes`;
  const names = path.split('/');
  if (names.length > folderLimits.depth) return `must have at most ${folderLimits.depth} levels`;
  for (const name of names) {
    if (name === '') return 'must not contain "//" or end with "/"';
    if (name === '.' || name === '..') return `must not contain "${name}"`;
    // Git treats a folder of this name as a repository, and runs commands from its configuration.
    if (/^\.?git(~\d+)?$/i.test(name) && name.toLowerCase() !== 'git') return `must not contain "${name}"`;
    if (bytesOf(name) > folderLimits.nameBytes) return `has a name with more than ${folderLimits.nameBytes} bytes`;
  }
  return undefined;
}

/** Files by path. */
export type ModuleFiles = ReadonlyMap<string, ModuleFile>;
