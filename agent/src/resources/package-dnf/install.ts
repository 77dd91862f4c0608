import { HostFailure } from '../../host/failure.ts';
import { dnf, dnfQuery, dnfWould } from '../../host/packages/dnf.ts';
import { dnfComplaint, scriptComplaint } from '../../host/packages/dnf-output.ts';
import { type RpmDatabase, splitName } from '../../host/packages/rpm.ts';
import { isVersion, versionText } from '../../host/packages/rpm-version.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { rpmDatabase, seenIn } from './seen.ts';

export interface RequestedPackage {
  name: string;
  /** The version as dnf accepts it, or null for the one that the repositories prefer. */
  version: string | null;
  /** Path of an .rpm file with this version; null to install the package from the repositories. */
  file: string | null;
  /** Id of the repository to install the package from; null for all enabled ones. */
  from: string | null;
}

/** Maximum number of remaining packages to retry one by one. */
const maxAlone = 25;

/**
 * Installs packages in one dnf transaction for each repository that they name. If one fails, keeps the packages that it installed and retries the others
 * without those that cannot be installed, finally one by one, so that one bad package does not fail the rest.
 * @returns the failure, or a note about an installed package, by package name
 */
export async function installAll(
  requested: readonly RequestedPackage[],
  machine: Machine,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  let left = [...requested];
  const attempt = async (some: readonly RequestedPackage[]): Promise<void> => {
    for (const group of Map.groupBy(some, ({ from }) => from).values()) await attemptTogether(group);
  };
  const attemptTogether = async (some: readonly RequestedPackage[]): Promise<void> => {
    const before = (await machine.database(rpmDatabase)).packages;
    const result = await install(some, machine);
    const database = await machine.database(rpmDatabase);
    if (result.exitCode !== 0) {
      const requestedNames = new Set(some.map((one) => baseNameOf(one, database)));
      const along = [...database.packages.keys()].filter((name) => !before.has(name) && !requestedNames.has(name));
      await markAsDependencies(along, machine);
    }
    for (const one of some) {
      outcomes.delete(one.name);
      if (!isFulfilled(one, database)) outcomes.set(one.name, failureOf(one, result, machine));
      else {
        // rpm counts a package as installed even if its last script failed.
        const said = scriptComplaint(result.output, baseNameOf(one, database));
        if (said !== null) outcomes.set(one.name, { message: `installed, but ${said}` });
      }
    }
    left = left.filter((one) => !isFulfilled(one, database));
  };
  await attempt(left);
  if (left.length === 0 || requested.length === 1) return outcomes;
  // A package that dnf refuses individually is not retried.
  const possible: RequestedPackage[] = [];
  for (const one of left.slice(0, maxAlone)) {
    const alone = await dnfWould(installing([one]), machine);
    const said = `${alone.stdout}\n${alone.stderr}`;
    // dnf reports an error if its prompt is automatically answered with "no".
    if (alone.exitCode === 0 || /^Operation aborted\.$/m.test(said)) possible.push(one);
    else outcomes.set(one.name, { failure: dnfComplaint(said) });
  }
  if (possible.length === 0) return outcomes;
  left = [...possible];
  if (possible.length < requested.length) await attempt(possible);
  for (const one of [...left]) await attempt([one]);
  return outcomes;
}

/**
 * Returns the arguments of dnf for packages of one repository. With `repository-packages`, dnf enables the repository,
 * installs only the packages themselves from it, and their dependencies from any enabled one.
 */
function installing(requested: readonly RequestedPackage[]): string[] {
  const from = requested[0]?.from ?? null;
  const command = from === null ? ['install', '--'] : ['repository-packages', from, 'install'];
  return [...command, ...requested.map(specOf)];
}

const specOf = ({ name, version, file }: RequestedPackage): string => {
  if (file !== null) return file;
  if (version === null) return name;
  // dnf expects the architecture after the version.
  const [baseName, arch] = splitName(name, () => false);
  return arch === null ? `${name}-${version}` : `${baseName}-${version}.${arch}`;
};

const baseNameOf = ({ name }: RequestedPackage, { packages }: RpmDatabase): string =>
  splitName(name, (candidate) => packages.has(candidate))[0];

const isFulfilled = ({ name, version, file }: RequestedPackage, database: RpmDatabase): boolean => {
  const { installed } = seenIn(database, name);
  if (file !== null) return installed !== null && versionText(installed) === version;
  return installed !== null && (version === null || isVersion(version, installed));
};

async function install(requested: readonly RequestedPackage[], machine: Machine): Promise<TransactionResult> {
  try {
    return await dnf(installing(requested), machine);
  } finally {
    machine.stale();
  }
}

/**
 * Marks packages as dependencies, which dnf does not do after a failed transaction. Without this mark, dnf would never
 * remove the packages automatically.
 */
async function markAsDependencies(names: readonly string[], machine: Machine): Promise<void> {
  if (names.length === 0) return;
  const { exitCode, output } = await dnf(['mark', 'remove', '--', ...names], machine);
  if (exitCode !== 0)
    machine.warn(
      `failed to mark ${names.join(', ')} as dependencies; dnf will not remove them automatically: ${dnfComplaint(output)}`,
    );
}

function failureOf(one: RequestedPackage, result: TransactionResult, machine: Machine): Outcome {
  const { output, truncated } = result;
  const { name, version } = one;
  const own = scriptComplaint(output, splitName(name, () => false)[0]) ?? scriptComplaint(output, name);
  const failure = result.timedOut
    ? `the transaction was stopped because it took longer than ${machine.limits.packageMs / 1000} s`
    : result.exitCode === 0
      ? `dnf reported no error, but ${name}${version === null ? '' : ` ${version}`} is not installed`
      : (own ?? dnfComplaint(output));
  return { failure, output: { stdout: output, stderr: '', exitCode: result.exitCode ?? 128, truncated } };
}

/**
 * Removes the old versions of packages whose upgrade was interrupted, for example by a power failure.
 * @throws HostFailure if dnf fails
 */
export async function repairInterrupted(machine: Machine): Promise<void> {
  const check = await dnfQuery(['--cacheonly', 'check', '--duplicates'], machine);
  if (!/ is a duplicate with /.test(`${check.stdout}\n${check.stderr}`)) return;
  const { exitCode, output } = await dnf(['remove', '--duplicates'], machine);
  machine.stale();
  if (exitCode !== 0) throw new HostFailure(`dnf could not finish an interrupted upgrade: ${dnfComplaint(output)}`);
}
