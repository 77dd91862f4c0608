import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { ManagedRecord } from '../../journal/state.ts';
import type { Brought, Circumstances, Difference } from '../../resources/provider/provider.ts';
import type { Acted, Decision } from './decision.ts';
import { providerFor } from './find-provider.ts';
import { ancestors, blockedPaths, changedPaths } from './step-paths.ts';
import { desiredByKey, labelOf, type Step } from './steps.ts';

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
    // A step that was skipped because of its condition, rather than because of a dependency, blocks no other step. A
    // step without a condition was skipped because it must wait, and blocks its dependents.
    const { only_if } = step.resource;
    if (status === 'skipped' && only_if !== undefined && this.#failedDependency(step) === null) return;
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

/** Returns the IDs of all resources that trigger a step. */
export const triggersOf = ({ rerunBy, reloadBy, restartBy }: Circumstances): string[] => [
  ...new Set([...rerunBy, ...reloadBy, ...restartBy]),
];

/**
 * Returns the triggers that remain due after an operation, because a resource changed and the resource that it triggers
 * failed or was not reached.
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
