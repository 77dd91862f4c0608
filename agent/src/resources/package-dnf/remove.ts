import { dnfRemoveExactly, dnfWould } from '../../host/packages/dnf.ts';
import {
  dnfComplaint,
  isDnfLocked,
  isDnfRefusal,
  parseRemoval,
  type Removal,
  type Removed,
  scriptComplaint,
} from '../../host/packages/dnf-output.ts';
import { untilUnlocked } from '../../host/packages/package-lock.ts';
import { splitName } from '../../host/packages/rpm.ts';
import type { TransactionResult } from '../../host/processes/transaction.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { bodyOf, rpmDatabase, seenIn } from './seen.ts';

/** One package that is to go. */
export interface Farewell {
  name: string;
  /** Names of those that came along with it because of us: they go too, if nothing else needs them. */
  brought: readonly string[];
}

/** How often what goes is found out again because others install or remove packages meanwhile. */
const maxAttempts = 5;

/**
 * Removes packages in one transaction: those, and what they alone needed and we brought. Nothing else goes with them, whatever
 * others install meanwhile.
 * @returns by name: why it is still there, or what is to be said about its removal
 */
export async function removeAll(farewells: readonly Farewell[], machine: Machine): Promise<Map<string, Outcome>> {
  let attempt = await removeUnlocked(farewells, machine);
  // What dnf refuses was decided by packages that are not what is installed now.
  for (let i = 1; i < maxAttempts && attempt.result !== null && isRefused(attempt.result); i++)
    attempt = await removeUnlocked(farewells, machine);
  const { outcomes, going, result, bare } = attempt;
  if (result === null) return outcomes;
  const after = await machine.database(rpmDatabase);
  for (const { name } of going) {
    const said = scriptComplaint(result.output, bare(name));
    if (seenIn(after, name).installed === null) {
      if (said !== null) outcomes.set(name, { message: `removed, but ${said}` });
      continue;
    }
    const { output, truncated, exitCode } = result;
    outcomes.set(name, {
      failure: said ?? dnfComplaint(output),
      output: { stdout: output, stderr: '', exitCode: exitCode ?? 128, truncated },
    });
  }
  return outcomes;
}

const isRefused = ({ exitCode, timedOut, output }: TransactionResult): boolean =>
  exitCode !== 0 && !timedOut && !isDnfLocked(output) && isDnfRefusal(output);

/** Whoever has the lock may install what needs them, so each try finds out again what goes. */
const removeUnlocked = (farewells: readonly Farewell[], machine: Machine): Promise<Attempt> =>
  untilUnlocked(
    () => removeAtOnce(farewells, machine),
    machine,
    ({ result }) => result !== null && isDnfLocked(result.output),
  );

interface Attempt {
  /** Of those that are not tried. */
  outcomes: Map<string, Outcome>;
  going: readonly Farewell[];
  /** Null when none is tried. */
  result: TransactionResult | null;
  bare(name: string): string;
}

/** Finds out what goes, and removes exactly that unless somebody holds the lock. */
async function removeAtOnce(farewells: readonly Farewell[], machine: Machine): Promise<Attempt> {
  const outcomes = new Map<string, Outcome>();
  const before = await machine.database(rpmDatabase);
  const present = farewells.filter(({ name }) => seenIn(before, name).installed !== null);
  const bare = (name: string): string => splitName(name, (candidate) => before.packages.has(candidate))[0];

  // What came along and is declared itself goes only when it is told to.
  const declared = new Set(machine.resourcesOf('package-dnf').map((resource) => bare(bodyOf(resource).name)));
  const broughtBy = (some: readonly Farewell[]): string[] =>
    some.flatMap(({ brought }) => brought).filter((name) => !declared.has(name));

  const notOurs = (would: Removal, some: readonly Farewell[]): string[] => {
    const ours = new Set([...some.map(({ name }) => bare(name)), ...broughtBy(some)]);
    return would.dependent.map(({ name }) => name).filter((name) => !ours.has(name));
  };
  /** All that goes with these; or why they cannot go together. */
  const whole = async (some: readonly Farewell[]): Promise<readonly Removed[] | string> => {
    const would = await whatGoes(
      some.map(({ name }) => name),
      [],
      machine,
    );
    if (typeof would === 'string') return would;
    const others = notOurs(would, some);
    return others.length === 0
      ? [...would.asked, ...would.dependent]
      : `not removed, because others need it and would go with it: ${others.slice(0, 20).join(', ')}`;
  };

  if (present.length === 0) return { outcomes, going: [], result: null, bare };
  let going: readonly Farewell[] = present;
  let gone = await whole(present);
  if (typeof gone === 'string') {
    going = [];
    gone = [];
    for (const farewell of present) {
      const more = await whole([...going, farewell]);
      if (typeof more === 'string') outcomes.set(farewell.name, { failure: more });
      else {
        going = [...going, farewell];
        gone = more;
      }
    }
  }
  if (going.length === 0) return { outcomes, going, result: null, bare };
  gone = (await withUnneeded(going, new Set(broughtBy(going)), notOurs, machine)) ?? gone;
  const result = await dnfRemoveExactly(
    gone.map(({ nevra }) => nevra),
    machine,
  );
  machine.stale();
  return { outcomes, going, result, bare };
}

/** All that goes together with what came along and nobody needs any more; null: nothing goes besides. */
async function withUnneeded(
  going: readonly Farewell[],
  brought: ReadonlySet<string>,
  notOurs: (would: Removal, some: readonly Farewell[]) => string[],
  machine: Machine,
): Promise<readonly Removed[] | null> {
  if (brought.size === 0) return null;
  const names = going.map(({ name }) => name);
  const would = await whatGoes(names, ['--setopt=clean_requirements_on_remove=True'], machine);
  if (typeof would === 'string') return null;
  const extras = would.unused.map(({ name }) => name).filter((name) => brought.has(name));
  if (extras.length === 0) return null;
  // Something that was there before may need one of them although nobody needs that itself.
  const whole = await whatGoes([...names, ...extras], [], machine);
  return typeof whole === 'string' || notOurs(whole, going).length > 0 ? null : [...whole.asked, ...whole.dependent];
}

/** What a removal would take along, or why dnf refuses it. */
async function whatGoes(
  names: readonly string[],
  options: readonly string[],
  machine: Machine,
): Promise<Removal | string> {
  const { stdout, stderr } = await dnfWould([...options, 'remove', '--', ...names], machine);
  if (/^Operation aborted\.$/m.test(`${stdout}\n${stderr}`)) return parseRemoval(stdout);
  return dnfComplaint(`${stdout}\n${stderr}`);
}
