import type { ResolvedResource } from '@muster/protocol/module';
import type { ManagedRecord } from '../../journal/state.ts';

/** A resource to apply or remove, at its position in the order. */
export interface Step {
  position: number;
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
  /** The journal's record of the resource; null if the resource is not managed. */
  record: ManagedRecord | null;
}

export const labelOf = (resource: ResolvedResource): string => resource.id ?? resource.key;

export const desiredByKey = (steps: readonly Step[]): Map<string, ResolvedResource> =>
  new Map(steps.filter(({ kind }) => kind === 'apply').map(({ resource }) => [resource.key, resource]));
