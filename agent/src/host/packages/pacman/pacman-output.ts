import type { NamedVersion } from '../installed-packages.ts';
import { parseVersion } from '../rpm-version.ts';

/** Pure functions that parse the output of pacman in the locale `C`. */

const maxLines = 6;
const details = [
  /^:: ((?:unable to satisfy dependency|removing|installing) .+)$/,
  /^:: (.+ and .+ are in conflict)/,
  /^(\S+: .+ exists in filesystem.*)$/,
  /^warning: (.+ is designated as a HoldPkg)\.$/,
];

/** Summarizes for operators why a transaction failed. */
export function pacmanComplaint(output: string): string {
  if (isPacmanLocked(output))
    return 'the database of pacman is locked; if no pacman runs, remove /var/lib/pacman/db.lck, which a killed pacman leaves';
  const lines = output.split('\n').map((line) => line.trim());
  const specific = lines.flatMap((line) => {
    for (const pattern of details) {
      const [, said] = pattern.exec(line) ?? [];
      if (said !== undefined) return [said];
    }
    return [];
  });
  const errors = lines.flatMap((line) => /^error: (.+)$/.exec(line)?.[1] ?? []);
  const found = specific.length > 0 ? specific : errors;
  if (found.length > 0) return [...new Set(found)].slice(0, maxLines).join('; ');
  return lines.filter(Boolean).at(-1)?.slice(0, 500) ?? 'it printed nothing';
}

/** Reports whether the command failed because another process held the lock. */
export const isPacmanLocked = (output: string): boolean =>
  /^error: (?:could not lock database: File exists|.*\(unable to lock database\))$/m.test(output);

const operation = /^(?:installing|upgrading|downgrading|reinstalling|removing) (\S+)\.\.\.$/;

/** Reports whether pacman stopped before its first change. */
export const isPacmanRefusal = (output: string): boolean => !output.split('\n').some((line) => operation.test(line));

/**
 * Finds a package's failed script, with the last lines that it printed. pacman continues after such a failure.
 * @returns null if none failed
 */
export function pacmanScriptComplaint(output: string, name: string): string | null {
  const lines = output.split('\n').map((line) => line.trim());
  const begin = lines.findIndex((line) => operation.exec(line)?.[1] === name);
  if (begin < 0) return null;
  const rest = lines.slice(begin + 1);
  const end = rest.findIndex((line) => operation.test(line) || line.startsWith(':: '));
  const own = end < 0 ? rest : rest.slice(0, end);
  const failed = own.indexOf('error: command failed to execute correctly');
  if (failed < 0) return null;
  const said = own.slice(0, failed).filter(Boolean).slice(-3);
  return said.length === 0 ? 'its script failed' : `its script failed: ${said.join(' / ').slice(0, 900)}`;
}

// pacman has no packages of several architectures.
const named = (name: string, version: string): NamedVersion => ({ name, arch: 'noarch', ...parseVersion(version) });

/** @param text output of `pacman --query`: one line for each package, with its name and version */
export const parseInstalled = (text: string): NamedVersion[] =>
  text.split('\n').flatMap((line) => {
    const [, name, version] = /^(\S+) (\S+)$/.exec(line) ?? [];
    return name === undefined || version === undefined ? [] : [named(name, version)];
  });

export interface Listed extends NamedVersion {
  repository: string;
}

/**
 * @param text output of `pacman --sync --list`: repository, name, and version
 * @returns the packages in the order of the repositories in the configuration
 */
export const parseList = (text: string): Listed[] =>
  text.split('\n').flatMap((line) => {
    const [, repository, name, version] = /^(\S+) (\S+) (\S+)(?: \[.*\])?$/.exec(line) ?? [];
    if (repository === undefined || name === undefined || version === undefined) return [];
    return [{ repository, ...named(name, version) }];
  });

/** @param text output of a dry run with the format `%n`; questions of pacman precede the names */
export const parseNames = (text: string): string[] =>
  text.split('\n').filter((line) => /^[A-Za-z0-9_@+][A-Za-z0-9_@.+-]*$/.test(line));
