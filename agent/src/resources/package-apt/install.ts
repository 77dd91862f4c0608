import { HostFailure } from '../../host/failure.ts';
import { aptGet, aptMark, dpkg, simulate } from '../../host/packages/apt.ts';
import { aptComplaint, dpkgComplaint } from '../../host/packages/apt-output.ts';
import { type DpkgDatabase, isWhole } from '../../host/packages/dpkg.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { dpkgDatabase, isThere, seenIn } from './seen.ts';

/** One package as it is to be. */
export interface Wish {
  name: string;
  /** Null: whichever the sources prefer. */
  version: string | null;
  /** Its files are to be unpacked again. */
  again: boolean;
}

/** So many of those that an earlier transaction left undone are tried each by itself. */
const maxAlone = 25;

/**
 * Installs packages in one transaction of apt. If that is refused or fails, what got done of it counts, and the others
 * are tried without those that cannot be installed, in the end one by one: one bad package does not fail the rest.
 * @returns by name, why it is not as wished; what is not in it, is
 */
export async function installAll(wishes: readonly Wish[], machine: Machine): Promise<Map<string, Outcome>> {
  const failures = new Map<string, Outcome>();
  let left = [...wishes];
  let stuck = false;
  const attempt = async (some: readonly Wish[]): Promise<void> => {
    const result = await install(some, machine);
    // What hangs would hang again.
    stuck = result.timedOut;
    if (!stuck) await mend(machine);
    const database = await machine.database(dpkgDatabase);
    for (const wish of some) {
      if (isFulfilled(wish, database)) failures.delete(wish.name);
      else failures.set(wish.name, failureOf(wish, result, machine));
    }
    left = left.filter((wish) => !isFulfilled(wish, database));
  };
  await attempt(left);
  if (left.length === 0 || wishes.length === 1 || stuck) return failures;
  // Whom apt refuses even alone need not be tried again.
  const possible: Wish[] = [];
  for (const wish of left.slice(0, maxAlone)) {
    const alone = await simulate(installArguments([wish]), machine);
    if (alone.exitCode === 0) possible.push(wish);
    else failures.set(wish.name, { failure: aptComplaint(`${alone.stdout}\n${alone.stderr}`) });
  }
  if (possible.length === 0) return failures;
  left = [...possible];
  if (possible.length < wishes.length) await attempt(possible);
  for (const wish of [...left]) if (!stuck) await attempt([wish]);
  return failures;
}

const isFulfilled = ({ name, version }: Wish, database: DpkgDatabase): boolean => {
  const seen = seenIn(database, name);
  return isThere(seen.state) && seen.whole && (version === null || seen.version === version);
};

function installArguments(wishes: readonly Wish[]): string[] {
  const again = wishes.some((wish) => wish.again) ? ['--reinstall'] : [];
  const names = wishes.map(({ name, version }) => (version === null ? name : `${name}=${version}`));
  // What is declared may be older than what is there; nothing may go that nobody asked to go.
  return ['install', ...again, '--allow-downgrades', '--no-remove', '--', ...names];
}

async function install(wishes: readonly Wish[], machine: Machine): Promise<TransactionResult> {
  try {
    return await aptGet(installArguments(wishes), machine);
  } finally {
    machine.stale();
  }
}

function failureOf({ name, version }: Wish, result: TransactionResult, machine: Machine): Outcome {
  const { output, truncated } = result;
  const bare = name.split(':')[0] ?? name;
  const own = dpkgComplaint(output, bare);
  const failure = result.timedOut
    ? `the transaction was stopped: it took longer than ${machine.limits.packageMs / 1000} s; its last words: ${lastWords(output)}`
    : result.exitCode === 0
      ? `apt ended without an error, and ${name}${version === null ? '' : ` ${version}`} is not installed`
      : (own ?? aptComplaint(output));
  return { failure, output: { stdout: output, stderr: '', exitCode: result.exitCode ?? 128, truncated } };
}

const lastWords = (output: string): string => output.trimEnd().split('\n').slice(-2).join(' / ').slice(0, 500);

/**
 * Lets dpkg finish what was cut off: by a kill, a power cut, or a package that failed.
 * @throws LeftRunning when the agent stops
 * @throws HostFailure when it hangs
 */
export async function mend(machine: Machine): Promise<TransactionResult | null> {
  const database = await machine.database(dpkgDatabase);
  if (!database.interrupted && [...database.packages.values()].every(isWhole)) return null;
  const result = await dpkg(['--configure', '-a'], machine);
  machine.stale();
  if (result.timedOut)
    throw new HostFailure(
      `dpkg cannot finish what was interrupted: \`dpkg --configure -a\` took longer than ${machine.limits.packageMs / 1000} s; its last words: ${lastWords(result.output)}`,
    );
  return result;
}

/**
 * Restores who is there only for others.
 * @throws HostFailure
 */
export async function mark(how: 'auto' | 'manual', names: readonly string[], machine: Machine): Promise<void> {
  if (names.length === 0) return;
  const result = await aptMark(how, names, machine);
  machine.stale(dpkgDatabase);
  if (result.exitCode !== 0) throw new HostFailure(`apt-mark ${how} failed: ${aptComplaint(result.stderr)}`);
}
