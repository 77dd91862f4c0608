import type { Removal } from './removal.ts';

/** Pure functions that parse the output of dnf in the locale `C`. */

const maxLines = 6;
const noise =
  /^(Last metadata expiration check|Unable to detect release version|Dependencies resolved|Complete!|Operation aborted|rpm: |\s*$)/;

/** Summarizes for operators why a transaction failed. */
export function dnfComplaint(output: string): string {
  const lines = output.split('\n');
  const found: string[] = [];
  lines.forEach((line, at) => {
    if (/^No match for argument: /.test(line) || / already locked by \d+$/.test(line)) found.push(line.trim());
    const error = /^Error: ?(.*)$/.exec(line);
    if (error === null || /^Unable to find a match: /.test(error[1] as string)) return;
    const next = lines[at + 1] ?? '';
    // The details of a group or module follow in one line that is not indented.
    const rest = error[1]?.endsWith(':') === true && /^\S/.test(next) && !noise.test(next) ? ` ${next.trim()}` : '';
    if (error[1] !== '') found.push(`${(error[1] as string).trim()}${rest}`);
    // The details follow in indented lines.
    for (let i = at + 1; /^ +\S/.test(lines[i] ?? ''); i++) found.push((lines[i] as string).trim().replace(/^- /, ''));
  });
  if (found.length > 0) return [...new Set(found)].slice(0, maxLines).join('; ');
  return (
    lines
      .filter((line) => !noise.test(line))
      .at(-1)
      ?.trim()
      .slice(0, 500) ?? 'it printed nothing'
  );
}

/**
 * Finds a package's failed script: its type, the error, and the last lines that it printed.
 * @param name without architecture
 * @returns null if no script failed
 */
export function scriptComplaint(output: string, name: string): string | null {
  const lines = output.split('\n');
  const at = lines.findIndex((line) => {
    const [, subject = ''] = /^(?:error|warning): %\w+\((\S+)\) scriptlet failed/.exec(line) ?? [];
    return subject.startsWith(`${name}-`) && /^[^-]*-[^-]*$/.test(subject.slice(name.length + 1));
  });
  if (at < 0) return null;
  const [, script, how] = /: (%\w+)\(\S+\) (scriptlet failed.*)$/.exec(lines[at] as string) ?? [];
  const before: string[] = [];
  for (let i = at - 1; i >= 0 && before.length < 3; i--) {
    const line = (lines[i] as string).trim();
    if (
      /^(Preparing|Installing|Upgrading|Downgrading|Reinstalling|Erasing|Removing|Cleanup|Verifying|Running scriptlet|Obsoleting) *:/.test(
        line,
      )
    )
      break;
    if (line !== '') before.unshift(line.slice(0, 300));
  }
  const reason = `its ${script} ${how}`;
  return before.length === 0 ? reason : `${reason}: ${before.join(' / ')}`;
}

/** Reports whether rpm failed because another process held the lock of its database. */
export const isRpmLocked = (output: string): boolean => /can't create transaction lock on /.test(output);

/** Reports whether the command failed because another process held the lock of dnf or rpm. */
export const isDnfLocked = (output: string): boolean =>
  /already locked by \d+$/m.test(output) || /^ *The application with PID \d+ is: /m.test(output) || isRpmLocked(output);

/** Reports whether dnf stopped before its first change. */
export const isDnfRefusal = (output: string): boolean => !/^Running transaction$/m.test(output);

const removalTable = /^(Removing|Removing dependent packages|Removing unused dependencies):\n((?: .*\n)+)/gm;
// dnf prints the other columns on the next line if the name is long.
const removalRow = /^ (\S+)\s+(\S+)\s+(\S+)[^\S\n]+\S.*$/gm;

/** @param output of `dnf --assumeno remove …` */
export function parseRemoval(output: string): Removal {
  const removal: Removal = { requested: [], dependent: [], unused: [] };
  for (const [, title, rows = ''] of output.matchAll(removalTable)) {
    const into =
      title === 'Removing' ? removal.requested : title?.includes('dependent') ? removal.dependent : removal.unused;
    for (const [, name = '', arch, version] of rows.matchAll(removalRow))
      into.push({ name, spec: `${name}-${version}.${arch}` });
  }
  return removal;
}
