import type { PackageVersion } from './rpm-version.ts';

/** The packages that are installed, as rpm and pacman record them, and how a name finds them. */

/** A version of a package, for one architecture. */
export interface NamedVersion extends PackageVersion {
  name: string;
  arch: string;
}

export interface InstalledPackages {
  /** The architecture of package names that do not specify one. */
  native: string;
  /** All installed versions by name, newest last. */
  packages: ReadonlyMap<string, readonly NamedVersion[]>;
}

const architectures: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7hl' };

/** The architecture of this machine's packages. */
export const nativeArchitecture = architectures[process.arch] ?? process.arch;

/**
 * @param packages in any order
 * @param compare returns a negative number if its first argument is older
 */
export function installedPackages(
  packages: readonly NamedVersion[],
  compare: (a: PackageVersion, b: PackageVersion) => number,
): InstalledPackages {
  const byName = new Map<string, NamedVersion[]>();
  for (const found of packages) {
    const others = byName.get(found.name);
    if (others === undefined) byName.set(found.name, [found]);
    else others.push(found);
  }
  for (const some of byName.values()) some.sort(compare);
  return { native: nativeArchitecture, packages: byName };
}

/**
 * Finds installed packages by name: `foo`, or `foo.i686` with an architecture.
 * @returns all versions, newest last
 */
export function findInstalled(database: InstalledPackages, name: string): readonly NamedVersion[] {
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
