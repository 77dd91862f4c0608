/** Pure functions that parse the output of apt and dpkg in the locale `C`. */

export interface AptPolicy {
  /** The version that apt would install; null if no source offers one. */
  candidate: string | null;
  offered: string[];
}

/**
 * @param text output of `apt-cache policy NAME…`
 * @returns policies by name, without the machine's own architecture. Names that no source contains are missing.
 */
export function parsePolicy(text: string): Map<string, AptPolicy> {
  const policies = new Map<string, AptPolicy>();
  let current: AptPolicy | null = null;
  let version: string | null = null;
  for (const line of text.split('\n')) {
    const header = /^(\S+):$/.exec(line);
    if (header !== null) {
      current = { candidate: null, offered: [] };
      version = null;
      policies.set(header[1] as string, current);
      continue;
    }
    if (current === null) continue;
    const candidate = /^ {2}Candidate: (\S+)$/.exec(line);
    if (candidate !== null && candidate[1] !== '(none)') current.candidate = candidate[1] as string;
    const listed = /^ (?:\*\*\*| {3}) (\S+) -?\d+$/.exec(line);
    if (listed !== null) version = listed[1] as string;
    const source = /^ {8,}-?\d+ (\S.*)$/.exec(line);
    if (source === null || version === null || source[1] === '/var/lib/dpkg/status') continue;
    if (!current.offered.includes(version)) current.offered.push(version);
  }
  return policies;
}

/**
 * @param text output of `apt-cache showpkg NAME`
 * @returns names of the packages that provide it
 */
export function parseProviders(text: string): string[] {
  const from = text.indexOf('Reverse Provides:');
  if (from < 0) return [];
  const names = text
    .slice(from)
    .split('\n')
    .slice(1)
    .map((line) => line.split(' ')[0] ?? '')
    .filter((name) => /^[a-z0-9]/.test(name));
  return [...new Set(names)].sort();
}

/** Result of a dry run. Names include an architecture if it is not the machine's own. */
export interface Simulated {
  installed: string[];
  removed: string[];
}

/** @param text output of `apt-get --simulate …` */
export function parseSimulation(text: string): Simulated {
  const named = (verb: string): string[] => [
    ...new Set([...text.matchAll(new RegExp(`^${verb} (\\S+) `, 'gm'))].map((match) => match[1] as string)),
  ];
  return { installed: named('Inst'), removed: [...new Set([...named('Remv'), ...named('Purg')])] };
}

const maxLines = 6;

/** Returns apt's error lines, without those that only report that another error occurred. */
function errorLines(output: string): string[] {
  const errors = [...output.matchAll(/^E: (.*)$/gm)].map((match) => (match[1] as string).trim());
  const specific = errors.filter(
    (line) => !/^(Sub-process .* returned an error|Some index files failed|Some packages could not be)/.test(line),
  );
  return [...new Set(specific.length > 0 ? specific : errors)];
}

/** Returns the unmet dependencies, such as `foo : Depends: bar but it is not installable`. */
function unmetLines(output: string): string[] {
  const unmet = /^The following packages have unmet dependencies:\n((?: .*\n)+)/m.exec(output);
  return (unmet?.[1] ?? '')
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter((line) => line !== '');
}

/** Removes credentials from URLs, so that no password is reported. */
export const withoutCredentials = (text: string): string => text.replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1');

/** Summarizes for operators why a transaction failed. */
export function aptComplaint(rawOutput: string): string {
  const output = withoutCredentials(rawOutput);
  const removed = /^The following packages will be REMOVED:\n((?: {2}.*\n)+)/m.exec(output)?.[1]?.trim().split(/\s+/);
  if (removed !== undefined && /^E: Packages need to be removed but remove is disabled/m.test(output))
    return `it conflicts with installed packages: ${removed.join(', ')}; declare them absent first`;
  const waited = [...output.matchAll(/^Waiting for cache lock: (Could not get lock .*? held by process .*?)\.*$/gm)].at(
    -1,
  );
  if (waited !== undefined && isLocked(output)) return `${waited[1]}; it was not released in time`;
  const lines = [...unmetLines(output), ...errorLines(output)];
  const dpkg = [...output.matchAll(/^dpkg: error: (.*)$/gm)].map((match) => (match[1] as string).trim());
  const all = [...lines, ...dpkg];
  if (all.length > 0) return all.slice(0, maxLines).join('; ');
  return (
    output
      .trimEnd()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .at(-1)
      ?.trim()
      .slice(0, 500) ?? 'it printed nothing'
  );
}

/**
 * Finds dpkg's error about one package: the reason, and the preceding lines, which the package's script printed.
 * @param name without architecture
 * @returns null if dpkg reported no error about it
 */
export function dpkgComplaint(output: string, name: string): string | null {
  const lines = output.split('\n');
  const at = lines.findIndex((line) => {
    const match = /^dpkg: error processing (?:package|archive) (\S+) \(--[a-z]+\):$/.exec(line.trim());
    if (match === null) return false;
    const subject = (match[1] as string).split('/').at(-1) ?? '';
    return subject.split(':')[0] === name || subject.startsWith(`${name}_`);
  });
  if (at < 0) return null;
  const reason = (lines[at + 1] ?? '').trim();
  const before: string[] = [];
  for (let i = at - 1; i >= 0 && before.length < 3; i--) {
    const line = (lines[i] as string).trim();
    if (
      /^(Setting up|Preparing to unpack|Unpacking|Removing|Purging|Processing triggers|\(Reading database|dpkg: error)/.test(
        line,
      )
    )
      break;
    if (line !== '') before.unshift(line.slice(0, 300));
  }
  return before.length === 0 ? reason : `${reason}: ${before.join(' / ')}`;
}

/** Reports whether the command failed because another process held a lock. */
export const isLocked = (output: string): boolean =>
  /^E: (Could not get lock|Unable to (acquire|lock))/m.test(output) ||
  /^dpkg: error: dpkg (frontend )?(lock|database lock|status database is locked)/m.test(output) ||
  /^dpkg: error: .*was locked by another process/m.test(output);
