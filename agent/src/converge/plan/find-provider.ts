import type { ResolvedResource } from '@muster/protocol/module';
import { bodyFault } from '../../resources/provider/body-shape.ts';
import { whyNotCarriedOut } from '../../resources/provider/foreign.ts';
import type { Provider } from '../../resources/provider/provider.ts';
import { providerOf } from '../../resources/provider/registry.ts';

/** Who carries out a step, if anybody here can. */

const faults = new WeakMap<ResolvedResource, string | null>();

function faultOf(resource: ResolvedResource): string | null {
  let fault = faults.get(resource);
  if (fault === undefined) {
    fault = bodyFault(resource);
    faults.set(resource, fault);
  }
  return fault;
}

/**
 * Nothing of a resource whose body does not fit its kind may be asked. What is removed has been applied once, and so was
 * fit for the agent of that time: whatever is known now, it is tried.
 * @returns null when nobody can: `cannotCarryOut` says why
 */
export const providerFor = ({
  kind,
  resource,
}: {
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
}): Provider | null => (kind === 'apply' && faultOf(resource) !== null ? null : providerOf(resource.type));

export const cannotCarryOut = (resource: ResolvedResource): string =>
  (providerOf(resource.type) === null ? null : faultOf(resource)) ?? whyNotCarriedOut(resource.type);
