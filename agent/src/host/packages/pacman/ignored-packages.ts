import type { PackageLock, PackageLocks } from '../package-locks.ts';

/** Parses and edits `IgnorePkg` in the section `[options]` of pacman's configuration. */

// A line may end with a carriage return, which pacman ignores.
const option = /^(\s*IgnorePkg\s*=)(.*)$/s;

/** Returns the index of each line with `IgnorePkg`. Other sections have no such option. */
function optionLines(lines: readonly string[]): number[] {
  let isOptions = false;
  return lines.flatMap((line, at) => {
    const section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1];
    if (section !== undefined) isOptions = section === 'options';
    return isOptions && option.test(line) ? [at] : [];
  });
}

const wordsOf = (line: string): string[] => (option.exec(line)?.[2] ?? '').split(/\s+/).filter(Boolean);

/** Returns the line without the name, or null if nothing else remains. */
function without(line: string, name: string): string | null {
  if (wordsOf(line).every((word) => word === name)) return null;
  const [, start = '', words = ''] = option.exec(line) ?? [];
  const kept = words
    .split(/(\s+)/)
    .filter((part, at, parts) => part !== name && !(/^\s+$/.test(part) && parts[at + 1] === name));
  return start + kept.join('');
}

const names = (text: string): string[] => {
  const lines = text.split('\n');
  return optionLines(lines).flatMap((at) => wordsOf(lines[at] ?? ''));
};

const of = (text: string, name: string): PackageLock[] => {
  const lines = text.split('\n');
  return optionLines(lines).flatMap((at) => {
    const line = lines[at] ?? '';
    return wordsOf(line).includes(name) ? [{ at, line }] : [];
  });
};

function replaced(text: string, name: string, locks: readonly PackageLock[]): string {
  const own = new Set(of(text, name).map(({ at }) => at));
  const lines = text.split('\n').flatMap((line, at) => (own.has(at) ? (without(line, name) ?? []) : line));
  for (const { at, line } of locks) {
    const rest = without(line, name);
    if (rest !== null && lines[at] === rest) lines[at] = line;
    else insert(lines, rest === null ? line : `IgnorePkg = ${name}`, at);
  }
  return lines.join('\n');
}

/** Inserts a line at its former place, or after the header if that is no longer in the section `[options]`. */
function insert(lines: string[], line: string, at: number): void {
  const isHeader = (text: string): boolean => /^\s*\[options\]\s*$/.test(text);
  const sectionAt = lines.slice(0, Math.max(0, at)).findLast((text) => /^\s*\[.*\]\s*$/.test(text));
  if (sectionAt !== undefined && isHeader(sectionAt) && at < lines.length) {
    lines.splice(at, 0, line);
    return;
  }
  const header = lines.findIndex(isHeader);
  if (header < 0) lines.unshift('[options]', line);
  else lines.splice(header + 1, 0, line);
}

/** The packages that pacman does not upgrade. They have no version: pacman keeps the installed one. */
export const ignoredPackages: PackageLocks = {
  title: '/etc/pacman.conf',
  file: () => '/etc/pacman.conf',
  isDeletedIfEmpty: false,
  isUsed: () => true,
  names,
  of,
  replaced,
  entries: (name, _version, former) => (former.length > 0 ? former : [{ at: -1, line: `IgnorePkg = ${name}` }]),
};
