import { HostFailure } from '../failure.ts';
import { lastLine } from '../processes/failure-text.ts';
import type { TransactionResult } from '../processes/transaction.ts';
import { isRpmLocked } from './dnf-output.ts';
import type { InstalledPackages, NamedVersion } from './installed-packages.ts';
import type { PackageToolContext } from './package-lock.ts';
import { ask, change, type PackageProgram } from './package-program.ts';

/** Removes packages with rpm itself, for package managers that cannot do so exactly. */

const rpm: PackageProgram = {
  program: 'rpm',
  environment: { LC_ALL: 'C.UTF-8' },
  isLocked: isRpmLocked,
};

/** Returns the name of exactly one package. Without its epoch, which rpm before 4.15 does not accept there. */
export const rpmSpec = ({ name, version, release, arch }: NamedVersion): string =>
  `${name}-${version}-${release}.${arch}`;

/**
 * Removes exactly the given packages in one transaction. While rpm holds its lock, it refuses if an installed package needs
 * one of them, or if one of them is not installed.
 * @param specs from `rpmSpec`
 * @throws LeftRunning if the agent stops first
 */
export const eraseExactly = (specs: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  change(rpm, ['--erase', '--', ...specs], context);

/** Reports whether rpm refused to remove packages, and changed nothing. */
export const isEraseRefusal = (output: string): boolean =>
  /^error: (?:Failed dependencies:|package .+ is not installed)/m.test(output);

/**
 * Returns the versions that an interrupted transaction had to replace: packages that were installed before it, next to
 * another version for the same architecture that was not.
 * @param before packages before the transaction, from `rpmSpec`
 */
export function oldHalves(
  { packages }: Pick<InstalledPackages, 'packages'>,
  before: ReadonlySet<string>,
): NamedVersion[] {
  const isOld = (found: NamedVersion): boolean => before.has(rpmSpec(found));
  return [...packages.values()].flatMap((versions) =>
    versions.filter((one) => isOld(one) && versions.some((other) => other.arch === one.arch && !isOld(other))),
  );
}

/**
 * Returns the names of the packages of which several versions may be installed, such as kernels.
 * @param provides one line for each capability: the name of the package that provides it, a tab, and the capability
 * @param mayBeMultiple names of packages, and `provides:CAPABILITY`
 */
export const multipleIn = (provides: string, mayBeMultiple: ReadonlySet<string>): Set<string> =>
  new Set(
    provides.split('\n').flatMap((line) => {
      const [name = '', capability = ''] = line.split('\t');
      const isMultiple = /^(?:multiversion|installonlypkg)\(/.test(capability);
      return isMultiple || mayBeMultiple.has(name) || mayBeMultiple.has(`provides:${capability}`) ? [name] : [];
    }),
  );

/**
 * Removes the old halves. Keeps packages of which several versions may be installed, such as kernels.
 * @param before packages before the transaction, from `rpmSpec`
 * @param mayBeMultiple see `multipleIn`
 * @returns whether it changed anything
 * @throws HostFailure if rpm fails
 */
export async function removeOldHalves(
  database: InstalledPackages,
  before: ReadonlySet<string>,
  mayBeMultiple: ReadonlySet<string>,
  context: PackageToolContext,
): Promise<boolean> {
  const old = oldHalves(database, before);
  if (old.length === 0) return false;
  const names = [...new Set(old.map(({ name }) => name))];
  const query = ['--query', '--queryformat', '[%{=NAME}\\t%{PROVIDES}\\n]', '--', ...names];
  const { stdout, stderr, exitCode } = await ask(rpm, query, context);
  if (exitCode !== 0) throw new HostFailure(`rpm cannot read its database: ${lastLine(stderr)}`);
  const multiple = multipleIn(stdout, mayBeMultiple);
  const halves = old.filter(({ name }) => !multiple.has(name));
  if (halves.length === 0) return false;
  // The new version satisfies the dependencies, or the next transaction reports that it does not.
  const result = await change(rpm, ['--erase', '--nodeps', '--', ...halves.map(rpmSpec)], context);
  if (result.exitCode !== 0)
    throw new HostFailure(`rpm could not finish an interrupted upgrade: ${lastLine(result.output)}`);
  return true;
}
