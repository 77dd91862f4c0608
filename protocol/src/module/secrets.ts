import type { Fault } from '../errors.ts';
import type { Verification } from '../verification.ts';
import { type BodyFault, bodyFaults, type DeferredText, resourceBodyFaults } from './body.ts';
import type { Json } from './document.ts';
import type { ResourceBody } from './kinds.ts';
import type { ResolvedResource } from './resolved.ts';
import { pointer } from './source/json-pointer.ts';
import { defaultTimeout, type VerificationType, verificationKind } from './verification.ts';

/**
 * A body whose secrets have not been inserted. Not assignable to `ResourceBody`, because an agent that received it
 * would empty files.
 */
export type UnfilledBody = { [field: string]: Json };

/**
 * A resource without its secrets. It is stored in this form, as JSON, until it is dispatched. Text with a secret is
 * stored in parts, separate from the body. Thus, the body is never parsed again, and a tag that looks like an
 * expression remains text.
 */
export interface UnfilledResource extends Omit<ResolvedResource, 'body'> {
  body: UnfilledBody;
  deferred: readonly DeferredText[];
}

/** A check after an apply, without its secrets. */
export interface UnfilledVerification {
  module: string;
  type: VerificationType;
  body: UnfilledBody;
  deferred: readonly DeferredText[];
}

/** Returns the names of the secrets that the given resources use, and of the secrets without a default, sorted. */
export function secretNames(resources: readonly { readonly deferred: readonly DeferredText[] }[]): {
  used: string[];
  required: string[];
} {
  const used = new Set<string>();
  const required = new Set<string>();
  for (const { deferred } of resources) {
    for (const { parts } of deferred) {
      for (const part of parts) {
        if (!('secret' in part)) continue;
        used.add(part.secret);
        if (part.default === null) required.add(part.secret);
      }
    }
  }
  return { used: [...used].sort(), required: [...required].sort() };
}

/**
 * Maximum number of bytes that secrets add to one operation, as JSON. A stored desired state is at most 48 MiB, and a
 * frame at most 64 MiB. A loop can insert the same secret any number of times.
 */
const maximumSecretBytes = 15 * 1024 * 1024;

/** Counts the bytes that secrets add to one operation. */
export class SecretBudget {
  #left = maximumSecretBytes;
  readonly #sizes = new Map<string, number>();

  /** Counts one use of a secret. */
  spend(name: string, value: string): void {
    const size = this.#sizes.get(name) ?? new TextEncoder().encode(JSON.stringify(value)).length;
    this.#sizes.set(name, size);
    this.#left -= size;
  }

  get exceeded(): boolean {
    return this.#left < 0;
  }
}

export type FilledResources = { ok: true; resources: ResolvedResource[] } | { ok: false; faults: Fault[] };

/**
 * Inserts the secrets at dispatch, as the second phase of resolution.
 *
 * @param resources result of `resolveDesiredSet`, possibly after a round trip through JSON
 * @param lookup returns the value of a secret for the agent; undefined if it does not exist, has expired, or is not
 *   allowed
 * @param budget limits the size, together with the checks of the same operation
 * @returns the resources to send, or the errors for `module_unresolved`, whose messages never contain secret values
 */
export function fillSecrets(
  resources: readonly UnfilledResource[],
  lookup: (name: string) => string | undefined,
  budget = new SecretBudget(),
): FilledResources {
  const faults: Fault[] = [];
  const filled = resources.map(({ deferred, ...resource }): ResolvedResource => {
    const fault = (path: readonly (string | number)[], message: string): void => {
      const where = ['modules', resource.module, resource.id ?? resource.key, ...path];
      faults.push({ path: pointer(where), message: `${resource.key} of module ${resource.module}: ${message}` });
    };
    const check = (body: UnfilledBody): BodyFault[] => resourceBodyFaults(resource.type, body);
    const body = fillBody({ body: resource.body, deferred }, { lookup, budget }, check, fault);
    return { ...resource, body: body as unknown as ResourceBody };
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, resources: filled };
}

/** Inserts the secrets into the checks after an apply, as {@link fillSecrets} does for resources. */
export function fillVerifications(
  verify: readonly UnfilledVerification[],
  lookup: (name: string) => string | undefined,
  budget: SecretBudget,
): { ok: true; verify: Verification[] } | { ok: false; faults: Fault[] } {
  const faults: Fault[] = [];
  const filled = verify.map(({ module, type, body, deferred }, index): Verification => {
    const fault = (path: readonly (string | number)[], message: string): void => {
      const where = ['modules', module, 'verify', index, ...path];
      faults.push({ path: pointer(where), message: `verify of module ${module}: ${message}` });
    };
    const check = (filled: UnfilledBody): BodyFault[] =>
      bodyFaults({ body: filled, deferred: [] }, verificationKind(type));
    const given = fillBody({ body, deferred }, { lookup, budget }, check, fault);
    const { host = null, timeout = defaultTimeout, ...rest } = given;
    const common = { module, sensitive: deferred.length > 0, timeout, ...rest };
    if (type === 'http') return { type, status: 200, ...common } as Verification;
    return (type === 'tcp' ? { type, host, ...common } : { type, ...common }) as Verification;
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, verify: filled };
}

const tooManySecrets = `the secrets of the operation exceed ${maximumSecretBytes / 1024 / 1024} MiB: insert large secrets less often`;

/** Inserts the secrets into a body. @param fault receives every error, without secret values */
function fillBody(
  { body: unfilled, deferred }: Pick<UnfilledResource, 'body' | 'deferred'>,
  { lookup, budget }: { lookup: (name: string) => string | undefined; budget: SecretBudget },
  check: (body: UnfilledBody) => BodyFault[],
  fault: (path: readonly (string | number)[], message: string) => void,
): UnfilledBody {
  // The error was already reported where the limit was exceeded.
  if (budget.exceeded) return unfilled;
  const body = structuredClone(unfilled);
  let missing = false;
  for (const { path, parts } of deferred) {
    let text = '';
    for (const part of parts) {
      if ('text' in part) {
        text += part.text;
        continue;
      }
      const found = lookup(part.secret);
      const value = found ?? part.default;
      if (value === null) {
        missing = true;
        fault(path, `the secret "${part.secret}" is missing, has expired, or is not allowed for this agent`);
      }
      // The stored desired state already contains the default.
      if (found !== undefined) budget.spend(part.secret, found);
      if (budget.exceeded) {
        fault(path, tooManySecrets);
        return body;
      }
      text += value ?? '';
    }
    fill(body, path, text);
  }
  if (deferred.length > 0 && !missing) {
    for (const { path } of check(body)) {
      // The message of the check is omitted, because it may quote the value.
      fault(path, 'is not valid for this field once its secrets are filled in');
    }
  }
  return body;
}

function fill(body: UnfilledBody, path: readonly (string | number)[], text: string): void {
  const last = path.at(-1);
  let owner: Json | undefined = body;
  for (const key of path.slice(0, -1))
    owner =
      typeof owner === 'object' && owner !== null && Object.hasOwn(owner, key)
        ? (owner as UnfilledBody)[key]
        : undefined;
  // Sets only own properties, because the module may contain a key such as `__proto__`.
  if (last !== undefined && typeof owner === 'object' && owner !== null && Object.hasOwn(owner, last))
    (owner as UnfilledBody)[last] = text;
}
