import { posix } from 'node:path';
import type { FieldChange } from '@muster/protocol';
import { isSamePythonVersion } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import { decideFiles, unlessLater } from './declared-packages.ts';
import {
  type Declared,
  type DeclaredPackage,
  environmentOf,
  type PipPackageBefore,
  type SeenEnvironment,
  type SeenPipPackage,
} from './seen.ts';

/** Reports whether an installed version meets the declared one. If no version is declared, any version meets it. */
export const isVersionMet = (installed: string, declared: string | null | undefined): boolean =>
  declared == null || isSamePythonVersion(installed, declared);

/** Reports whether an installed version equals the previous one, including its local part. */
export const isVersionRestored = (installed: string, former: string): boolean =>
  isSamePythonVersion(installed, former) && isSamePythonVersion(former, installed);

export function diffPipPackage(
  resource: DeclaredPackage,
  seen: SeenPipPackage,
  { purpose, willBeThere }: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const { version, ensure } = resource.body;
  const difference = ensure === 'absent' ? absence(seen) : presence(version, seen);
  if (difference.action === 'none' || purpose === 'drift') return difference;
  expectChangeable(resource, resource.body.name, seen);
  expectParent(resource, seen, willBeThere);
  return { ...difference, ...awaiting(seen) };
}

/** @throws HostFailure if the directory that contains the virtual environment neither exists nor will be created */
export function expectParent(
  resource: Declared,
  { isParentMissing }: Pick<SeenEnvironment, 'isParentMissing'>,
  willBeThere: (path: string) => boolean,
): void {
  const parent = posix.dirname(environmentOf(resource));
  if (isParentMissing && !willBeThere(parent))
    throw new HostFailure(`${parent} does not exist: declare it with directory-unix, before this resource`);
}

/**
 * @param name the package that `unmanaged` is about
 * @throws HostFailure if pip must not run
 */
export function expectChangeable(
  resource: Declared,
  name: string,
  {
    environment,
    unmanaged,
    unsafe,
    broken,
    missing,
  }: Pick<SeenPipPackage, 'environment' | 'unmanaged' | 'unsafe' | 'broken' | 'missing'>,
): void {
  const path = environmentOf(resource);
  if (environment === 'other')
    throw new HostFailure(`${path} is not a virtual environment: move it away, or choose another path`);
  if (unmanaged !== null)
    throw new HostFailure(`${name} in ${path} is ${unmanaged}, which pip cannot replace safely: uninstall it first`);
  if (unsafe !== null) throw new HostFailure(unsafe);
  // Another resource may provide the missing program.
  if (broken !== null && missing.length === 0)
    throw new HostFailure(`${path}: ${broken}: move it away, and apply again`);
}

export const awaiting = ({ missing }: Pick<SeenPipPackage, 'missing'>): Pick<Difference, 'awaits'> =>
  missing.length === 0 ? {} : { awaits: missing };

const presenceChange = (from: string, to: string): FieldChange => ({ field: 'ensure', from, to });

/** Returns the changes that complete an installed package. */
const repairs = ({ isInterrupted, missingFile }: SeenPipPackage): FieldChange[] =>
  isInterrupted
    ? [{ field: 'files', from: 'interrupted', to: 'complete' }]
    : missingFile === null
      ? []
      : [{ field: 'files', from: `missing: ${missingFile}`, to: 'complete' }];

function absence({ version, unmanaged, isInterrupted, environment }: SeenPipPackage): Difference {
  if (environment === 'partial')
    return { action: 'remove', changes: [{ field: 'virtualenv', from: 'incomplete', to: null }], diff: null };
  if (version === null && unmanaged === null) {
    if (!isInterrupted) return nothing();
    return { action: 'remove', changes: [{ field: 'files', from: 'interrupted', to: null }], diff: null };
  }
  return {
    action: 'remove',
    changes: [presenceChange('present', 'absent'), { field: 'version', from: version, to: null }],
    diff: null,
  };
}

