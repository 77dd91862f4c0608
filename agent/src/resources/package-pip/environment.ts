import { posix } from 'node:path';
import { HostFailure } from '../../host/failure.ts';
import { inspect, listDirectory } from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { readStart } from '../../host/files/read-start.ts';
import { linkStatus, realPath } from '../../host/read-system.ts';
import { expectTrustedFile, trustedPath } from '../archive/place.ts';

/**
 * `partial`: the agent has not finished creating or removing the virtual environment. `other`: something that is not a
 * virtual environment.
 */
export type EnvironmentState = 'absent' | 'empty' | 'partial' | 'present' | 'other';

/**
 * Names in a virtual environment. `partial` exists while the agent creates or removes the environment, `created` exists
 * in an environment that the agent created, and lists the environment's original content. `work` holds copies of `bin`
 * and `lib` while pip runs.
 */
export const marks = { partial: '.muster-partial', created: '.muster-created', work: '.muster-work' } as const;

const maxConfig = 64 * 1024;
const maxInventory = 4 * 1024 * 1024;
/** Maximum number of files in an environment that is compared with its inventory. */
const maxFiles = 100_000;

export function environmentState(walk: PathWalk, environment: string): EnvironmentState {
  const { type } = inspect(walk, environment, false);
  if (type === 'absent') return 'absent';
  if (type !== 'directory') return 'other';
  if (linkStatus(`${environment}/${marks.partial}`)?.isFile() === true) return 'partial';
  if (linkStatus(`${environment}/pyvenv.cfg`)?.isFile() === true) return 'present';
  return listDirectory(walk, environment, 0) === null ? 'other' : 'empty';
}

/** Parses the lines `KEY = VALUE` of pyvenv.cfg. Keys are in lower case. */
export function parseConfig(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split('\n', 1000)) {
    const sign = line.indexOf('=');
    if (sign !== -1) values.set(line.slice(0, sign).trim().toLowerCase(), line.slice(sign + 1).trim());
  }
  return values;
}

const configOf = (walk: PathWalk, environment: string): Map<string, string> =>
  parseConfig(readStart(walk, `${environment}/pyvenv.cfg`, maxConfig)?.toString('utf8') ?? '');

/** Returns the version in pyvenv.cfg, such as `3.11.2`; empty if it has none. */
function fullPythonOf(walk: PathWalk, environment: string): string {
  const config = configOf(walk, environment);
  return (config.get('version') ?? config.get('version_info') ?? '').slice(0, 32);
}

/** Returns the version of Python in a virtual environment, such as `3.11.2`; null if it is unknown. */
export const pythonIn = (walk: PathWalk, environment: string): string | null =>
  /^\d{1,3}\.\d{1,3}(?:\.\d{1,3})?/.exec(fullPythonOf(walk, environment))?.[0] ?? null;

/** Returns the first two parts of the version in pyvenv.cfg, such as `3.11`. */
const pythonOf = (walk: PathWalk, environment: string): string =>
  fullPythonOf(walk, environment).split('.').slice(0, 2).join('.');

/**
 * Returns the reason why a virtual environment is unusable, such as an upgrade of Python; null if it is usable.
 * @param root the environment, or the copies in it
 * @param site path of `site-packages` below `root`
 */
export function whyBroken(walk: PathWalk, environment: string, root: string, site: string | null): string | null {
  // Reveals at most whether a path exists, and only to someone who wrote the path into the link.
  const program = realPath(`${root}/bin/python3`);
  if (program === null) return 'bin/python3 leads to no program';
  const version = /^python(3\.\d{1,3})$/.exec(posix.basename(program))?.[1] ?? pythonOf(walk, environment);
  const folder = site?.split('/')[1];
  return folder === undefined || !/^3\.\d{1,3}$/.test(version) || folder === `python${version}`
    ? null
    : `bin/python3 is Python ${version}, but the packages are in lib/${folder}`;
}

/**
 * Returns the path of `site-packages` below a virtual environment, such as lib/python3.11/site-packages; null if there
 * is none.
 * @param root the environment, or the copies in the environment
 */
export function sitePackagesOf(walk: PathWalk, environment: string, root: string): string | null {
  if (inspect(walk, `${root}/lib`, false).type !== 'directory') return null;
  const found = (listDirectory(walk, `${root}/lib`, 1000) ?? []).filter((name) => /^python3\.\d{1,3}$/.test(name));
  const expected = `python${pythonOf(walk, environment)}`;
  const name = found.includes(expected) ? expected : found.length === 1 ? found[0] : undefined;
  if (name === undefined) return null;
  const site = `lib/${name}/site-packages`;
  return inspect(walk, `${root}/${site}`, false).type === 'directory' ? site : null;
}

/**
 * Reports whether the agent created a virtual environment, and nothing has been added to it since. Bytecode, which
 * programs write, does not count.
 */
