import type { ResolvedResource } from '@muster/protocol/module';
import { bodyFault } from '../../resources/provider/body-shape.ts';
import { whyNotApplicable } from '../../resources/provider/foreign.ts';
import type { Provider } from '../../resources/provider/provider.ts';
import { providerOf } from '../../resources/registry.ts';

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
 * Returns the provider that executes a step. A declaration with an invalid body has no provider. A removal with an
 * invalid body does have one, because an earlier version of the agent accepted that body.
 * @returns null if no provider can execute the step; `whyNoProvider` then returns the reason
 */
export const providerFor = ({
  kind,
  resource,
}: {
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
}): Provider | null => (kind === 'apply' && faultOf(resource) !== null ? null : providerOf(resource.type));

export const whyNoProvider = (resource: ResolvedResource): string =>
  (providerOf(resource.type) === null ? null : faultOf(resource)) ?? whyNotApplicable(resource.type);
