import { HostFailure } from '../../host/failure.ts';
import { dnf, dnfQuery, dnfWould } from '../../host/packages/dnf.ts';
import { dnfComplaint, scriptComplaint } from '../../host/packages/dnf-output.ts';
import { type RpmDatabase, splitName } from '../../host/packages/rpm.ts';
import { isVersion } from '../../host/packages/rpm-version.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { rpmDatabase, seenIn } from './seen.ts';

/** One package as it is to be. */
export interface Wish {
  name: string;
  /** As dnf takes it; null: whichever the repositories prefer. */
  version: string | null;
}

/** So many of those that an earlier transaction left undone are tried each by itself. */
const maxAlone = 25;

/**
 * Installs packages in one transaction of dnf. If that is refused or fails, what got done of it counts, and the others
 * are tried without those that cannot be installed, in the end one by one: one bad package does not fail the rest.
 * @returns by name: why it is not as wished, or what is to be said although it is
 */
export async function installAll(wishes: readonly Wish[], machine: Machine): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  let left = [...wishes];
  const attempt = async (some: readonly Wish[]): Promise<void> => {
    const before = (await machine.database(rpmDatabase)).packages;
    const result = await install(some, machine);
    const database = await machine.database(rpmDatabase);
    if (result.exitCode !== 0) {
      const asked = new Set(some.map((wish) => bareName(wish, database)));
      const along = [...database.packages.keys()].filter((name) => !before.has(name) && !asked.has(name));
      await markAsDependencies(along, machine);
    }
    for (const wish of some) {
      outcomes.delete(wish.name);
      if (!isFulfilled(wish, database)) outcomes.set(wish.name, failureOf(wish, result, machine));
      else {
        // rpm counts a package as installed whose last script failed.
        const said = scriptComplaint(result.output, bareName(wish, database));
        if (said !== null) outcomes.set(wish.name, { message: `installed, but ${said}` });
      }
    }
    left = left.filter((wish) => !isFulfilled(wish, database));
  };
  await attempt(left);
  if (left.length === 0 || wishes.length === 1) return outcomes;
  // Whom dnf refuses even alone need not be tried again.
  const possible: Wish[] = [];
  for (const wish of left.slice(0, maxAlone)) {
    const alone = await dnfWould(['install', '--', specOf(wish)], machine);
    const said = `${alone.stdout}\n${alone.stderr}`;
    // It says no to the question whether it should, and that is an error like any other.
    if (alone.exitCode === 0 || /^Operation aborted\.$/m.test(said)) possible.push(wish);
    else outcomes.set(wish.name, { failure: dnfComplaint(said) });
  }
  if (possible.length === 0) return outcomes;
  left = [...possible];
  if (possible.length < wishes.length) await attempt(possible);
  for (const wish of [...left]) await attempt([wish]);
  return outcomes;
}

const specOf = ({ name, version }: Wish): string => {
  if (version === null) return name;
  // The architecture comes last.
  const [bare, arch] = splitName(name, () => false);
  return arch === null ? `${name}-${version}` : `${bare}-${version}.${arch}`;
};

const bareName = ({ name }: Wish, { packages }: RpmDatabase): string =>
  splitName(name, (candidate) => packages.has(candidate))[0];

const isFulfilled = ({ name, version }: Wish, database: RpmDatabase): boolean => {
  const { installed } = seenIn(database, name);
  return installed !== null && (version === null || isVersion(version, installed));
};

async function install(wishes: readonly Wish[], machine: Machine): Promise<TransactionResult> {
  try {
    return await dnf(['install', '--', ...wishes.map(specOf)], machine);
  } finally {
    machine.stale();
  }
}

/** Of a transaction that failed dnf does not keep who came only for others, and would never let them go. */
async function markAsDependencies(names: readonly string[], machine: Machine): Promise<void> {
  if (names.length === 0) return;
  const { exitCode, output } = await dnf(['mark', 'remove', '--', ...names], machine);
  if (exitCode !== 0) machine.warn(`dnf keeps ${names.join(', ')} as wanted by somebody: ${dnfComplaint(output)}`);
}

function failureOf(wish: Wish, result: TransactionResult, machine: Machine): Outcome {
  const { output, truncated } = result;
  const { name, version } = wish;
  const own = scriptComplaint(output, splitName(name, () => false)[0]) ?? scriptComplaint(output, name);
  const failure = result.timedOut
    ? `the transaction was stopped: it took longer than ${machine.limits.packageMs / 1000} s`
    : result.exitCode === 0
      ? `dnf ended without an error, and ${name}${version === null ? '' : ` ${version}`} is not installed`
      : (own ?? dnfComplaint(output));
  return { failure, output: { stdout: output, stderr: '', exitCode: result.exitCode ?? 128, truncated } };
}

/**
 * Takes away the old halves of packages whose upgrade was cut off, as by a power cut.
 * @throws HostFailure when that fails
 */
export async function mend(machine: Machine): Promise<void> {
  const check = await dnfQuery(['--cacheonly', 'check', '--duplicates'], machine);
  if (!/ is a duplicate with /.test(`${check.stdout}\n${check.stderr}`)) return;
  const { exitCode, output } = await dnf(['remove', '--duplicates'], machine);
  machine.stale();
  if (exitCode !== 0) throw new HostFailure(`dnf could not finish what was interrupted: ${dnfComplaint(output)}`);
}