export function isBare(walk: PathWalk, environment: string): boolean {
  const inventory = readStart(walk, `${environment}/${marks.created}`, maxInventory);
  if (inventory === null) return false;
  const listed = new Set(inventory.toString('utf8').split('\n'));
  const own = new Set<string>([marks.created, ...workNames]);
  let count = 0;
  const holdsOnlyListed = (folder: string): boolean => {
    const names = listDirectory(walk, posix.join(environment, folder), maxFiles);
    return (
      names?.every((name) => {
        const path = posix.join(folder, name);
        if (++count > maxFiles) return false;
        if (own.has(path)) return true;
        const isDirectory = linkStatus(`${environment}/${path}`)?.isDirectory() === true;
        const isBytecode = isDirectory ? name === '__pycache__' : posix.basename(folder) === '__pycache__';
        if (isBytecode ? !isDirectory && !name.endsWith('.pyc') : !listed.has(`./${path}`)) return false;
        return !isDirectory || holdsOnlyListed(path);
      }) ?? false
    );
  };
  return holdsOnlyListed('');
}

/** Names of the copies: incomplete, complete, and no longer needed. */
const workNames: readonly string[] = [`${marks.work}.new`, marks.work, `${marks.work}.done`];

/** Reports whether copies exist, which means that a run of pip was interrupted. */
export const isInterrupted = (environment: string): boolean =>
  workNames.some((name) => linkStatus(`${environment}/${name}`) !== null);

/** Reports whether the copies are complete. Complete copies are the last state that is known to be intact. */
export const hasCopies = (environment: string): boolean =>
  linkStatus(`${environment}/${marks.work}`)?.isDirectory() === true;

/**
 * Returns why another user could redirect pip that runs as root in the virtual environment; null if none could.
 * @param root the environment, or the copies in it
 * @param site path of `site-packages` below `root`
 */
export function whyUnsafe(walk: PathWalk, environment: string, root: string, site: string | null): string | null {
  try {
    const folders = ['bin', 'lib', ...(site === null ? [] : [posix.dirname(site), site])];
    const paths = new Set([environment, root].flatMap((base) => [base, ...folders.map((name) => `${base}/${name}`)]));
    for (const path of [posix.dirname(environment), ...paths]) trustedPath(walk, path === '/' ? '' : path, 'null');
    expectTrustedFile(walk, `${environment}/pyvenv.cfg`, 'Python');
    for (const base of new Set([environment, root]))
      for (const name of ['python', 'python3']) expectTrustedProgram(walk, `${base}/bin/${name}`);
    const config = configOf(walk, environment);
    const home = config.get('home');
    if (home?.startsWith('/') === true) trustedPath(walk, home, 'null');
    if (config.get('include-system-site-packages')?.toLowerCase() === 'true')
      throw new HostFailure(`${environment} includes the system packages, which root must not trust`);
    if (site !== null) expectTrustedPaths(walk, `${root}/${site}`);
    return null;
  } catch (error) {
    if (error instanceof HostFailure) return `${error.message}, or declare the owner of ${environment} as \`user\``;
    throw error;
  }
}

/** @throws HostFailure if another user can change the program, or a link that leads to it */
function expectTrustedProgram(walk: PathWalk, program: string): void {
  let path = program;
  for (let links = 0; links < 10; links++) {
    const folder = trustedPath(walk, posix.dirname(path), 'null');
    if (folder === null) return;
    const found = inspect(walk, path, false);
    if (found.type !== 'symlink') {
      expectTrustedFile(walk, path, 'pip');
      return;
    }
    path = posix.resolve(folder, found.target);
  }
  throw new HostFailure(`${program} leads through too many links`);
}

/**
 * Checks the directories that `.pth` files list, because Python searches them.
 * @throws HostFailure if another user can change one of them
 */
function expectTrustedPaths(walk: PathWalk, site: string): void {
  const names = (listDirectory(walk, site, maxFiles) ?? []).filter((name) => name.endsWith('.pth'));
  if (names.length > 100) throw new HostFailure(`${site} has more than 100 files named .pth`);
  for (const name of names) {
    expectTrustedFile(walk, `${site}/${name}`, 'Python');
    const content = readStart(walk, `${site}/${name}`, maxConfig + 1);
    const lines = (content?.toString('utf8') ?? '').split('\n', 1001);
    if ((content?.length ?? 0) > maxConfig || lines.length > 1000) throw new HostFailure(`${site}/${name} is too long`);
    for (const line of lines.map((one) => one.trim())) {
      if (line === '' || line.startsWith('#') || /^import[ \t]/.test(line)) continue;
      if (line.includes('\0') || line.length > 4095) throw new HostFailure(`${site}/${name} is not a list of paths`);
      trustedPath(walk, posix.resolve(site, line), 'null');
    }
  }
}
