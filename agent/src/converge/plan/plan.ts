import { isDeepStrictEqual } from 'node:util';
import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { ManagedRecord } from '../../journal/state.ts';
import {
  type Brought,
  type Circumstances,
  type ContentCopies,
  type Difference,
  nothing,
  presenceDrift,
} from '../../resources/provider/provider.ts';
import { providerOf, watchedPaths } from '../../resources/registry.ts';
import { providerFor, whyNoProvider } from './find-provider.ts';

/** Decides what each step must do. Does not access the machine; callers pass in the observations. */

/** A resource to apply or remove, at its position in the order. */
export interface Step {
  position: number;
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
  /** The journal's record of the resource; null if the resource is not managed. */
  record: ManagedRecord | null;
}

export type Observation = { seen: unknown } | { failure: string };

export type Decision =
  | { verdict: 'skip'; message: string }
  /** `awaits`: the missing prerequisites, which earlier steps may provide. */
  | { verdict: 'fail'; message: string; awaits?: NonNullable<Difference['awaits']> }
  | {
      verdict: 'none' | 'act';
      difference: Difference;
      /** IDs of the changed resources that trigger the step. */
      triggeredBy: string[];
      corrective: boolean;
    };

/** The decision for a step that needs a change, or needed none. */
type Acted = Extract<Decision, { verdict: 'none' | 'act' }>;

/**
 * Result of `only_if`: the condition is true, with a note if the plan cannot be certain; or the step is skipped or
 * fails.
 */
export type Condition = { note: string | null } | Extract<Decision, { verdict: 'skip' | 'fail' }>;

export const labelOf = (resource: ResolvedResource): string => resource.id ?? resource.key;

/**
 * Returns all steps of an operation: the desired resources in order, followed by removals of managed resources that are
 * no longer desired.
 * @param managed resources from earlier applies
 * @param keepModules modules whose resources are kept even if they are not desired
 */
export function stepsOf(
  desired: readonly ResolvedResource[],
  managed: ReadonlyMap<string, ManagedRecord>,
  keepModules: readonly string[],
): Step[] {
  const steps: Step[] = desired.map((resource, position) => ({
    position,
    kind: 'apply',
    resource,
    record: managed.get(resource.key) ?? null,
  }));
  for (const record of removals(desired, managed, keepModules))
    steps.push({ position: steps.length, kind: 'remove', resource: record.resource, record });
  return steps;
}

/** Returns the resources to remove: in the reverse order of their application, but contents before their directory. */
function removals(
  desired: readonly ResolvedResource[],
  managed: ReadonlyMap<string, ManagedRecord>,
  keepModules: readonly string[],
): ManagedRecord[] {
  const desiredKeys = new Set(desired.map(({ key }) => key));
  const keptModules = new Set(keepModules);
  const obsolete = [...managed.values()]
    .filter(({ resource }) => !desiredKeys.has(resource.key) && !keptModules.has(resource.module))
    .sort((a, b) => b.ordinal - a.ordinal);
  // A directory is removed right after the last managed path below it.
  const waiting = new Map<string, ManagedRecord>();
  const open = new Map<string, number>();
  const paths = obsolete.map(({ resource }) => providerOf(resource.type)?.path(resource) ?? null);
  const removalPaths = new Set(paths.filter((path) => path !== null));
  const above = (path: string): string[] => ancestors(path).filter((ancestor) => removalPaths.has(ancestor));
  for (const path of paths)
    if (path !== null) for (const ancestor of above(path)) open.set(ancestor, (open.get(ancestor) ?? 0) + 1);
  const ordered: ManagedRecord[] = [];
  const take = (record: ManagedRecord, path: string | null): void => {
    ordered.push(record);
    if (path === null) return;
    // Proceeds from the inside out, because the outer directory also waits for the inner one.
    for (const ancestor of above(path)) {
      const left = (open.get(ancestor) ?? 0) - 1;
      open.set(ancestor, left);
      const waits = waiting.get(ancestor);
      if (left === 0 && waits !== undefined) {
        waiting.delete(ancestor);
        take(waits, ancestor);
      }
    }
  };
  obsolete.forEach((record, i) => {
    const path = paths[i] ?? null;
    if (path !== null && (open.get(path) ?? 0) > 0) waiting.set(path, record);
    else take(record, path);
  });
  return ordered;
}

