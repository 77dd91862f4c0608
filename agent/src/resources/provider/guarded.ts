import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Provider } from './provider.ts';

/**
 * Turns a bug in a provider into a failure of that resource, so that the operation continues. The message asks
 * operators to report the bug.
 */

/** Methods that may throw a HostFailure. */
const fallibleMethods = [
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
 * Harmless results for methods that the engine calls before it applies the resource. `check` calls `path` again, so
 * that the resource fails only when it is applied.
 */
const defaults = {
  path: null,
  brings: [],
  bringsToDependents: [],
  makes: [],
  watched: [],
  reads: [],
  revealsCompletion: false,
  weight: 0,
  wasApplied: false,
} as const satisfies Partial<Record<keyof Provider, unknown>>;
const foundByCheck = ['path', 'brings', 'bringsToDependents', 'watched', 'reads'] as const;

/** Reports whether the JavaScript engine threw the error, as it does for a value of an unexpected type. */
const isOfLanguage = (error: unknown): error is Error =>
  error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;

function asFailure(error: unknown): never {
  if (!isOfLanguage(error)) throw error;
  const failure = new HostFailure(`this agent has a bug; please report it: ${error.name}: ${error.message}`);
  failure.cause = error;
  throw failure;
}

/** Returns the provider with its internal errors converted to HostFailure. */
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
  for (const name of fallibleMethods) wrap(name, asFailure);
  for (const [name, answer] of Object.entries(defaults)) wrap(name as keyof Provider, () => answer);
  // A malformed body may have a value of any type as its path.
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
