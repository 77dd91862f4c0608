import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { FileContents } from '../../host/packages/package-file.ts';
import { lowerBound } from '../../host/packages/version-range.ts';
import { notDownloaded } from '../download/shown-url.ts';
import type { Circumstances, Machine, NameSuffix, Outcome, StoredContent } from '../provider/provider.ts';
import { knownContents, remember } from './known-files.ts';

/** Packages that are installed from a .deb or .rpm file instead of from the package sources. */

type Declared = ResolvedResource<'package-apt' | 'package-dnf' | 'package-zypper'>;

/** How one package system names, reads, and compares package files. */
export interface FileFormat {
  readonly suffix: NameSuffix;
  read(path: string, machine: Machine): Promise<FileContents>;
  /** Returns why the file cannot be the package with this name on this machine, or null. */
  misfit(name: string, contents: FileContents, machine: Machine): Promise<string | null>;
  isVersion(declared: string, version: string): boolean;
  /** Reports whether a declared version without an epoch matches versions with different epochs. */
  isPartial(declared: string): boolean;
}

export interface PackageFile {
  path: string;
  contents: FileContents;
}

/** Reports whether the resource declares a package file, by `url` or `source`. */
export const isFromFile = ({ body }: Declared): boolean =>
  body.ensure !== 'absent' && (body.url != null || body.source != null);

/** @throws HostFailure if the declaration of the file is incomplete */
export function checkFile(resource: Declared): void {
  if (!isFromFile(resource)) return;
  const { body, source } = resource;
  if (body.source == null && !/^[0-9a-f]{64}$/.test(body.sha256 ?? ''))
    throw new HostFailure('`url` requires `sha256`');
  if (body.source != null && source === undefined)
    throw new HostFailure(`the orchestrator sent no content for the source ${body.source}; update the orchestrator`);
  const { version } = body;
  if (version != null && (version === 'latest' || lowerBound(version) !== null || version.includes('*')))
    throw new HostFailure(
      `\`version\` must be one version, not ${version}, because the package comes from a file; omit it for the version of the file`,
    );
}

const hashOf = ({ body, source }: Declared): string => (body.source == null ? body.sha256 : source?.sha256) ?? '';

/**
 * Returns the version to which the package changes. Reads the file only if that decides whether an installed package
 * changes. Otherwise, the result does not depend on the agent's record of the file, so that an apply makes the same
 * decision as its plan.
 * @param installed version of the installed package, or null
 * @returns null if the version is determined later, from the file
 * @throws HostFailure if the file is not the declared package, or cannot be downloaded
 */
export async function fileVersion(
  resource: Declared,
  installed: string | null,
  { purpose }: Pick<Circumstances, 'purpose'>,
  format: FileFormat,
  machine: Machine,
): Promise<string | null> {
  const { version = null } = resource.body;
  const known = knownContents(hashOf(resource), machine);
  if (known !== null) await expectFit(resource, known, format, machine);
  if (installed === null || (version !== null && !format.isVersion(version, installed))) return version;
  if (known !== null) return known.version;
  if (installed === version && !format.isPartial(version)) return version;
  if (purpose === 'drift') return null;
  return withFile(resource, format, machine, async ({ contents }) => contents.version);
}

/** @throws HostFailure if the file is not the declared package */
async function expectFit(
  { body: { name, version } }: Declared,
  contents: FileContents,
  format: FileFormat,
  machine: Machine,
): Promise<void> {
  const misfit = await format.misfit(name, contents, machine);
  if (misfit !== null) throw new HostFailure(`${misfit}; nothing was installed`);
  if (version != null && !format.isVersion(version, contents.version))
    throw new HostFailure(
      `the file has version ${contents.version}, not the declared ${version}; nothing was installed`,
    );
}

/**
 * Runs an action with the file, which is fetched and checked first.
 * @throws HostFailure if the file cannot be fetched, or is not the declared package
 */
async function withFile<T>(
  resource: Declared,
  format: FileFormat,
  machine: Machine,
  action: (file: PackageFile) => Promise<T>,
): Promise<T> {
  const { body, source } = resource;
  const sha256 = hashOf(resource);
  let hasArrived = false;
  const checked = async (content: StoredContent): Promise<T> => {
    hasArrived = true;
    const path = content.named(format.suffix);
    const contents = await format.read(path, machine);
    remember(sha256, contents, machine);
    await expectFit(resource, contents, format, machine);
    return action({ path, contents });
  };
  if (body.source != null && source !== undefined) return machine.useContent(source, checked);
  return machine.useDownload({ url: body.url ?? '', sha256 }, checked).catch((error: unknown) => {
    throw hasArrived ? error : notDownloaded(resource, 'url', error);
  });
}

/**
 * Returns the outcome of removals in a batch with a file that cannot be used, or null if all files can be used. The
 * package file may be meant to replace the package to remove.
 */
export function keptBack(
  files: ReadonlyMap<{ resource: ResolvedResource }, PackageFile | HostFailure>,
): Outcome | null {
  for (const [{ resource }, file] of files)
    if (file instanceof HostFailure)
      return {
        failure: `not removed, because the package file for ${(resource as Declared).body.name} cannot be used; fix the file, and then apply again`,
      };
  return null;
}

/**
 * Runs an action with the files of several packages. A file that cannot be used fails only its own package.
 * @param action receives each file, or the failure
 */
export function withFiles<T extends { resource: ResolvedResource }, R>(
  items: readonly T[],
  format: FileFormat,
  machine: Machine,
  action: (files: ReadonlyMap<T, PackageFile | HostFailure>) => Promise<R>,
): Promise<R> {
  const files = new Map<T, PackageFile | HostFailure>();
  // Nested, because the content cache keeps a file only as long as it is in use.
  const next = async ([item, ...others]: readonly T[]): Promise<R> => {
    if (item === undefined) return action(files);
    try {
      return await withFile(item.resource as Declared, format, machine, (file) => {
        files.set(item, file);
        return next(others);
      });
    } catch (error) {
      // A failure of the action or of another file is not a failure of this file.
      if (files.has(item) || !(error instanceof HostFailure)) throw error;
      files.set(item, error);
      return next(others);
    }
  };
  return next(items);
}