/** Returns every directory above a path except the root, innermost first. */
export function ancestors(path: string): string[] {
  const all: string[] = [];
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) all.push(path.slice(0, cut));
  return all;
}

/**
 * State of the steps of an operation in progress: changed and failed resources and, in a forecast, the expected state of the
 * machine. Plans and applies update it with the same calls, so that both make the same decisions.
 */
export class StepsState {
  readonly purpose: Circumstances['purpose'];
  readonly #pending: ReadonlyMap<string, readonly string[]>;
  readonly #changed: Map<string, string>;
  readonly #failed: Map<string, string>;
  readonly #removed: Set<string>;
  readonly #made: Set<string>;
  /** Paths whose file or link a step changes. */
  readonly #touched: Set<string>;
  readonly #blocked: ReadonlyMap<string, string>;
  /** Results of the steps that ran early because a resource triggered them immediately, by key. */
  readonly #early = new Map<string, Acted>();
  /** Labels of the steps that may provide each prerequisite. */
  readonly #maySupply: Map<Brought, string[]>;
  /** Prerequisites that a changing step may provide only to its dependents, by key of the step. */
  readonly #toDependents: Map<string, readonly Brought[]>;
  /** Changing steps without a path, by key. `isWide`: the step may create any path. */
  readonly #makers: Map<string, { label: string; isWide: boolean }>;
  readonly #steps: readonly Step[];

  /**
   * @param pending triggers that remain due from an earlier operation
   * @param from the state to copy
   */
  constructor(
    purpose: Circumstances['purpose'],
    pending: ReadonlyMap<string, readonly string[]>,
    steps: readonly Step[],
    from?: StepsState,
  ) {
    this.#steps = steps;
    this.#blocked = from === undefined ? blockedPaths(steps) : from.#blocked;
    this.purpose = purpose;
    this.#pending = pending;
    this.#changed = new Map(from === undefined ? undefined : from.#changed);
    this.#failed = new Map(from === undefined ? undefined : from.#failed);
    this.#removed = new Set(from === undefined ? undefined : from.#removed);
    this.#made = new Set(from === undefined ? undefined : from.#made);
    this.#touched = new Set(from === undefined ? undefined : from.#touched);
    this.#maySupply = new Map(from === undefined ? undefined : from.#maySupply);
    this.#toDependents = new Map(from === undefined ? undefined : from.#toDependents);
    this.#makers = new Map(from === undefined ? undefined : from.#makers);
  }

