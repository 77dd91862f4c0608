import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Provider } from './provider.ts';

/**
 * A fault in the code of one kind is a failure of that resource, not of the operation it is in: the other resources go
 * on, and whoever reads the result is told to report it.
 */

/** What the engine asks with a resource in hand, and takes a HostFailure from. */
const asked = [
  'check',
  'observe',
  'diff',
  'remember',
  'apply',
  'observeForRemoval',
  'diffRemoval',
  'remove',
  'together',
  'afterwards',
  'claim',
  'inBrief',
] as const satisfies readonly (keyof Provider)[];

/**
 * What the engine asks as it puts an operation together, before any resource has its turn, with the answer that is in
 * nobody's way. `check` asks the first of them again, so that the resource fails when its turn comes.
 */
const defaults = {
  path: null,
  brings: [],
  bringsToDependents: [],
  makes: [],
  watched: [],
  canTell: false,
  weight: 0,
  gotDone: false,
} as const satisfies Partial<Record<keyof Provider, unknown>>;
const foundByCheck = ['path', 'brings', 'bringsToDependents', 'watched'] as const;

/** What the language itself throws where a value is not what the code takes it for. */
const isOfLanguage = (error: unknown): error is Error =>
  error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;

function asFailure(error: unknown): never {
  if (!isOfLanguage(error)) throw error;
  const failure = new HostFailure(`a fault in this agent, please report it: ${error.name}: ${error.message}`);
  failure.cause = error;
  throw failure;
}

/** The same provider; what goes wrong inside of it is a HostFailure. */
export function guarded(provider: Provider): Provider {
  const guard: Record<string, unknown> = {};
  const wrap = (name: keyof Provider, failed: (error: unknown) => unknown) => {
    const original = provider[name] as ((...args: unknown[]) => unknown) | undefined;
    if (original === undefined) return;
    guard[name] = (...args: unknown[]) => {
      try {
        const result = original.apply(provider, args);
        return result instanceof Promise ? result.catch(failed) : result;
      } catch (error) {
        return failed(error);
      }
    };
  };
  for (const name of asked) wrap(name, asFailure);
  for (const [name, answer] of Object.entries(defaults)) wrap(name as keyof Provider, () => answer);
  // Of a body that does not fit, what stands where the path should be may be anything.
  const pathOf = guard.path as (resource: ResolvedResource) => unknown;
  guard.path = (resource: ResolvedResource) => {
    const path = pathOf(resource);
    return typeof path === 'string' ? path : null;
  };
  const checked = guard.check as Provider['check'];
  guard.check = (resource: ResolvedResource) => {
    checked(resource);
    try {
      for (const name of foundByCheck) provider[name]?.(resource);
    } catch (error) {
      asFailure(error);
    }
  };
  return { ...provider, ...guard };
}
