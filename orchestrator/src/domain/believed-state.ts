import type { ResourceResult } from '@muster/protocol';
import { isResourceType, kinds } from '@muster/protocol/module';

/** What an apply teaches about a machine: decided here, from values alone. */

export interface Believed {
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
}

/** The key under which a resource is known, from what a result says of it. */
export function keyOf(type: string, identity: string): string {
  if (!isResourceType(type)) return `${type}:${identity}`;
  const kind = kinds[type];
  return `${kind.space}:${kind.canonical?.(identity) ?? identity}`;
}

/**
 * What changes in the belief after an apply. Nothing for a resource that is as it was believed to be, so that an apply
 * that did nothing writes nothing.
 * @param before what was believed
 * @param results every result of the apply
 * @param now Unix seconds
 */
export function believe(
  before: readonly Believed[],
  results: readonly ResourceResult[],
  operationId: string,
  now: number,
): { put: Believed[]; forget: string[] } {
  const known = new Map(before.map((belief) => [belief.key, belief]));
  const put = new Map<string, Believed>();
  const forget = new Set<string>();
  for (const result of results) {
    const key = keyOf(result.type, result.identity);
    const earlier = known.get(key);
    const succeeded = result.status === 'unchanged' || result.status === 'changed';
    if (result.action === 'remove') {
      if (succeeded) {
        if (earlier) forget.add(key);
        continue;
      }
    } else forget.delete(key);
    const state = result.action === 'remove' ? 'pending_removal' : succeeded ? 'applied' : 'unapplied';
    const belief: Believed = {
      key,
      module: result.module,
      resource_id: result.id,
      type: result.type,
      identity: result.identity,
      operation_id: operationId,
      since: earlier?.state === state ? earlier.since : now,
      state,
      reason: succeeded ? null : (result.message ?? result.status),
    };
    const same =
      earlier !== undefined &&
      result.status === 'unchanged' &&
      earlier.state === state &&
      earlier.module === belief.module &&
      earlier.resource_id === belief.resource_id &&
      earlier.type === belief.type;
    if (!same) put.set(key, belief);
  }
  return { put: [...put.values()], forget: [...forget] };
}
