import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import type { InstalledPackages, NamedVersion } from '../../host/packages/installed-packages.ts';
import type { PackageLocks } from '../../host/packages/package-locks.ts';
import type { Removal, Removed } from '../../host/packages/removal.ts';
import type { PackageVersion } from '../../host/packages/rpm-version.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { FileFormat } from '../package-file/package-file.ts';
import type { CopyReference, Database, Machine } from '../provider/provider.ts';

/** How the shared provider uses a package manager whose packages have versions `[epoch:]version-release`. */

export type ToolType = 'package-dnf' | 'package-zypper' | 'package-pacman';

/** The fields of all kinds. A kind that lacks one of them never has it. */
export type Body = ResourceBodies['package-dnf'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
export const isDeclaredAbsent = (resource: ResolvedResource): boolean => bodyOf(resource).ensure === 'absent';

export interface RequestedPackage {
  name: string;
  /** The complete version, or null for the one that the repositories prefer. */
  version: string | null;
  /** Path of a package file with this version; null to install the package from the repositories. */
  file: string | null;
  /** Id of the repository to install the package from; null for all enabled ones. */
  from: string | null;
}

/** How current the metadata of the repositories must be: as it is, at most an hour old, or refreshed now. */
export type Freshness = 'known' | 'hourly' | 'now';

export interface Offered {
  packages: readonly NamedVersion[];
  /** Why a repository could not be read, or null. */
  trouble: string | null;
  /** Whether the metadata was refreshed for this answer, so that another refresh would bring nothing. */
  isNew: boolean;
}

/** The commands of a package manager, and its notations. */
export interface PackageCommands {
  readonly type: ToolType;
  /** The program, as messages name it. */
  readonly program: string;
  /** Reads the installed packages. */
  readInstalled(machine: Machine): Promise<InstalledPackages>;
  compare(a: PackageVersion, b: PackageVersion): number;
  /** Returns the offered versions in the order of preference; the last one is `latest`. */
  preferredLast(versions: readonly PackageVersion[]): PackageVersion[];
  readonly locks: PackageLocks;
  /** Returns why a package is not changed, for `NAME is REASON`, and how to release it. */
  lockedBecause(name: string): { reason: string; remedy: string };
  /** Returns why `hold` cannot take effect although it is declared. */
  cannotHold(name: string): string;
  /** Package files; null if the kind has no fields for them. */
  readonly files: FileFormat | null;
  /** Returns a stamp that changes whenever the configuration of the repositories changes. */
  sourcesStamp(): string;
  /** @param from id of the only repository to query; null for all enabled ones */
  offers(names: readonly string[], from: string | null, freshness: Freshness, machine: Machine): Promise<Offered>;
  /** Returns the names of up to ten packages that provide something, in the same repositories as `offers`. */
  providersOf(name: string, from: string | null, machine: Machine): Promise<string[]>;
  /**
   * Installs packages, or changes their versions, in one transaction. Waits for the lock.
   * @param requested packages with the same `from`
   */
  install(requested: readonly RequestedPackage[], machine: Machine): Promise<TransactionResult>;
  /** Returns why the package manager refuses to install the package, or null, without changing anything. */
  refusal(requested: RequestedPackage, machine: Machine): Promise<string | null>;
  /**
   * Marks packages as dependencies after a failed transaction, if the package manager does not do so.
   * @returns why that failed, or null
   */
  markAsDependencies(names: readonly string[], machine: Machine): Promise<string | null>;
  /**
   * Returns all packages that a removal would include, or the reason to refuse it, without changing anything.
   * @param options `unused` includes dependencies that nothing else needs
   */
  whatGoes(names: readonly string[], options: { unused: boolean }, machine: Machine): Promise<Removal | string>;
  /** Removes exactly these packages in one transaction, or none. Does not wait for the lock. */
  removeExactly(packages: readonly Removed[], machine: Machine): Promise<TransactionResult>;
  /** Reports whether another process held the lock. */
  isLocked(output: string): boolean;
  /** Reports whether a removal ended before its first change, because the installed packages have changed. */
  isRefusal(output: string): boolean;
  /** Summarizes for operators why a transaction failed. */
  complaint(output: string): string;
  /** Returns which script of a package failed, and how; null if none did. */
  scriptComplaint(output: string, name: string): string | null;
  /**
   * Finishes changes that a power failure interrupted.
   * @throws HostFailure
   */
  recover(machine: Machine): Promise<void>;
}

/** The installed packages, and the text in which the package manager records its locks. */
export interface PackageDatabase extends InstalledPackages {
  lockList: string;
  canLock: boolean;
}

export interface Offer {
  packages: ReadonlyMap<string, readonly NamedVersion[]>;
  trouble: string | null;
}

export interface Offers {
  /** The offer of each repository that a resource names; with the key null, that of all enabled repositories. */
  from: ReadonlyMap<string | null, Offer>;
  /** Stamp that identifies the source configuration at the time when the offers were read. */
  sources: string;
}

/** A package manager, with the data that an operation reads of it once. */
export interface PackageTool extends PackageCommands {
  readonly database: Database<PackageDatabase>;
  /** The packages that the repositories offer. Plans and applies refresh old metadata first; drift checks never do. */
  readonly freshOffers: Database<Offers>;
  readonly knownOffers: Database<Offers>;
  /** Copy of all installed packages' names, created once for all installations in an operation. */
  readonly ground: Database<CopyReference>;
}

/**
 * Divides the packages of a removal.
 * @param unused whether the other packages are unused dependencies; otherwise, they depend on the requested ones
 */
export function removalOf(
  all: readonly Removed[],
  isRequested: (name: string) => boolean,
  { unused }: { readonly unused: boolean },
): Removal {
  const requested = all.filter(({ name }) => isRequested(name));
  const others = all.filter(({ name }) => !isRequested(name));
  return { requested, dependent: unused ? [] : others, unused: unused ? others : [] };
}
