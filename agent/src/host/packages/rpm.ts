import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { lastLine } from '../processes/failure-text.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { compareRpmVersions, type RpmVersion } from './rpm-version.ts';
import { locksVersions, parseLocks, readLockList } from './version-locks.ts';

/** Reads the installed packages from rpm. */

export interface RpmPackage extends RpmVersion {
  name: string;
  arch: string;
}

export interface RpmDatabase {
  /** The architecture of package names that do not specify one. */
  native: string;
  /** All installed versions by name, newest last. */
  packages: ReadonlyMap<string, readonly RpmPackage[]>;
  /** Names of version-locked packages, which may be patterns. */
  locks: readonly string[];
  /** Text of the list of version locks. */
  lockList: string;
  /** Whether dnf's plugin versionlock is enabled. */
  canLock: boolean;
}

const fields = ['%{NAME}', '%{EPOCHNUM}', '%{VERSION}', '%{RELEASE}', '%{ARCH}'];
const architectures: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7hl' };

/**
 * Reads all packages with one query.
 * @throws HostFailure if this machine has no rpm, or rpm cannot read its database
 */
export async function readRpm(context: {
  clock: Clock;
  limits: { packageMs: number };
  startedProcess(process: ProcessIdentity): void;
}): Promise<RpmDatabase> {
  const { exitCode, stdout, stderr }: CommandResult = await runCommand(
    {
      program: 'rpm',
      args: ['--query', '--all', '--queryformat', `${fields.join('\\t')}\\n`],
      environment: { LC_ALL: 'C.UTF-8' },
      timeLimit: context.limits.packageMs,
      outputCap: 32 * 1024 * 1024,
      started: context.startedProcess,
    },
    context.clock,
  );
  if (exitCode !== 0)
    throw new HostFailure(`rpm cannot read its database: ${lastLine(stderr) || 'it printed no error'}`);
  return parseRpm(stdout, readLockList(), locksVersions());
}

/**
 * @param text one line for each package: name, epoch, version, release, architecture
 * @param lockList text of the list of version locks
 */
export function parseRpm(text: string, lockList = '', canLock = false): RpmDatabase {
  const native = architectures[process.arch] ?? process.arch;
  const packages = new Map<string, RpmPackage[]>();
  for (const found of parsePackages(text)) {
    const others = packages.get(found.name);
    if (others === undefined) packages.set(found.name, [found]);
    else others.push(found);
  }
  for (const some of packages.values()) some.sort(compareRpmVersions);
  return { native, packages, locks: parseLocks(lockList), lockList, canLock };
}

/** Parses lines of name, epoch, version, release, and architecture. Skips other lines. */
export function parsePackages(text: string): RpmPackage[] {
  return text.split('\n').flatMap((line) => {
    const [name, epoch, version, release, arch, ...more] = line.split('\t');
    if (!name || version === undefined || release === undefined || !arch || more.length > 0) return [];
    // rpm lists imported signature keys as packages with this name.
    if (name === 'gpg-pubkey' || !/^\d+$/.test(epoch ?? '')) return [];
    return [{ name, epoch: Number(epoch), version, release, arch }];
  });
}

/**
 * Finds installed packages by name: `foo`, or `foo.i686` with an architecture.
 * @returns all versions, newest last
 */
export function findRpm(database: RpmDatabase, name: string): readonly RpmPackage[] {
  const [baseName, arch] = splitName(name, (candidate) => database.packages.has(candidate));
  const named = database.packages.get(baseName) ?? [];
  if (arch !== null) return named.filter((found) => found.arch === arch);
  const own = named.filter((found) => isOwn(found, database.native));
  return own.length > 0 ? own : named;
}

/** Reports whether a name without an architecture can refer to this package. */
export const isOwn = ({ arch }: { arch: string }, native: string): boolean => arch === native || arch === 'noarch';

const knownArchitectures = /^(.+)\.(noarch|x86_64|i[3-6]86|aarch64|armv7hl|ppc64le|s390x|riscv64)$/;

/** Splits off the architecture, unless the whole text is a package name. */
export function splitName(name: string, isName: (candidate: string) => boolean): [name: string, arch: string | null] {
  const [, baseName, arch] = knownArchitectures.exec(name) ?? [];
  return baseName === undefined || arch === undefined || isName(name) ? [name, null] : [baseName, arch];
}
