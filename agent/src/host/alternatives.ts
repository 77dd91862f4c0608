import { HostFailure } from './failure.ts';
import { lastLine } from './processes/failure-text.ts';
import { type CommandResult, type Runner, runInEnglish } from './processes/run-command.ts';
import { exists, linkStatus, linkTarget } from './read-system.ts';

/** Reads and sets link groups of dpkg's update-alternatives(1). */

/** A link group. Its slave links, such as manual pages, follow the selected candidate. */
export interface LinkGroup {
  /** In mode `auto`, update-alternatives chooses the candidate with the highest priority. */
  mode: 'auto' | 'manual';
  /** The link's target, or null if there is no link. */
  target: string | null;
  /** The candidate with the highest priority, or null if there are no candidates. */
  best: string | null;
  candidates: string[];
  /** How each candidate is registered, by its path. */
  registered: Record<string, Registration>;
  /**
   * Names of slave links that do not belong to `target`, for example after an interrupted change, or whose generic link,
   * such as /usr/share/man/man1/editor.1.gz, is missing.
   */
  brokenSlaves: string[];
  /**
   * The generic name of the group, such as /usr/bin/editor. update-alternatives creates a missing link, but does not
   * replace another file.
   */
  link: { path: string; state: 'linked' | 'missing' | 'other file' };
}

/** The priority of a candidate, and its slave links, sorted by name. */
export type Registration = { priority: number; slaves: Slave[] };

/** A link that follows the choice, its name in the group, and the file of the candidate. */
export type Slave = { link: string; name: string; path: string };

export type Choice = { mode: 'auto' } | { mode: 'manual'; path: string };

const directory = '/etc/alternatives';
const timeLimit = 30_000;
/** Maximum output size, in bytes. The description of a large group such as `java` takes about 50 KB. */
const outputCap = 1024 * 1024;

/**
 * Returns the paths of the link and of the file in which dpkg records the mode. Every change to the group changes one
 * of them.
 */
export const groupFiles = (name: string): string[] => [`${directory}/${name}`, `/var/lib/dpkg/alternatives/${name}`];

/**
 * Reads a link group.
 * @param name a validated name
 * @returns null if there is no such group
 * @throws HostFailure if update-alternatives is missing or, as on RHEL, does not support `--query`
 */
export async function readGroup(name: string, runner: Runner): Promise<LinkGroup | null> {
  const result = await run(['--query', name], runner);
  if (result.exitCode === 0 && !result.truncated)
    return parseGroup(result.stdout, { slave: currentSlave, link: linkTarget, isThere: exists });
  // The exit code is 2 for every error, so the message must be checked.
  if (/: no alternatives for /.test(result.stderr)) return null;
  const reason = result.truncated ? 'it printed more than 1 MiB' : reasonOf(result);
  throw new HostFailure(`cannot read the link group ${name} with dpkg's update-alternatives: ${reason}`);
}

/**
 * Reports whether the path of a link is occupied by anything other than the link itself. update-alternatives
 * irreversibly replaces any symbolic link there, and only warns about a file.
 * @param name the name of the group or slave
 */
export function isForeignLink(path: string, name: string): boolean {
  const status = linkStatus(path);
  return status !== null && linkTarget(path) !== `${directory}/${name}`;
}

/**
 * Selects a candidate, or restores the automatic mode.
 * @throws HostFailure with the last line that the program printed
 */
export async function choose(name: string, choice: Choice, runner: Runner): Promise<void> {
  const result = await run(choice.mode === 'auto' ? ['--auto', name] : ['--set', name, choice.path], runner);
  if (result.exitCode !== 0) throw new HostFailure(`cannot change the link group ${name}: ${reasonOf(result)}`);
}

/**
 * Registers a candidate. Creates the group if it is missing.
 * @throws HostFailure with the last line that the program printed
 */
export async function register(
  { name, link, path }: { name: string; link: string; path: string },
  { priority, slaves }: Registration,
  runner: Runner,
): Promise<void> {
  const more = slaves.flatMap((slave) => ['--slave', slave.link, slave.name, slave.path]);
  const result = await run(['--install', link, name, path, String(priority), ...more], runner);
  if (result.exitCode !== 0)
    throw new HostFailure(`cannot register ${path} in the link group ${name}: ${reasonOf(result)}`);
}

