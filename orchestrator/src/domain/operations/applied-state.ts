import type { ResourceResult } from '@muster/protocol';
import { isResourceType, kinds } from '@muster/protocol/module';

/**
 * Applied state: what applies have put in place on one agent, decided from values alone. What is in it comes from the
 * desired sets that the agent was sent; its results only say how each resource fared.
 */

export interface Applied {
  key: string;
  module: string;
  resource_id: string | null;
  type: string;
  identity: string;
  operation_id: string;
  /** Unix seconds: since when it is in this state. */
  since: number;
  state: 'applied' | 'pending_removal' | 'unapplied';
  reason: string | null;
  /** An apply succeeded in putting it in place, and it was not removed since. */
  in_place: 0 | 1;
}

/** The names of a resource in a desired set. */
export interface SentResource {
  key: string;
  module: string;
  id: string | null;
  type: string;
  identity: string;
}

export interface SentSet {
  readonly resources: readonly SentResource[];
  /** Modules whose resources stay although they are not in the set. */
  readonly keep_modules: readonly string[];
}

/** A result in its place: first one for each resource of the set, in its order, then one for each removal. */
export type Told = readonly [position: number, result: ResourceResult];

/** What an apply changes in the applied state of its agent. */
export interface AppliedChanges {
  /** Rows that are new or differ. */
  put: Applied[];
  /** Keys of what was removed. */
  gone: string[];
  /**
   * What the apply told of and is there still: what else was never in place is in no operation any more. Null: it did
   * not get through the set.
   */
  stay: string[] | null;
  /** All removals were told too: besides `stay`, only what is kept is left. */
  whole: boolean;
  /** Everything in the set was as declared, and nothing was to be removed. */
  unchanged: boolean;
}

/** Characters of a reason, and of all reasons of one apply: the whole message is with the operation's results. */
const mostReason = 1000;
const mostReasons = 1024 * 1024;

/** The key under which a resource is known, from what a result says of it. */
export function keyOf(type: string, identity: string): string {
  if (!isResourceType(type)) return `${type}:${identity}`;
  const kind = kinds[type];
  return `${kind.space}:${kind.canonical?.(identity) ?? identity}`;
}

const isWell = ({ status }: ResourceResult): boolean => status === 'unchanged' || status === 'changed';

/**
 * Takes the results of one apply, in pages.
 * @param now Unix seconds
 */
export function createAppliedChanges(set: SentSet, operationId: string, now: number) {
  const { resources } = set;
  const wanted = new Set(resources.map(({ key }) => key));
  const put = new Map<string, Applied>();
  const gone = new Set<string>();
  let told = 0;
  let removals = 0;
  let unchanged = 0;
  let reasonsLeft = mostReasons;

  const reasonOf = ({ status, message }: ResourceResult): string => {
    const whole = message ?? status;
    const reason = whole.length > mostReason ? `${whole.slice(0, mostReason - 1)}…` : whole;
    reasonsLeft -= reason.length;
    return reasonsLeft < 0 ? status : reason;
  };
  const keyAt = ([position, { type, identity }]: Told): string => resources[position]?.key ?? keyOf(type, identity);

  function takeWanted(sent: SentResource, result: ResourceResult, earlier: Applied | undefined): void {
    const { key } = sent;
    told++;
    const well = isWell(result);
    if (result.status === 'unchanged') unchanged++;
    const { id: resource_id, module, type, identity } = sent;
    // The agent's record of what is in place stays as it was: it is removed, or kept, as what it was applied as.
    const untouched = earlier?.in_place === 1 && !well && (result.status === 'skipped' || earlier.type !== type);
    const names = untouched ? namesOf(earlier) : { module, resource_id, type, identity };
    const state = well ? 'applied' : 'unapplied';
    const same =
      earlier !== undefined &&
      result.status === 'unchanged' &&
      earlier.in_place === 1 &&
      earlier.state === state &&
      earlier.module === module &&
      earlier.resource_id === resource_id &&
      earlier.type === type;
    if (same) return;
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
    // What no operation of this agent contained, or is wanted after all, is not its to add.
    if (earlier === undefined || wanted.has(key)) return;
    if (isWell(result)) {
      put.delete(key);
      gone.add(key);
      return;
    }
    gone.delete(key);
    const state = 'pending_removal';
    const since = earlier.state === state ? earlier.since : now;
    put.set(key, { ...earlier, operation_id: operationId, since, state, reason: reasonOf(result) });
  }

  return {
    /** The keys whose rows `take` needs. */
    keysOf: (page: readonly Told[]): string[] => page.map(keyAt),

    /** @param earlier rows of applied state before this apply, by key: at least those of `keysOf` that are there */
    take(page: readonly Told[], earlier: ReadonlyMap<string, Applied>): void {
      for (const one of page) {
        const [position, result] = one;
        const key = keyAt(one);
        const sent = resources[position];
        if (sent === undefined) takeRemoval(key, result, earlier.get(key));
        else takeWanted(sent, result, earlier.get(key));
      }
    },

    /** @param status how the apply ended; one that failed may have been given up before its removals, or at once */
    changes(status: 'succeeded' | 'failed' | 'cancelled'): AppliedChanges {
      const whole = status !== 'failed' && told === resources.length;
      const through = whole || (told === resources.length && told + removals > 0);
      const pending = [...put.values()].filter(({ state }) => state === 'pending_removal');
      return {
        put: [...put.values()],
        gone: [...gone],
        stay: through ? [...wanted, ...pending.map(({ key }) => key)] : null,
        whole,
        unchanged: whole && unchanged === resources.length && removals === 0,
      };
    },
  };
}

const namesOf = ({ module, resource_id, type, identity }: Applied) => ({ module, resource_id, type, identity });
