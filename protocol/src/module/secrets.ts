import type { Fault } from '../errors.ts';
import type { Verification } from '../verification.ts';
import { type BodyFault, bodyFaults, type DeferredText, resourceBodyFaults } from './body.ts';
import type { Json } from './document.ts';
import { isMapping } from './expression/evaluate.ts';
import type { ResourceBody } from './kinds.ts';
import type { ResolvedResource } from './resolved.ts';
import { pointer } from './source/tree.ts';
import { defaultTimeout, type VerificationType, verificationKind } from './verification.ts';

/** A body with fields that still wait for secrets. Not a `ResourceBody`: sent as it is it would empty a file. */
export type UnfilledBody = { [field: string]: Json };

/**
 * A resource without its secrets, as it is stored between the request and its dispatch. All of it survives JSON.
 * The texts that need a secret are beside the body in pieces, so that nothing in the body is ever parsed again and a
 * tag that reads like an expression stays the text it is.
 */
export interface UnfilledResource extends Omit<ResolvedResource, 'body'> {
  body: UnfilledBody;
  deferred: readonly DeferredText[];
}

/** What must hold after an apply, without its secrets. */
export interface UnfilledVerification {
  module: string;
  type: VerificationType;
  body: UnfilledBody;
  deferred: readonly DeferredText[];
}

/** Names of the secrets that stand somewhere in these resources, sorted. */
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

export type FilledResources = { ok: true; resources: ResolvedResource[] } | { ok: false; faults: Fault[] };

/**
 * Phase two of resolution, at dispatch: puts the secrets in.
 *
 * @param resources of `resolveDesiredSet`, possibly by way of JSON
 * @param lookup    the value of a secret for the agent; undefined when it is not there, has expired or is not allowed
 * @returns what the agent is sent, or the faults: code `module_unresolved`. No message holds a secret value.
 */
export function fillSecrets(
  resources: readonly UnfilledResource[],
  lookup: (name: string) => string | undefined,
): FilledResources {
  const faults: Fault[] = [];
  const filled = resources.map(({ deferred, ...resource }): ResolvedResource => {
    const fault = (path: readonly (string | number)[], message: string): void => {
      const where = ['modules', resource.module, resource.id ?? resource.key, ...path];
      faults.push({ path: pointer(where), message: `${resource.key} of module ${resource.module}: ${message}` });
    };
    const check = (body: UnfilledBody): BodyFault[] => resourceBodyFaults(resource.type, body);
    const body = fillBody(resource.body, deferred, lookup, check, fault);
    return { ...resource, body: body as unknown as ResourceBody };
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, resources: filled };
}

/** The same for what must hold after an apply. */
export function fillVerifications(
  verify: readonly UnfilledVerification[],
  lookup: (name: string) => string | undefined,
): { ok: true; verify: Verification[] } | { ok: false; faults: Fault[] } {
  const faults: Fault[] = [];
  const filled = verify.map(({ module, type, body, deferred }, index): Verification => {
    const fault = (path: readonly (string | number)[], message: string): void => {
      const where = ['modules', module, 'verify', index, ...path];
      faults.push({ path: pointer(where), message: `verify of module ${module}: ${message}` });
    };
    const check = (filled: UnfilledBody): BodyFault[] =>
      bodyFaults({ body: filled, deferred: [] }, verificationKind(type));
    const given = fillBody(body, deferred, lookup, check, fault);
    const { host = null, timeout = defaultTimeout, ...rest } = given;
    const common = { module, sensitive: deferred.length > 0, timeout, ...rest };
    if (type === 'http') return { type, status: 200, ...common } as Verification;
    return (type === 'tcp' ? { type, host, ...common } : { type, ...common }) as Verification;
  });
  return faults.length > 0 ? { ok: false, faults } : { ok: true, verify: filled };
}

/** @returns the body with its secrets in it; every fault goes to `fault`, without a value */
function fillBody(
  unfilled: UnfilledBody,
  deferred: readonly DeferredText[],
  lookup: (name: string) => string | undefined,
  check: (body: UnfilledBody) => BodyFault[],
  fault: (path: readonly (string | number)[], message: string) => void,
): UnfilledBody {
  const body = structuredClone(unfilled);
  let missing = false;
  for (const { path, parts } of deferred) {
    let text = '';
    for (const part of parts) {
      if ('text' in part) {
        text += part.text;
        continue;
      }
      const value = lookup(part.secret) ?? part.default;
      if (value === null) {
        missing = true;
        fault(path, `the secret "${part.secret}" is missing, has expired, or may not go to this agent`);
      }
      text += value ?? '';
    }
    place(body, path, text);
  }
  if (deferred.length > 0 && !missing) {
    for (const { path } of check(body)) {
      // What a check says may quote the value.
      fault(path, 'does not have the form that this field needs once its secrets are in it');
    }
  }
  return body;
}

function place(body: UnfilledBody, path: readonly (string | number)[], text: string): void {
  const [field, key] = path;
  if (field === undefined) return;
  const value = body[field];
  if (key === undefined) body[field] = text;
  else if (Array.isArray(value)) value[Number(key)] = text;
  else if (isMapping(value)) value[key] = text;
}