/**
 * Removes the registration of a candidate, and the group if it has no other candidate.
 * @throws HostFailure with the last line that the program printed
 */
export async function unregister(name: string, path: string, runner: Runner): Promise<void> {
  const result = await run(['--remove', name, path], runner);
  if (result.exitCode !== 0)
    throw new HostFailure(`cannot remove ${path} from the link group ${name}: ${reasonOf(result)}`);
}

const run = (args: readonly string[], runner: Runner): Promise<CommandResult> =>
  runInEnglish('update-alternatives', args, { timeLimit, outputCap }, runner);

function reasonOf({ stderr, exitCode, signal, timedOut }: CommandResult): string {
  if (timedOut) return `no answer within ${timeLimit / 1000} s`;
  const line = lastLine(stderr);
  return line === '' ? `update-alternatives exited with ${exitCode ?? signal}` : line;
}

/** Returns the target of a slave link, and whether a file exists at the intended target. */
type ReadSlave = (name: string, path: string | null) => { target: string | null; isThere: boolean };
interface ReadLinks {
  slave: ReadSlave;
  /** Returns the target of a symbolic link, or null if the path is not a symbolic link. */
  link(path: string): string | null;
  isThere(path: string): boolean;
}
/** Returns slave links in the order of {@link Registration}. */
export const byName = (slaves: readonly Slave[]): Slave[] =>
  [...slaves].sort((one, other) => (one.name < other.name ? -1 : 1));

const currentSlave: ReadSlave = (name, path) => ({
  target: linkTarget(`${directory}/${name}`),
  isThere: path !== null && exists(path),
});

/**
 * Parses output of `update-alternatives --query`: a paragraph about the group, and one for each candidate.
 * @throws HostFailure if the output has a different format
 */
export function parseGroup(text: string, read: ReadLinks): LinkGroup {
  const [group, ...candidates] = text
    .trimEnd()
    .split(/\n\n+/)
    .map((paragraph) => ({
      fields: new Map([...paragraph.matchAll(/^([A-Z]\w*): (.*)$/gm)].map(([, key, value]) => [key, value])),
      slaves: new Map([...paragraph.matchAll(/^ (\S+) (.+)$/gm)].map(([, name = '', path = '']) => [name, path])),
    }));
  const mode = group?.fields.get('Status');
  if (group === undefined || (mode !== 'auto' && mode !== 'manual'))
    throw new HostFailure('update-alternatives printed a link group in an unknown format');
  const name = group.fields.get('Name');
  const path = group.fields.get('Link');
  if (name === undefined || path === undefined)
    throw new HostFailure('update-alternatives printed a link group without a name or link');
  const pathIn = (key: string): string | null => {
    const found = group.fields.get(key);
    return found === undefined || found === 'none' ? null : found;
  };
  const target = pathIn('Value');
  const chosen = candidates.find(({ fields }) => fields.get('Alternative') === target);
  const brokenSlaves = [...group.slaves].flatMap(([slaveName, link]) => {
    const slavePath = chosen?.slaves.get(slaveName) ?? null;
    const slave = read.slave(slaveName, slavePath);
    // update-alternatives creates no slave link to a missing file.
    const isBroken = slave.target !== (slave.isThere ? slavePath : null);
    const isUnlinked = slave.isThere && read.link(link) === null && !read.isThere(link);
    return isBroken || isUnlinked ? [slaveName] : [];
  });
  const registered = candidates.flatMap(({ fields, slaves }): [string, Registration][] => {
    const candidate = fields.get('Alternative');
    if (candidate === undefined) return [];
    const own = [...slaves].map(([slaveName, slavePath]) => ({
      ...{ link: group.slaves.get(slaveName) ?? '', name: slaveName, path: slavePath },
    }));
    return [[candidate, { priority: Number(fields.get('Priority') ?? 0), slaves: byName(own) }]];
  });
  const linked = read.link(path);
  // A dangling link also occupies the path.
  const isTaken = linked !== null || read.isThere(path);
  return {
    mode,
    target,
    best: pathIn('Best'),
    candidates: candidates.flatMap(({ fields }) => fields.get('Alternative') ?? []),
    registered: Object.fromEntries(registered),
    brokenSlaves: chosen === undefined ? [] : brokenSlaves,
    link: { path, state: linked === `${directory}/${name}` ? 'linked' : isTaken ? 'other file' : 'missing' },
  };
}
