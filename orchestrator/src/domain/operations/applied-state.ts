import type { ResourceResult } from '@muster/protocol';
import { isResourceType, kinds } from '@muster/protocol/module';

/**
 * Computes applied state: the resources that an agent's applies have put in place. The content comes from the
 * dispatched desired states; the agent's results contribute only the status of each resource.
 */

export interface Applied {
  key: string;
  module: string;
  resource_id: string | null;
  type: string;
  identity: string;
  operation_id: string;
  /** When the resource entered `state`, Unix seconds. */
  since: number;
  state: 'applied' | 'pending_removal' | 'unapplied';
  reason: string | null;
  /** 1 if an apply put the resource in place and no later apply removed it; otherwise 0. */
  in_place: 0 | 1;
}

export interface SentResource {
  key: string;
  module: string;
  id: string | null;
  type: string;
  identity: string;
  depends_on: readonly string[];
  /** The condition that the agent evaluates on its machine; absent without one. */
  only_if?: unknown;
}

export interface SentSet {
  readonly resources: readonly SentResource[];
  /** Modules that are not in the desired state but whose resources remain in place. */
  readonly keep_modules: readonly string[];
}

/** A result with its position: desired resources first, in their order, then removals. */
export type Reported = readonly [position: number, result: ResourceResult];

/** Changes that an apply makes to its agent's applied state. */
export interface AppliedChanges {
  /** Rows that are new or changed. */
  put: Applied[];
  /** Keys of resources to remove from applied state. */
  removed: string[];
  /**
   * Keys of the reported resources that remain. Other rows of resources that were never in place are dropped. Null if
   * the apply did not process the whole desired state.
   */
  stay: string[] | null;
  /** Whether the agent also reported all removals. If so, only the resources in `stay` and in kept modules remain. */
  complete: boolean;
  /** Whether every desired resource was already as declared, and nothing was removed. */
  unchanged: boolean;
}

/**
 * Maximum number of characters per reason, and for all reasons of one apply. The operation's results contain the full
 * messages.
 */
const maxReason = 1000;
const maxReasons = 1024 * 1024;

/** Computes the key of a resource from the type and identity in a result. */
export function keyOf(type: string, identity: string): string {
  if (!isResourceType(type)) return `${type}:${identity}`;
  const kind = kinds[type];
  return `${kind.space}:${kind.canonical?.(identity) ?? identity}`;
}

/**
 * Reports whether a resource was skipped because its own condition was false, rather than because a dependency failed.
 */
const isUnmet = (
  { only_if, depends_on }: SentResource,
  { status }: ResourceResult,
  failed: ReadonlySet<string>,
): boolean => status === 'skipped' && only_if !== undefined && !depends_on.some((key) => failed.has(key));

/** Returns a function that truncates a result's reason to the per-apply limits. */
function createReasons(): (result: ResourceResult) => string {
  let left = maxReasons;
  return ({ status, message }) => {
    const text = message ?? status;
    const reason = text.length > maxReason ? `${text.slice(0, maxReason - 1)}…` : text;
    left -= reason.length;
    return left < 0 ? status : reason;
  };
}

const isHealthy = ({ status }: ResourceResult): boolean => status === 'unchanged' || status === 'changed';

/**
 * Collects an apply's results, in pages.
 * @param now Unix seconds
 * @param ending how the apply ended; a canceled apply also skips resources whose condition is true
 */
export function createAppliedChanges(
  set: SentSet,
  operationId: string,
  now: number,
  ending: 'succeeded' | 'failed' | 'cancelled',
) {
  const { resources } = set;
  const declaredKeys = new Set(resources.map(({ key }) => key));
  const put = new Map<string, Applied>();
  const removed = new Set<string>();
  const failed = new Set<string>();
  let reported = 0;
  let removals = 0;
  let unchanged = 0;
  const reasonOf = createReasons();

  const keyAt = ([position, { type, identity }]: Reported): string => resources[position]?.key ?? keyOf(type, identity);

  function takeDeclared(sent: SentResource, result: ResourceResult, earlier: Applied | undefined): void {
    const { key, id: resource_id, module, type, identity } = sent;
    reported++;
    const well = isHealthy(result);
    if (result.status === 'unchanged') unchanged++;
    if (ending !== 'cancelled' && isUnmet(sent, result, failed)) {
      // A resource in place keeps its state. A resource that was never in place is not desired by this apply.
      if (earlier?.in_place === 0) removed.add(key);
      else if (earlier !== undefined && earlier.state !== 'applied')
        put.set(key, { ...earlier, operation_id: operationId, since: now, state: 'applied', reason: null });
      return;
    }
    if (!well) failed.add(key);
    // The apply did not touch the resource, so its row keeps the names of the last apply that did.
    const untouched = earlier?.in_place === 1 && !well && (result.status === 'skipped' || earlier.type !== type);
    const names = untouched ? namesOf(earlier) : { module, resource_id, type, identity };
    const state = well ? 'applied' : 'unapplied';
    if (result.status === 'unchanged' && isRecorded(sent, state, earlier)) return;
    put.set(key, {
      key,
      ...names,
      operation_id: operationId,
      since: earlier?.state === state ? earlier.since : now,
      state,
      reason: well ? null : reasonOf(result),
      in_place: well ? 1 : (earlier?.in_place ?? 0),
    });
  }

  function takeRemoval(key: string, result: ResourceResult, earlier: Applied | undefined): void {
    removals++;
    // A removal adds no row for a resource that is unknown or declared again.
    if (earlier === undefined || declaredKeys.has(key)) return;
    if (isHealthy(result)) {
      put.delete(key);
      removed.add(key);
      return;
    }
    removed.delete(key);
    const state = 'pending_removal';
    const since = earlier.state === state ? earlier.since : now;
    put.set(key, { ...earlier, operation_id: operationId, since, state, reason: reasonOf(result) });
  }

  return {
    /** Returns the keys for which `take` needs rows. */
    keysOf: (page: readonly Reported[]): string[] => page.map(keyAt),

    /**
     * Adds a page of results.
     * @param earlier rows from before this apply, by key; must contain every existing row whose key `keysOf` returns
     */
    take(page: readonly Reported[], earlier: ReadonlyMap<string, Applied>): void {
      for (const one of page) {
        const [position, result] = one;
        const key = keyAt(one);
        const sent = resources[position];
        if (sent === undefined) takeRemoval(key, result, earlier.get(key));
        else takeDeclared(sent, result, earlier.get(key));
      }
    },

    changes(): AppliedChanges {
      // A failed apply may have stopped before its removals, or even before its first resource.
      const complete = ending !== 'failed' && reported === resources.length;
      const through = complete || (reported === resources.length && reported + removals > 0);
      const pending = [...put.values()].filter(({ state }) => state === 'pending_removal');
      return {
        put: [...put.values()],
        removed: [...removed],
        stay: through ? [...declaredKeys, ...pending.map(({ key }) => key)] : null,
        complete,
        unchanged: complete && unchanged === resources.length && removals === 0,
      };
    },
  };
}

/** Reports whether the row from before the apply already has these names and this state. */
const isRecorded = ({ module, id, type }: SentResource, state: Applied['state'], earlier: Applied | undefined) =>
  earlier !== undefined &&
  earlier.in_place === 1 &&
  earlier.state === state &&
  earlier.module === module &&
  earlier.resource_id === id &&
  earlier.type === type;

const namesOf = ({ module, resource_id, type, identity }: Applied) => ({ module, resource_id, type, identity });