function presence(declared: string | null | undefined, seen: SeenPipPackage): Difference {
  const { version, unmanaged, environment } = seen;
  const to = declared ?? 'any';
  if (unmanaged !== null) return { action: 'update', changes: [{ field: 'version', from: unmanaged, to }], diff: null };
  if (version === null) {
    const changes: FieldChange[] = [presenceChange('absent', 'present'), { field: 'version', from: null, to }];
    if (environment !== 'present')
      changes.push({ field: 'virtualenv', from: environment === 'absent' ? null : environment, to: 'present' });
    return { action: 'create', changes, diff: null };
  }
  const changes: FieldChange[] = [];
  if (!isVersionMet(version, declared)) changes.push({ field: 'version', from: version, to });
  if (seen.broken !== null) changes.push({ field: 'virtualenv', from: seen.broken, to: 'present' });
  changes.push(...repairs(seen));
  return changes.length === 0 ? nothing() : { action: 'update', changes, diff: null };
}

export function diffPipPackageRemoval(
  resource: DeclaredPackage,
  before: PipPackageBefore,
  seen: SeenPipPackage,
  circumstances: Partial<Pick<Circumstances, 'willBeThere' | 'willChange'>> = {},
): Difference {
  if (seen.unmanaged !== null || seen.environment === 'other')
    return nothing(`kept: ${seen.unmanaged ?? `${environmentOf(resource)} is not a virtual environment`}`);
  const { later, isListed } = decideFiles(seen, circumstances);
  if (isListed) return nothing('kept: a requirements file lists it');
  const difference = removalOf(before, later.length === 0 ? seen : { ...seen, ...seen.unlisted });
  if (difference.action === 'none') return difference;
  expectChangeable(resource, resource.body.name, seen);
  return { ...difference, message: unlessLater(difference.message ?? '', later) };
}

function removalOf(before: PipPackageBefore, seen: SeenPipPackage): Difference {
  const { version, orphans, environment, isInterrupted } = seen;
  const restored: Difference = { action: 'remove', changes: [], diff: null, message: 'restores the original state' };
  const dependencies: FieldChange[] =
    orphans.length === 0 ? [] : [{ field: 'dependencies', from: orphans.join(', ').slice(0, 1000), to: null }];
  if (before.version === null && seen.neededBy.length > 0 && version !== null) {
    const message = `kept: ${seen.neededBy.join(', ')} may need it`;
    const changes: FieldChange[] = isInterrupted ? repairs(seen) : [];
    if (seen.isRequested && seen.metadata !== null) changes.push({ field: 'requested', from: 'yes', to: 'no' });
    return changes.length === 0 ? nothing(message) : { ...restored, changes, message };
  }
  if (before.version === null) {
    const changes = version === null && !isInterrupted ? [] : absence(seen).changes;
    if (changes.length > 0 || dependencies.length > 0)
      return { ...restored, changes: [...changes, ...dependencies], message: 'removes the package' };
    if (!hasEnvironmentToRemove(before, seen)) return nothing('already removed');
    return { ...restored, changes: [{ field: 'virtualenv', from: environment, to: null }] };
  }
  const changes: FieldChange[] = [];
  if (version === null) changes.push(presenceChange('absent', 'present'));
  if (version === null || !isVersionRestored(version, before.version))
    changes.push({ field: 'version', from: version, to: before.version });
  changes.push(...repairs(seen), ...dependencies);
  if (changes.length === 0) return nothing('already in its original state');
  return { ...restored, changes, ...awaiting(seen) };
}

/** Reports whether the virtual environment is the agent's, and nothing else is in it. */
export const hasEnvironmentToRemove = (
  before: Pick<PipPackageBefore, 'environment'>,
  { environment, isBare }: Pick<SeenPipPackage, 'environment' | 'isBare'>,
): boolean => isBare || environment === 'partial' || (environment === 'empty' && before.environment === 'absent');
