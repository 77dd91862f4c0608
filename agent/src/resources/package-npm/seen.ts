import { posix } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { exists, fileStatus, linkTarget, namesIn } from '../../host/read-system.ts';
import { expectTrustedFile, trustedPath } from '../archive/place.ts';
import type { Difference, Machine } from '../provider/provider.ts';
import { prerequisitesOf } from '../script/prerequisites.ts';

export type Declared = ResolvedResource<'package-npm'>;

export interface SeenNpmPackage {
  /** Installed version; null if the package is not installed. */
  version: string | null;
  /** Whether `npm link` put a symbolic link in place of the package. */
  isLink: boolean;
  /** Whether an installation was interrupted, so that files may be missing. */
  isInterrupted: boolean;
  /** Commands of the installed package that have no link in the directory `bin`. */
  unlinked: string[];
  /** Names of links in `bin` that lead into the package although it is not installed. */
  dangling: string[];
  /** Directories that do not exist and that an installation creates, outermost first. */
  absentDirectories: string[];
  /** Empty directories in which npm installs. */
  emptyDirectories: string[];
  /** Why root must not install at the prefix; null if it may. */
  unsafe: string | null;
  missing: NonNullable<Difference['awaits']>;
}

/** The prefix of npm packages that are installed for all users. */
const usualPrefix = '/usr/local';

export const prefixOf = ({ body }: Declared): string => body.prefix ?? usualPrefix;
const modulesOf = (resource: Declared): string => `${prefixOf(resource)}/lib/node_modules`;
const packageOf = (resource: Declared): string => `${modulesOf(resource)}/${resource.body.name}`;
export const manifestOf = (resource: Declared): string => `${packageOf(resource)}/package.json`;

/** Returns the prerequisites that npm needs to run. */
export const needsOf = ({ body: { user } }: Declared) => ({ program: 'npm', ...(user == null ? {} : { user }) });

/** Returns the paths that exist only while an installation is in progress, or after it was interrupted. */
export function workPaths(resource: Declared): string[] {
  const path = packageOf(resource);
  const work = `${posix.dirname(path)}/.muster-${posix.basename(path)}`;
  return [work, `${work}.new`, `${work}.done`];
}

/** Returns the directories in which npm installs, outermost first. */
export function installDirectories(resource: Declared): string[] {
  const prefix = prefixOf(resource);
  const scope = resource.body.name.includes('/') ? [posix.dirname(packageOf(resource))] : [];
  const manuals = ['share', 'share/man', ...[1, 2, 3, 4, 5, 6, 7, 8].map((section) => `share/man/man${section}`)];
  return [
    ...ancestorsOf(prefix),
    ...[prefix, `${prefix}/bin`, `${prefix}/lib`, modulesOf(resource), ...scope],
    ...manuals.map((name) => `${prefix}/${name}`),
  ];
}

/** Returns the directories above a path, outermost first, without the root directory. */
function ancestorsOf(path: string): string[] {
  const parts = posix.dirname(path).split('/').filter(Boolean);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
}

export async function look(resource: Declared, machine: Machine): Promise<SeenNpmPackage> {
  const { user } = resource.body;
  const path = packageOf(resource);
  const directories = installDirectories(resource);
  const found = inspect(machine.walk, path, false);
  const manifest = found.type === 'directory' ? readManifest(resource, machine) : null;
  const { account, missing } = await prerequisitesOf(needsOf(resource), machine);
  return {
    version: manifest?.version ?? null,
    isLink: found.type === 'symlink',
    isInterrupted: workPaths(resource).some(exists) || (found.type === 'directory' && manifest === null),
    unlinked: (manifest?.commands ?? []).filter((command) => !isLinked(resource, command, machine)),
    dangling: manifest === null && found.type !== 'symlink' ? linksInto(resource) : [],
    absentDirectories: directories.filter((directory) => !exists(directory)),
    emptyDirectories: directories.filter((directory) => exists(directory) && namesIn(directory).length === 0),
    unsafe: user == null || account?.uid === 0 ? whyUnsafe(directories, prefixOf(resource), machine) : null,
    missing,
  };
}

function readManifest(resource: Declared, machine: Machine): { version: string; commands: string[] } | null {
  const file = inspect(machine.walk, manifestOf(resource), true);
  const text = file.type === 'file' ? file.content?.bytes?.toString('utf8') : undefined;
  const hasFile = (name: string) => fileStatus(`${packageOf(resource)}/${name}`)?.isFile === true;
  return text === undefined ? null : parseManifest(text, resource.body.name, hasFile);
}

/**
 * @param text content of package.json
 * @param name name of the package
 * @param hasFile reports whether the package contains a file
 * @returns the version and the commands that npm links; null if the text is not the manifest of this package
 */
export function parseManifest(
  text: string,
  name: string,
  hasFile: (name: string) => boolean,
): { version: string; commands: string[] } | null {
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof manifest !== 'object' || manifest === null) return null;
  const { version, bin } = manifest as Record<string, unknown>;
  if (typeof version !== 'string' || !/^[0-9A-Za-z.+-]{1,256}$/.test(version)) return null;
  // npm uses only the last part of a name, and links only files that the package contains.
  const commands = filesOf(bin, name)
    .filter(([, file]) => typeof file === 'string' && hasFile(posix.join('/', file.replaceAll('\\', '/')).slice(1)))
    .map(([command]) => posix.basename(command))
    .filter((command) => /^\w[\w.@+-]*$/.test(command));
  return { version, commands: [...new Set(commands)].sort() };
}

/** Returns the commands of the field `bin` with their files. */
function filesOf(bin: unknown, name: string): [string, unknown][] {
  if (typeof bin === 'string') return [[name, bin]];
  if (Array.isArray(bin)) return bin.map((file) => [String(file), file]);
  return typeof bin === 'object' && bin !== null ? Object.entries(bin) : [];
}

function isLinked(resource: Declared, command: string, machine: Machine): boolean {
  const directory = `${prefixOf(resource)}/bin`;
  const link = inspect(machine.walk, `${directory}/${command}`, false);
  return link.type === 'symlink' && posix.resolve(directory, link.target).startsWith(`${packageOf(resource)}/`);
}

/** Returns the names of the links in `bin` that npm made for the package. */
function linksInto(resource: Declared): string[] {
  const directory = `${prefixOf(resource)}/bin`;
  const target = `../lib/node_modules/${resource.body.name}/`;
  return namesIn(directory).filter((name) => linkTarget(`${directory}/${name}`)?.startsWith(target));
}

/**
 * Returns why an unprivileged user could redirect root in one of the directories, or change the settings that npm reads
 * under the prefix; null if none could.
 */
function whyUnsafe(directories: readonly string[], prefix: string, machine: Machine): string | null {
  try {
    for (const directory of [...directories, `${prefix}/etc`]) trustedPath(machine.walk, directory, 'null');
    expectTrustedFile(machine.walk, `${prefix}/etc/npmrc`, 'npm');
    return null;
  } catch (error) {
    if (error instanceof HostFailure) return `${error.message}, or declare its owner as \`user\``;
    throw error;
  }
}
