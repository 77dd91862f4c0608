import { type InstalledPackages, splitName } from '../../host/packages/installed-packages.ts';
import { isVersion, versionText } from '../../host/packages/rpm-version.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { seenIn } from './seen.ts';
import type { PackageDatabase, PackageTool, RequestedPackage } from './tool.ts';

/** Maximum number of remaining packages to retry one by one. */
const maxAlone = 25;

/**
 * Installs packages in one transaction for each repository that they name. If one fails, keeps the packages that it
 * installed and retries the others without those that cannot be installed, finally one by one, so that one bad package
 * does not fail the rest.
 * @returns the failure, or a note about an installed package, by package name
 */
export async function installAll(
  tool: PackageTool,
  requested: readonly RequestedPackage[],
  machine: Machine,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  let left = [...requested];
  const attempt = async (some: readonly RequestedPackage[]): Promise<void> => {
    for (const group of Map.groupBy(some, ({ from }) => from).values()) await attemptTogether(group);
  };
  const attemptTogether = async (some: readonly RequestedPackage[]): Promise<void> => {
    const before = (await machine.database(tool.database)).packages;
    const result = await install(tool, some, machine);
    const database = await machine.database(tool.database);
    if (result.exitCode !== 0) {
      const requestedNames = new Set(some.map((one) => baseNameOf(one, database)));
      const along = [...database.packages.keys()].filter((name) => !before.has(name) && !requestedNames.has(name));
      await markAsDependencies(tool, along, machine);
    }
    for (const one of some) {
      outcomes.delete(one.name);
      if (!isFulfilled(tool, one, database)) outcomes.set(one.name, failureOf(tool, one, result, machine));
      else {
        // A package counts as installed even if its last script failed.
        const said = tool.scriptComplaint(result.output, baseNameOf(one, database));
        if (said !== null) outcomes.set(one.name, { message: `installed, but ${said}` });
      }
    }
    left = left.filter((one) => !isFulfilled(tool, one, database));
  };
  await attempt(left);
  if (left.length === 0 || requested.length === 1) return outcomes;
  // A package that is refused individually is not retried.
  const possible: RequestedPackage[] = [];
  for (const one of left.slice(0, maxAlone)) {
    const refused = await tool.refusal(one, machine);
    if (refused === null) possible.push(one);
    else outcomes.set(one.name, { failure: refused });
  }
  if (possible.length === 0) return outcomes;
  left = [...possible];
  if (possible.length < requested.length) await attempt(possible);
  for (const one of [...left]) await attempt([one]);
  return outcomes;
}

const baseNameOf = ({ name }: RequestedPackage, { packages }: InstalledPackages): string =>
  splitName(name, (candidate) => packages.has(candidate))[0];

const isFulfilled = (
  tool: PackageTool,
  { name, version, file }: RequestedPackage,
  database: PackageDatabase,
): boolean => {
  const { installed } = seenIn(database, name, tool);
  if (file !== null) return installed !== null && versionText(installed) === version;
  return installed !== null && (version === null || isVersion(version, installed, tool.compare));
};

async function install(
  tool: PackageTool,
  requested: readonly RequestedPackage[],
  machine: Machine,
): Promise<TransactionResult> {
  try {
    return await tool.install(requested, machine);
  } finally {
    machine.stale();
  }
}

/** Without this mark, the package manager would never remove the packages automatically. */
async function markAsDependencies(
  { program, markAsDependencies: mark }: PackageTool,
  names: readonly string[],
  machine: Machine,
): Promise<void> {
  if (names.length === 0) return;
  const complaint = await mark(names, machine);
  if (complaint !== null)
    machine.warn(
      `failed to mark ${names.join(', ')} as dependencies; ${program} will not remove them automatically: ${complaint}`,
    );
}

function failureOf(
  { program, complaint, scriptComplaint }: PackageTool,
  one: RequestedPackage,
  result: TransactionResult,
  machine: Machine,
): Outcome {
  const { output, truncated } = result;
  const { name, version } = one;
  const own = scriptComplaint(output, splitName(name, () => false)[0]) ?? scriptComplaint(output, name);
  const failure = result.timedOut
    ? `the transaction was stopped because it took longer than ${machine.limits.packageMs / 1000} s`
    : result.exitCode === 0
      ? `${program} reported no error, but ${name}${version === null ? '' : ` ${version}`} is not installed`
      : (own ?? complaint(output));
  return { failure, output: { stdout: output, stderr: '', exitCode: result.exitCode ?? 128, truncated } };
}
