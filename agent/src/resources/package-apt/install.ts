import { HostFailure } from '../../host/failure.ts';
import { type AptMark, aptGet, aptMark, dpkg, simulate } from '../../host/packages/apt.ts';
import { aptComplaint, dpkgComplaint } from '../../host/packages/apt-output.ts';
import { type DpkgDatabase, isIntact } from '../../host/packages/dpkg.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { dpkgDatabase, isThere, seenIn } from './seen.ts';

export interface RequestedPackage {
  name: string;
  /** Null for the version that the sources prefer. */
  version: string | null;
  /** Path of a .deb file with this version; null to install the package from the sources. */
  file: string | null;
  /** Whether to unpack the installed package's files again. */
  again: boolean;
  /** Whether recommended packages are installed; null to follow apt's configuration. */
  recommends: boolean | null;
}

/**
 * Groups packages into transactions, because an option of apt applies to all packages of its transaction. Packages that
 * are installed without their recommended packages come first, because other packages may recommend them.
 */
export const byRecommends = (requested: readonly RequestedPackage[]): RequestedPackage[][] =>
  [false, null, true]
    .map((recommends) => requested.filter((one) => one.recommends === recommends))
    .filter((some) => some.length > 0);

/**
 * Installs packages in the transactions of `byRecommends`. If a transaction times out, starts no further transaction.
 * @returns failures by package name
 */
export async function installGroups(
  requested: readonly RequestedPackage[],
  machine: Machine,
  installGroup: typeof installAll = installAll,
): Promise<Map<string, Outcome>> {
  const failures = new Map<string, Outcome>();
  let stopped = false;
  for (const some of byRecommends(requested)) {
    if (stopped) {
      for (const { name } of some)
        failures.set(name, { failure: 'not installed, because an earlier transaction of apt took too long' });
      continue;
    }
    const group = await installGroup(some, machine);
    for (const [name, outcome] of group.failures) failures.set(name, outcome);
    stopped = group.stuck;
  }
  if (failures.size === 0) return failures;
  // A later transaction may have installed a package that failed earlier.
  const database = await machine.database(dpkgDatabase);
  for (const one of requested) if (isFulfilled(one, database)) failures.delete(one.name);
  return failures;
}

/** Maximum number of remaining packages to retry one by one. */
const maxAlone = 25;

/**
 * Installs packages in one apt transaction. If that fails, keeps the packages that it installed and retries the others
 * without those that cannot be installed, finally one by one, so that one bad package does not fail the rest.
 * @returns failures by package name; a package without a failure is installed as declared. `stuck` if a transaction
 *   timed out
 */
export async function installAll(
  requested: readonly RequestedPackage[],
  machine: Machine,
): Promise<{ failures: Map<string, Outcome>; stuck: boolean }> {
  const failures = new Map<string, Outcome>();
  let left = [...requested];
  let stuck = false;
  const attempt = async (some: readonly RequestedPackage[]): Promise<void> => {
    const result = await install(some, machine);
    // Packages whose transaction timed out are not retried, because they would time out again.
    stuck = result.timedOut;
    if (!stuck) await repairInterrupted(machine);
    const database = await machine.database(dpkgDatabase);
    for (const one of some) {
      if (isFulfilled(one, database)) failures.delete(one.name);
      else failures.set(one.name, failureOf(one, result, machine));
    }
    left = left.filter((one) => !isFulfilled(one, database));
  };
  await attempt(left);
  if (left.length === 0 || requested.length === 1 || stuck) return { failures, stuck };
  // A package that apt refuses even on its own is not retried.
  const possible: RequestedPackage[] = [];
  for (const one of left.slice(0, maxAlone)) {
    const alone = await simulate(installArguments([one]), machine);
    if (alone.exitCode === 0) possible.push(one);
    else failures.set(one.name, { failure: aptComplaint(`${alone.stdout}\n${alone.stderr}`) });
  }
  if (possible.length === 0) return { failures, stuck };
  left = [...possible];
  if (possible.length < requested.length) await attempt(possible);
  for (const one of [...left]) if (!stuck) await attempt([one]);
  return { failures, stuck };
}

const isFulfilled = ({ name, version }: RequestedPackage, database: DpkgDatabase): boolean => {
  const seen = seenIn(database, name);
  return isThere(seen.state) && seen.whole && (version === null || seen.version === version);
};

/** @param requested packages with the same `recommends` */
export function installArguments(requested: readonly RequestedPackage[]): string[] {
  const again = requested.some((one) => one.again) ? ['--reinstall'] : [];
  const declared = requested[0]?.recommends ?? null;
  const recommends = declared === null ? [] : [declared ? '--install-recommends' : '--no-install-recommends'];
  const names = requested.map(({ name, version, file }) => file ?? (version === null ? name : `${name}=${version}`));
  // The declared version may be older than the installed version. No other package may be removed.
  return ['install', ...again, ...recommends, '--allow-downgrades', '--no-remove', '--', ...names];
}

async function install(requested: readonly RequestedPackage[], machine: Machine): Promise<TransactionResult> {
  try {
    return await aptGet(installArguments(requested), machine);
  } finally {
    machine.stale();
  }
}

function failureOf({ name, version }: RequestedPackage, result: TransactionResult, machine: Machine): Outcome {
  const { output, truncated } = result;
  const baseName = name.split(':')[0] ?? name;
  const own = dpkgComplaint(output, baseName);
  const failure = result.timedOut
    ? `the transaction was stopped because it took longer than ${machine.limits.packageMs / 1000} s; its last output: ${lastWords(output)}`
    : result.exitCode === 0
      ? `apt reported no error, but ${name}${version === null ? '' : ` ${version}`} is not installed`
      : (own ?? aptComplaint(output));
  return { failure, output: { stdout: output, stderr: '', exitCode: result.exitCode ?? 128, truncated } };
}

const lastWords = (output: string): string => output.trimEnd().split('\n').slice(-2).join(' / ').slice(0, 500);

/**
 * Lets dpkg finish work that was killed, or interrupted by a power failure or a failed package.
 * @throws LeftRunning if the agent stops first
 * @throws HostFailure if dpkg takes too long
 */
export async function repairInterrupted(machine: Machine): Promise<TransactionResult | null> {
  const database = await machine.database(dpkgDatabase);
  if (!database.interrupted && [...database.packages.values()].every(isIntact)) return null;
  const result = await dpkg(['--configure', '-a'], machine);
  machine.stale();
  if (result.timedOut)
    throw new HostFailure(
      `dpkg cannot finish an interrupted operation: \`dpkg --configure -a\` took longer than ${machine.limits.packageMs / 1000} s; its last output: ${lastWords(result.output)}`,
    );
  return result;
}

/**
 * Marks packages in apt as installed automatically or manually, or puts them on hold or releases them.
 * @throws HostFailure
 */
export async function mark(how: AptMark, names: readonly string[], machine: Machine): Promise<void> {
  if (names.length === 0) return;
  const result = await aptMark(how, names, machine);
  machine.stale(dpkgDatabase);
  if (result.exitCode !== 0) throw new HostFailure(`apt-mark ${how} failed: ${aptComplaint(result.stderr)}`);
}
