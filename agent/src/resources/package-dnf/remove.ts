import { dnfAtOnce, dnfWould } from '../../host/dnf.ts';
import { dnfComplaint, isDnfLocked, parseRemoval, type Removal, scriptComplaint } from '../../host/dnf-output.ts';
import { untilUnlocked } from '../../host/package-lock.ts';
import { splitName } from '../../host/rpm.ts';
import type { TransactionResult } from '../../host/transaction.ts';
import type { Machine, Outcome } from '../provider.ts';
import { bodyOf, rpmDatabase, seenIn } from './seen.ts';

/** One package that is to go. */
export interface Farewell {
  name: string;
  /** Names of those that came along with it because of us: they go too, if nothing else needs them. */
  brought: readonly string[];
}

/**
 * Removes packages in one transaction: those, and what they alone needed and we brought. Nothing else goes with them.
 * @returns by name: why it is still there, or what is to be said about its removal
 */
export async function removeAll(farewells: readonly Farewell[], machine: Machine): Promise<Map<string, Outcome>> {
  // Whoever had the lock may have installed what needs them: what goes is found out anew.
  const { outcomes, going, result, bare } = await untilUnlocked(
    () => removeAtOnce(farewells, machine),
    machine,
    ({ result }) => result !== null && isDnfLocked(result.output),
  );
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

interface Attempt {
  /** Of those that are not tried. */
  outcomes: Map<string, Outcome>;
  going: readonly Farewell[];
  /** Null when none is tried. */
  result: TransactionResult | null;
  bare(name: string): string;
}

/** Finds out what goes, and has it go unless somebody has the packages for himself. */
async function removeAtOnce(farewells: readonly Farewell[], machine: Machine): Promise<Attempt> {
  const outcomes = new Map<string, Outcome>();
  const before = await machine.database(rpmDatabase);
  const present = farewells.filter(({ name }) => seenIn(before, name).installed !== null);
  const bare = (name: string): string => splitName(name, (candidate) => before.packages.has(candidate))[0];

  // What came along and is declared itself goes only when it is told to.
  const declared = new Set(machine.resourcesOf('package-dnf').map((resource) => bare(bodyOf(resource).name)));
  const broughtBy = (some: readonly Farewell[]): string[] =>
    some.flatMap(({ brought }) => brought).filter((name) => !declared.has(name));

  /** Why these cannot go together; null: they can. */
  const refused = async (some: readonly Farewell[]): Promise<string | null> => {
    const would = await whatGoes(
      some.map(({ name }) => name),
      [],
      machine,
    );
    if (typeof would === 'string') return would;
    const ours = new Set([...some.map(({ name }) => bare(name)), ...broughtBy(some)]);
    const others = would.dependent.filter((name) => !ours.has(name));
    return others.length === 0
      ? null
      : `not removed, because others need it and would go with it: ${others.slice(0, 20).join(', ')}`;
  };

  const going: Farewell[] = [];
  if (present.length === 0) return { outcomes, going, result: null, bare };
  if ((await refused(present)) === null) going.push(...present);
  else
    for (const farewell of present) {
      const reason = await refused([...going, farewell]);
      if (reason === null) going.push(farewell);
      else outcomes.set(farewell.name, { failure: reason });
    }
  if (going.length === 0) return { outcomes, going, result: null, bare };
  const names = [
    ...going.map(({ name }) => name),
    ...(await unneeded(going, new Set(broughtBy(going)), bare, machine)),
  ];
  const result = await dnfAtOnce(['remove', '--', ...names], machine);
  machine.stale();
  return { outcomes, going, result, bare };
}

/** What nobody needs any more of what came along. */
async function unneeded(
  going: readonly Farewell[],
  brought: ReadonlySet<string>,
  bare: (name: string) => string,
  machine: Machine,
): Promise<string[]> {
  if (brought.size === 0) return [];
  const names = going.map(({ name }) => name);
  const would = await whatGoes(names, ['--setopt=clean_requirements_on_remove=True'], machine);
  if (typeof would === 'string') return [];
  const extras = would.unused.filter((name) => brought.has(name));
  if (extras.length === 0) return [];
  // Something that was there before may need one of them although nobody needs that itself.
  const whole = await whatGoes([...names, ...extras], [], machine);
  const ours = new Set([...names.map(bare), ...extras, ...brought]);
  return typeof whole === 'string' || whole.dependent.some((name) => !ours.has(name)) ? [] : extras;
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
