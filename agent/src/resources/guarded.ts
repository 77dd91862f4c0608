import { HostFailure } from '../host/failure.ts';
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
] as const satisfies readonly (keyof Provider)[];

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
  for (const name of asked) {
    const original = provider[name] as ((...args: unknown[]) => unknown) | undefined;
    if (original === undefined) continue;
    guard[name] = (...args: unknown[]) => {
      try {
        const result = original.apply(provider, args);
        return result instanceof Promise ? result.catch(asFailure) : result;
      } catch (error) {
        return asFailure(error);
      }
    };
  }
  return { ...provider, ...guard };
}
