/** Reading what dnf prints. Pure; the texts are dnf's own, in the language `C`. */

const maxLines = 6;
const noise =
  /^(Last metadata expiration check|Unable to detect release version|Dependencies resolved|Complete!|Operation aborted|rpm: |\s*$)/;

/** What went wrong as a whole. For people. */
export function dnfComplaint(output: string): string {
  const lines = output.split('\n');
  const found: string[] = [];
  lines.forEach((line, at) => {
    if (/^No match for argument: /.test(line) || / already locked by \d+$/.test(line)) found.push(line.trim());
    const error = /^Error: ?(.*)$/.exec(line);
    if (error === null || /^Unable to find a match: /.test(error[1] as string)) return;
    if (error[1] !== '') found.push((error[1] as string).trim());
    // What is wrong is told below, indented.
    for (let i = at + 1; /^ +\S/.test(lines[i] ?? ''); i++) found.push((lines[i] as string).trim().replace(/^- /, ''));
  });
  if (found.length > 0) return [...new Set(found)].slice(0, maxLines).join('; ');
  return (
    lines
      .filter((line) => !noise.test(line))
      .at(-1)
      ?.trim()
      .slice(0, 500) ?? 'it said nothing'
  );
}

/**
 * What rpm said about a script of one package: which failed, how, and the last lines that it printed.
 * @param name without architecture
 * @returns null when none failed
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

/** Whether another process had the packages for itself. */
export const isDnfLocked = (output: string): boolean =>
  /already locked by \d+$/m.test(output) ||
  /^ *The application with PID \d+ is: /m.test(output) ||
  /can't create transaction lock on /.test(output);

/** What a transaction would take away: what was asked for, what depends on that, and what nothing needs then. */
export interface Removal {
  asked: string[];
  dependent: string[];
  unused: string[];
}

/** @param output of `dnf --assumeno remove …` */
export function parseRemoval(output: string): Removal {
  const removal: Removal = { asked: [], dependent: [], unused: [] };
  let into: string[] | null = null;
  for (const line of output.split('\n')) {
    if (line === 'Removing:') into = removal.asked;
    else if (line === 'Removing dependent packages:') into = removal.dependent;
    else if (line === 'Removing unused dependencies:') into = removal.unused;
    else if (!line.startsWith(' ')) into = null;
    else {
      // Long names have a line of their own, the rest comes below.
      const name = /^ (\S+)(?:\s|$)/.exec(line)?.[1];
      if (name !== undefined) into?.push(name);
    }
  }
  return removal;
}