  /** Returns a copy that continues from this state and assumes that every step succeeds. */
  forecast(): StepsState {
    return new StepsState(this.purpose, this.#pending, this.#steps, this);
  }

  ended(step: Step, status: ResourceResult['status']): void {
    if (step.kind === 'remove') return;
    const { key } = step.resource;
    if (status === 'changed' || status === 'would_change') this.#changed.set(key, labelOf(step.resource));
    // A step that was skipped because of its condition, rather than because of a dependency, blocks no other step.
    if (status === 'skipped' && this.#failedDependency(step) === null) return;
    if (status === 'failed' || status === 'unknown' || status === 'skipped') this.#failed.set(key, status);
  }

  /** Reports whether an earlier operation left a trigger of `source` due. */
  isPending({ resource }: Step, source: Step): boolean {
    return this.#pending.get(resource.key)?.includes(labelOf(source.resource)) === true;
  }

  /** Records that a step was executed early. */
  triggeredEarly({ resource: { key } }: Step, decision: Acted): void {
    const earlier = this.#early.get(key);
    // The first execution may have made changes, whereas a later execution only handled a trigger.
    const { difference, corrective } = earlier ?? decision;
    const triggeredBy = [...new Set([...(earlier?.triggeredBy ?? []), ...decision.triggeredBy])];
    this.#early.set(key, { verdict: 'act', difference, corrective, triggeredBy });
  }

  /** Returns the result of an execution before the step's turn; null if there was none. */
  earlyDecision({ resource }: Step): Acted | null {
    return this.#early.get(resource.key) ?? null;
  }

  /** Records a finished removal, because the parent directories were observed while the object still existed. */
  removed({ resource }: Step): void {
    // After the agent restarts, only a removed resource's key is known.
    const path = resource.key.startsWith('path:') ? resource.key.slice('path:'.length) : null;
    if (path === null) return;
    this.#removed.add(path);
    this.#made.delete(path);
  }

  /** Records the expected effect of a step on later steps. */
  expects(step: Step, decision: Decision): void {
    if (decision.verdict !== 'act') {
      const statuses = { none: 'unchanged', skip: 'skipped', fail: 'failed' } as const;
      this.ended(step, statuses[decision.verdict]);
      return;
    }
    this.ended(step, 'would_change');
    const provider = providerFor(step);
    for (const what of provider?.brings(step.resource) ?? [])
      this.#maySupply.set(what, [...(this.#maySupply.get(what) ?? []), labelOf(step.resource)]);
    const toDependents = step.kind === 'apply' ? (provider?.bringsToDependents?.(step.resource) ?? []) : [];
    if (toDependents.length > 0) this.#toDependents.set(step.resource.key, toDependents);
    const path = provider?.path(step.resource) ?? null;
    if (path === null && provider !== null && step.kind === 'apply') {
      const isWide = provider.brings(step.resource).length > 0;
      this.#makers.set(step.resource.key, { label: labelOf(step.resource), isWide });
    }
    for (const each of changedPaths(step)) this.#touched.add(each);
    const ensure = decision.difference.changes.find(({ field }) => field === 'ensure');
    if (path === null || ensure === undefined) return;
    if (ensure.to === 'absent') {
      this.#removed.add(path);
      this.#made.delete(path);
      return;
    }
    this.#removed.delete(path);
    this.#made.add(path);
  }

  /**
   * Returns why a step must be skipped: one of its dependencies did not succeed. Returns null if it need not be
   * skipped.
   */
  obstacle(step: Step, desired: ReadonlyMap<string, ResolvedResource>): string | null {
    if (step.kind === 'remove') return null;
    const key = this.#failedDependency(step);
    if (key === null) return null;
    const status = this.#failed.get(key);
    const on = desired.get(key);
    return `skipped, because \`${on === undefined ? key : labelOf(on)}\` ${status === 'skipped' ? 'was skipped' : status === 'unknown' ? 'may have run partly' : 'failed'}`;
  }

  /** Reports whether a resource failed, or may have run partly. */
  hasFailed(key: string): boolean {
    const status = this.#failed.get(key);
    return status === 'failed' || status === 'unknown';
  }

  /** Returns the key of the first dependency that did not succeed; null if there is none. */
  #failedDependency({ resource }: Step): string | null {
    return dependenciesOf(resource).find((key) => this.#failed.has(key)) ?? null;
  }

  /**
   * Reports whether a path is expected to exist after the steps planned so far.
   * @param exists whether the path exists now
   */
  willExist(path: string, exists: boolean): boolean {
    if (this.#made.has(path) || [...this.#made].some((made) => made.startsWith(`${path}/`))) return true;
    return exists && ![path, ...ancestors(path)].some((way) => this.#removed.has(way));
  }

  /** Returns the labels of changing steps that may create an undeclared path, such as packages and scripts. */
  mayMakePaths({ resource }: Step): string[] {
    const needed = dependenciesOf(resource);
    return [...this.#makers].flatMap(([key, { label, isWide }]) => (isWide || needed.includes(key) ? [label] : []));
  }

  /** Returns the labels of all steps that have changed or, in a plan, will change. */
  changedLabels(): string[] {
    return [...this.#changed.values()];
  }

  /**
   * Returns the unsuccessful step that was expected to create or remove a path, and whether the path was expected to
   * exist afterward; null if there is none.
   */
  failedPath(path: string): { label: string; exists: boolean } | null {
    if (this.#failed.size === 0) return null;
    for (const step of this.#steps) {
      const { kind, resource } = step;
      if (kind === 'remove' || !this.#failed.has(resource.key)) continue;
      const declared = providerFor(step)?.path(resource) ?? null;
      if (declared === null) continue;
      const exists = !('ensure' in resource.body && resource.body.ensure === 'absent');
      const [outer, inner] = exists ? [path, declared] : [declared, path];
      if (inner === outer || inner.startsWith(`${outer}/`)) return { label: labelOf(resource), exists };
    }
    return null;
  }

  circumstances(step: Step): Circumstances {
    const { resource, record } = step;
    const by = (sources: readonly string[]): string[] =>
      sources.flatMap((key) => {
        const label = this.#changed.get(key);
        return label === undefined ? [] : [label];
      });
    const pending = this.purpose === 'drift' ? [] : (this.#pending.get(resource.key) ?? []);
    const withPending = (sources: readonly string[]): string[] =>
      sources.length === 0 ? [] : [...new Set([...pending, ...by(sources)])];
    return {
      purpose: this.purpose,
      rerunBy: withPending(resource.rerun_on),
      reloadBy: withPending(resource.reload_on),
      restartBy: withPending(resource.restart_on),
      succeeded: record?.succeeded ?? null,
      willBeRemoved: (path) => this.#removed.has(path),
      willBeThere: (path) => this.#made.has(path),
      willChange: (path) => [path, ...ancestors(path)].some((part) => this.#touched.has(part)),
      willContain: (directory) => [...this.#made].some((path) => path.startsWith(`${directory}/`)),
    };
  }

  /**
   * Returns why nothing can exist at this path: a parent path is declared absent or as a file. Returns null if nothing
   * prevents it.
   */
  blockerOf(path: string): string | null {
    for (const ancestor of ancestors(path)) {
      const reason = this.#blocked.get(ancestor);
      if (reason !== undefined) return reason;
    }
    return null;
  }

  /** Reports whether the resource is declared absent and a package that it depends on may create it. */
  mayBeUnpacked({ kind, resource: { body, depends_on } }: Step): boolean {
    if (kind === 'remove' || !('ensure' in body) || body.ensure !== 'absent') return false;
    return depends_on.some((key) => key.startsWith('package-') && this.#changed.has(key));
  }

  /**
   * Returns the labels of the earlier steps that may provide the missing prerequisites of this step.
   * @returns null if no step provides one of them
   */
  suppliersOf(step: Step, awaits: NonNullable<Difference['awaits']>): string[] | null {
    const all = new Set<string>();
    for (const { kind } of awaits) {
      const suppliers = [...(this.#maySupply.get(kind) ?? []), ...this.#dependenciesThatSupply(kind, step.resource)];
      if (suppliers.length === 0) return null;
      for (const label of suppliers) all.add(label);
    }
    return [...all];
  }

  #dependenciesThatSupply(kind: Brought, resource: ResolvedResource): string[] {
    if (this.#toDependents.size === 0) return [];
    const byKey = desiredByKey(this.#steps);
    const reached = new Set<string>();
    const walk = (keys: readonly string[]): void => {
      for (const key of keys) {
        if (reached.has(key)) continue;
        reached.add(key);
        walk(byKey.get(key)?.depends_on ?? []);
      }
    };
    walk(resource.depends_on);
    return [...reached].flatMap((key) => {
      const supplier = this.#toDependents.get(key)?.includes(kind) === true ? byKey.get(key) : undefined;
      return supplier === undefined ? [] : [labelOf(supplier)];
    });
  }
}

const dependenciesOf = ({ depends_on, reload_on, restart_on, rerun_on }: ResolvedResource): string[] => [
  ...depends_on,
  ...reload_on,
  ...restart_on,
  ...rerun_on,
];

/** Maps each path below which nothing can exist to the reason. */
function blockedPaths(steps: readonly Step[]): Map<string, string> {
  const blocked = new Map<string, string>();
  for (const step of steps) {
    const { kind, resource } = step;
    // A resource with a condition may be skipped, so it blocks no path.
    if (kind === 'remove' || resource.only_if !== undefined) continue;
    const path = providerFor(step)?.path(resource) ?? null;
    if (path === null) continue;
    const { body } = resource;
    if ('ensure' in body && body.ensure === 'absent')
      blocked.set(path, `${path} is declared absent, so no path below it can exist`);
    else if (
      resource.type === 'download' ||
      (resource.type === 'file-unix' && !('symlink' in body && body.symlink != null))
    )
      blocked.set(path, `${path} is declared as a file, so no path below it can exist`);
  }
  return blocked;
}

/** Returns every declared path, and every directory above it. */
export function declaredPaths(desired: Iterable<ResolvedResource>): Set<string> {
  const declared = new Set<string>();
  for (const resource of desired) {
    const path = providerFor({ kind: 'apply', resource })?.path(resource) ?? null;
    if (path === null || ('ensure' in resource.body && resource.body.ensure === 'absent')) continue;
    declared.add(path);
    for (const ancestor of ancestors(path)) declared.add(ancestor);
  }
  return declared;
}

/** Returns the paths of the files and links that a change to the resource replaces; empty for a directory. */
export function changedPaths({ resource }: Pick<Step, 'resource'>): string[] {
  const provider = providerOf(resource.type);
  if (provider === null || resource.type === 'directory-unix') return [];
  const path = provider.path(resource);
  const read = new Set(provider.reads?.(resource) ?? []);
  return [...(path === null ? [] : [path]), ...watchedPaths(resource).filter((each) => !read.has(each))];
}

/** Returns the paths of all files that belong to resources, and every directory above them. */
export function managedPaths(resources: Iterable<ResolvedResource>): Set<string> {
  const paths = new Set<string>();
  for (const resource of resources) {
    const path = providerOf(resource.type)?.path(resource) ?? null;
    for (const each of [...(path === null ? [] : [path]), ...watchedPaths(resource)]) {
      paths.add(each);
      for (const ancestor of ancestors(each)) paths.add(ancestor);
    }
  }
  return paths;
}

/** Returns the paths of all declared objects, except those declared absent. Omits the directories above them. */
export const keptPaths = (resources: readonly ResolvedResource[]): Set<string> =>
  new Set(
    resources
      .filter(({ body }) => !('ensure' in body && body.ensure === 'absent'))
      .flatMap((resource) => {
        const path = providerOf(resource.type)?.path(resource) ?? null;
        return [...(path === null ? [] : [path]), ...watchedPaths(resource).map((each) => each.replace(/\/$/, ''))];
      }),
  );

/** Returns the IDs of all resources that trigger a step. */
const triggersOf = ({ rerunBy, reloadBy, restartBy }: Circumstances): string[] => [
  ...new Set([...rerunBy, ...reloadBy, ...restartBy]),
];

/**
 * Decides what one step must do.
 * @param observation what the provider observed, or why it could not observe the resource
 * @param copies copies of file contents, to show what a removal restores
 */
export function decide(
  step: Step,
  observation: Observation,
  stepsState: StepsState,
  copies: Pick<ContentCopies, 'read'>,
): Decision {
  if ('failure' in observation) return { verdict: 'fail', message: observation.failure };
  const { resource, record } = step;
  const provider = providerFor(step);
  if (provider === null) return { verdict: 'fail', message: whyNoProvider(resource) };
  // The record has the format of the earlier type, so the resource must first be restored with that type.
  if (step.kind === 'apply' && record?.before != null && record.resource.type !== resource.type)
    return {
      verdict: 'fail',
      message: `it is managed as ${record.resource.type} here; apply once without it, then declare it as ${resource.type}`,
    };
  const circumstances = stepsState.circumstances(step);
  let difference: Difference;
  const before = record?.before ?? null;
  try {
    if (step.kind === 'apply') difference = provider.diff(resource, observation.seen, circumstances);
    else if (before === null)
      difference = nothing('left unchanged: it was already as declared before Muster managed it');
    else difference = provider.diffRemoval(resource, before, observation.seen, circumstances, copies);
  } catch (error) {
    if (error instanceof HostFailure) return { verdict: 'fail', message: error.message };
    throw error;
  }
  const path = provider.path(resource);
  const blocker = step.kind === 'apply' && path !== null ? stepsState.blockerOf(path) : null;
  if (blocker !== null) return { verdict: 'fail', message: blocker };
  const triggeredBy = triggersOf(circumstances);
  if (difference.action === 'none') {
    // A package may create the path, but an apply must not do more than its plan.
    if (stepsState.purpose === 'plan' && stepsState.mayBeUnpacked(step))
      return { verdict: 'act', difference: unpackedRemoval, triggeredBy, corrective: false };
    return { verdict: 'none', difference, triggeredBy: [], corrective: false };
  }
  const { awaits } = difference;
  if (awaits !== undefined) {
    const message = missingPrerequisites(resource, awaits);
    // The prerequisite existed when the resource was applied, so its absence is drift.
    if (stepsState.purpose === 'drift') difference = { ...difference, message };
    // Another resource may provide the prerequisite. A plan cannot determine whether that resource will do so, and an
    // apply observes again later.
    else {
      const suppliers = stepsState.purpose === 'plan' ? stepsState.suppliersOf(step, awaits) : null;
      if (suppliers === null) return { verdict: 'fail', message, awaits };
      difference = { ...difference, message: availabilityNote(suppliers, message, difference.message) };
    }
  }
  return {
    verdict: 'act',
    difference,
    triggeredBy,
    corrective:
      step.kind === 'apply' &&
      triggeredBy.length === 0 &&
      isCorrective(step, () => provider.diff(resource, observation.seen, { ...circumstances, purpose: 'drift' })),
  };
}

const unpackedRemoval: Difference = {
  ...presenceDrift(),
  message: 'already absent; will be removed if a package that it depends on adds it',
};

/** Describes the missing prerequisites without secret names. */
const missingPrerequisites = (
  { sensitive_fields }: ResolvedResource,
  awaits: NonNullable<Difference['awaits']>,
): string =>
  sensitive_fields.includes('owner') || sensitive_fields.includes('group')
    ? 'its owner or its group, which is sensitive and not shown, does not exist'
    : awaits.map(({ message }) => message).join('; ');

/**
 * Returns the note for a plan. Only the apply can determine whether the prerequisite appears, and it fails if the
 * prerequisite is missing.
 */
function availabilityNote(suppliers: readonly string[], missing: string, message: string | undefined): string {
  const [what] = missing.split(';');
  const named = suppliers.slice(0, 3).map((label) => `\`${label}\``);
  const more = suppliers.length > named.length ? ` and ${suppliers.length - named.length} more` : '';
  const available = `will be available after ${named.join(', ')}${more}; now ${what}`;
  return [available, ...(message === undefined ? [] : [message])].join('\n');
}

/**
 * Reports whether a change repairs drift. This is the case if the declaration already succeeded on this machine, no
 * other declaration was tried since, and a drift check detects the difference. For example, a newer version of a
 * package is not drift.
 */
function isCorrective({ resource, record }: Step, asDrift: () => Difference): boolean {
  const succeeded = record?.succeeded ?? null;
  if (record === null || succeeded === null || succeeded.type !== resource.type) return false;
  const isSame = ({ body, source }: ResolvedResource) =>
    isDeepStrictEqual([body, source], [resource.body, resource.source]);
  if (!isSame(succeeded) || !isSame(record.resource)) return false;
  try {
    const { action, changes } = asDrift();
    return action !== 'none' && changes.length > 0;
  } catch (error) {
    if (error instanceof HostFailure) return true;
    throw error;
  }
}

/**
 * Decides what the next step of a plan does, and records the expected effect.
 * @param observe called only if the step is not skipped
 * @param ask checks the condition of the step; called only if no dependency failed
 */
export async function planStep(
  step: Step,
  observe: () => Observation | Promise<Observation>,
  stepsState: StepsState,
  desired: ReadonlyMap<string, ResolvedResource>,
  copies: Pick<ContentCopies, 'read'>,
  ask: () => Condition | Promise<Condition>,
): Promise<{ decision: Decision; observation: Observation | null }> {
  const obstacle = stepsState.obstacle(step, desired);
  const condition: Condition = obstacle === null ? await ask() : { verdict: 'skip', message: obstacle };
  const observation = 'verdict' in condition ? null : await observe();
  const decision =
    'verdict' in condition || observation === null
      ? (condition as Decision)
      : withNote(decide(step, observation, stepsState, copies), condition.note);
  stepsState.expects(step, decision);
  return { decision, observation };
}

function withNote(decision: Decision, note: string | null): Decision {
  if (decision.verdict !== 'act' || note === null) return decision;
  const { difference } = decision;
  const message = difference.message === undefined ? note : `${note}\n${difference.message}`;
  return { ...decision, difference: { ...difference, message } };
}

export const desiredByKey = (steps: readonly Step[]): Map<string, ResolvedResource> =>
  new Map(steps.filter(({ kind }) => kind === 'apply').map(({ resource }) => [resource.key, resource]));

/**
 * Returns the triggers that remain due after an operation, because a resource changed and the resource that it triggers
 * was not reached.
 * @param before triggers that were due when the operation began
 * @param keepModules modules whose resources are kept even if they are not desired; null if the operation did not
 * complete
 */
export function triggersLeft(
  steps: readonly Step[],
  results: readonly Pick<ResourceResult, 'status'>[],
  before: ReadonlyMap<string, readonly string[]>,
  keepModules: readonly string[] | null,
  managed: ReadonlyMap<string, ManagedRecord>,
): [string, string[]][] {
  const stepsState = new StepsState('apply', before, steps);
  const left = new Map<string, string[]>();
  for (const [key, ids] of before) {
    const record = managed.get(key);
    if (keepModules === null || (record !== undefined && keepModules.includes(record.resource.module)))
      left.set(key, [...ids]);
  }
  // Records all results first, because a skipped step may precede the steps that trigger it.
  for (const step of steps) stepsState.ended(step, results[step.position]?.status ?? 'skipped');
  const labels = new Map(steps.map(({ resource }) => [resource.key, labelOf(resource)]));
  for (const step of steps) {
    if (step.kind === 'remove') continue;
    // A failed resource may have changed although the service that it triggers immediately was not applied.
    const failed = (step.resource.immediate_on ?? []).filter((key) => stepsState.hasFailed(key));
    const unserved = failed.flatMap((key) => labels.get(key) ?? []);
    const due = [...new Set([...triggersOf(stepsState.circumstances(step)), ...unserved])];
    const status = results[step.position]?.status;
    // A step that was observed and needed no action, such as a service that is not running, no longer needs its
    // trigger.
    if (due.length > 0 && status !== 'changed' && status !== 'unchanged') left.set(step.resource.key, due);
    else left.delete(step.resource.key);
  }
  return [...left];
}
