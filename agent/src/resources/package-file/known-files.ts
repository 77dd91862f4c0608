import type { FileContents } from '../../host/packages/package-file.ts';
import type { Machine } from '../provider/provider.ts';

/**
 * Records which package and version each package file contains, by hash, so that a plan can determine whether a package
 * is installed as declared without downloading its file again. Without the record, the file is downloaded once more.
 */

const fileName = 'package-files.json';
/** Maximum number of files to record. */
const maxFiles = 500;

type Known = Record<string, FileContents>;

/** Returns the recorded contents of the file with this hash, or null if unknown. */
export const knownContents = (sha256: string, machine: Pick<Machine, 'privateFiles'>): FileContents | null =>
  read(machine)[sha256] ?? null;

export function remember(sha256: string, contents: FileContents, machine: Pick<Machine, 'privateFiles'>): void {
  const { [sha256]: known, ...others } = read(machine);
  const { name, version, architecture } = contents;
  if (known?.name === name && known.version === version && known.architecture === architecture) return;
  const newest = Object.entries(others).slice(1 - maxFiles);
  const all = Object.fromEntries([...newest, [sha256, { name, version, architecture }]]);
  machine.privateFiles.write(fileName, JSON.stringify(all));
}

/** A damaged record counts as empty. */
function read({ privateFiles }: Pick<Machine, 'privateFiles'>): Known {
  try {
    const found: unknown = JSON.parse(privateFiles.read(fileName) ?? '{}');
    return Object.fromEntries(Object.entries(found as object).filter(([, contents]) => isContents(contents)));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return {};
    throw error;
  }
}

const isContents = (value: unknown): value is FileContents =>
  typeof value === 'object' &&
  value !== null &&
  ['name', 'version', 'architecture'].every((field) => typeof (value as Record<string, unknown>)[field] === 'string');
