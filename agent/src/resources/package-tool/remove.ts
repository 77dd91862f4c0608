import { untilUnlocked } from '../../host/packages/package-lock.ts';
import type { Removal, Removed } from '../../host/packages/removal.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { baseNameIn, seenIn } from './seen.ts';
import { bodyOf, type PackageTool } from './tool.ts';

export interface PackageRemoval {
  name: string;
  /** Dependencies that were installed with the package. They are removed too, unless another package needs them. */
  brought: readonly string[];
}

/** Maximum number of attempts. Other processes may install or remove packages between two attempts. */
const maxAttempts = 5;

/**
 * Removes packages in one transaction, with the dependencies that came with them and that no other package needs.
 * Removes no other package, even if others install packages at the same time.
 * @returns the reason why a package is still installed, or a note about its removal, by package name
 */
export async function removeAll(
  tool: PackageTool,
  removals: readonly PackageRemoval[],
  machine: Machine,
): Promise<Map<string, Outcome>> {
  let attempt = await removeUnlocked(tool, removals, machine);
  // The package manager refuses a removal if the packages have changed since the decision.
  for (let i = 1; i < maxAttempts && attempt.result !== null && isRefused(tool, attempt.result); i++)
    attempt = await removeUnlocked(tool, removals, machine);
  const { outcomes, going, result, baseName } = attempt;
  if (result === null) return outcomes;
  const after = await machine.database(tool.database);
  for (const { name } of going) {
    const said = tool.scriptComplaint(result.output, baseName(name));
    if (seenIn(after, name, tool).installed === null) {
      if (said !== null) outcomes.set(name, { message: `removed, but ${said}` });
      continue;
    }
    const { output, truncated, exitCode } = result;
    outcomes.set(name, {
      failure: said ?? tool.complaint(output),
      output: { stdout: output, stderr: '', exitCode: exitCode ?? 128, truncated },
    });
  }
  return outcomes;
}

const isRefused = (tool: PackageTool, { exitCode, timedOut, output }: TransactionResult): boolean =>
  exitCode !== 0 && !timedOut && !tool.isLocked(output) && tool.isRefusal(output);

/**
 * Retries while another process holds the lock. That process may install dependents, so each attempt decides again
 * which packages to remove.
 */
const removeUnlocked = (tool: PackageTool, removals: readonly PackageRemoval[], machine: Machine): Promise<Attempt> =>
  untilUnlocked(
    () => removeAtOnce(tool, removals, machine),
    machine,
    ({ result }) => result !== null && tool.isLocked(result.output),
  );

interface Attempt {
  /** Outcomes of the packages that the agent does not try to remove. */
  outcomes: Map<string, Outcome>;
  going: readonly PackageRemoval[];
  /** Null if no removal was attempted. */
  result: TransactionResult | null;
  baseName(name: string): string;
}

/** Decides which packages to remove, and removes exactly these packages. Does not wait for the lock. */
async function removeAtOnce(
  tool: PackageTool,
  removals: readonly PackageRemoval[],
  machine: Machine,
): Promise<Attempt> {
  const outcomes = new Map<string, Outcome>();
  const before = await machine.database(tool.database);
  const present = removals.filter(({ name }) => seenIn(before, name, tool).installed !== null);
  const baseName = (name: string): string => baseNameIn(before, name);

  // A dependency that is itself declared is removed only if its own resource is removed.
  const declared = new Set(machine.resourcesOf(tool.type).map((resource) => baseName(bodyOf(resource).name)));
  const broughtBy = (some: readonly PackageRemoval[]): string[] =>
    some.flatMap(({ brought }) => brought).filter((name) => !declared.has(name));

  const unrequested = (would: Removal, some: readonly PackageRemoval[]): string[] => {
    const expected = new Set([...some.map(({ name }) => baseName(name)), ...broughtBy(some)]);
    return would.dependent.map(({ name }) => name).filter((name) => !expected.has(name));
  };
  /** Returns all packages that would be removed with the given packages, or the reason to refuse the removal. */
  const fullRemoval = async (some: readonly PackageRemoval[]): Promise<readonly Removed[] | string> => {
    const would = await tool.whatGoes(
      some.map(({ name }) => name),
      { unused: false },
      machine,
    );
    if (typeof would === 'string') return would;
    const others = unrequested(would, some);
    return others.length === 0
      ? [...would.requested, ...would.dependent]
      : `not removed, because other packages depend on it and would be removed too: ${others.slice(0, 20).join(', ')}`;
  };

  if (present.length === 0) return { outcomes, going: [], result: null, baseName };
  let going: readonly PackageRemoval[] = present;
  let removed = await fullRemoval(present);
  if (typeof removed === 'string') {
    going = [];
    removed = [];
    for (const removal of present) {
      const more = await fullRemoval([...going, removal]);
      if (typeof more === 'string') outcomes.set(removal.name, { failure: more });
      else {
        going = [...going, removal];
        removed = more;
      }
    }
  }
  if (going.length === 0) return { outcomes, going, result: null, baseName };
  removed = (await withUnneeded(tool, going, new Set(broughtBy(going)), unrequested, machine)) ?? removed;
  const result = await tool.removeExactly(removed, machine);
  machine.stale();
  return { outcomes, going, result, baseName };
}

/** Returns all packages to remove, including unneeded dependencies, or null if there are no unneeded dependencies. */
async function withUnneeded(
  tool: PackageTool,
  going: readonly PackageRemoval[],
  brought: ReadonlySet<string>,
  unrequested: (would: Removal, some: readonly PackageRemoval[]) => string[],
  machine: Machine,
): Promise<readonly Removed[] | null> {
  if (brought.size === 0) return null;
  const names = going.map(({ name }) => name);
  const would = await tool.whatGoes(names, { unused: true }, machine);
  if (typeof would === 'string') return null;
  const extras = would.unused.map(({ name }) => name).filter((name) => brought.has(name));
  if (extras.length === 0) return null;
  // A previously installed package may need one of them.
  const removal = await tool.whatGoes([...names, ...extras], { unused: false }, machine);
  return typeof removal === 'string' || unrequested(removal, going).length > 0
    ? null
    : [...removal.requested, ...removal.dependent];
}
