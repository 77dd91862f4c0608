import { z } from 'zod';
import type { DeclaredBody, Json } from './document.ts';
import {
  type DeferredPart,
  type Evaluated,
  evaluateText,
  evaluateWhole,
  isMapping,
  type Scope,
} from './expression/evaluate.ts';
import type { Field } from './kinds/field.ts';
import type { Kind } from './kinds/kind.ts';
import { kinds, type ResourceType } from './kinds.ts';

/** A text of a body whose secrets are not known yet. */
export interface DeferredText {
  /** Path in the body, starting with the field. The value at this path is "" until the secrets are filled in. */
  readonly path: readonly (string | number)[];
  readonly parts: readonly DeferredPart[];
}

/** A body whose expressions are evaluated, except for secrets. */
export interface EvaluatedBody {
  body: Record<string, Json>;
  deferred: DeferredText[];
}

export interface BodyFault {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Evaluates the expressions of every field. Does not validate the result. */
export function evaluateBody(
  declared: DeclaredBody,
  kind: Kind,
  scope: Scope,
): EvaluatedBody & { faults: BodyFault[] } {
  const body: Record<string, Json> = {};
  const deferred: DeferredText[] = [];
  const faults: BodyFault[] = [];
  /** @returns the value, or a placeholder until the secrets are known */
  const take = (path: readonly (string | number)[], evaluated: Evaluated): Json => {
    if (evaluated.kind === 'value') return evaluated.value;
    if (evaluated.kind === 'fault') faults.push({ path, message: evaluated.message });
    else deferred.push({ path, parts: evaluated.parts });
    return '';
  };
  for (const [name, value] of Object.entries(declared)) {
    const field = kind.required[name] ?? kind.optional[name];
    if (field === undefined) continue;
    body[name] = evaluateField(value, field, scope, [name], take);
  }
  return { body, deferred, faults };
}

function evaluateField(
  value: Json,
  { shape }: Field,
  scope: Scope,
  path: readonly (string | number)[],
  take: (path: readonly (string | number)[], evaluated: Evaluated) => Json,
): Json {
  if (typeof value === 'string') {
    const isText = shape === 'text' || shape === 'choice';
    return take(path, isText ? evaluateText(value, scope) : evaluateWhole(value, shape, scope));
  }
  const item = (entry: Json, key: string | number): Json =>
    typeof entry === 'string' ? take([...path, key], evaluateText(entry, scope)) : entry;
  if (Array.isArray(value)) return value.map(item);
  if (isMapping(value)) return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, item(entry, key)]));
  return value;
}

const resolvedSchemas = new WeakMap<Kind, z.ZodType>();

function resolvedSchema(kind: Kind): z.ZodType {
  const known = resolvedSchemas.get(kind);
  if (known !== undefined) return known;
  const shape: Record<string, z.ZodType> = {};
  for (const [name, field] of Object.entries(kind.required)) shape[name] = field.resolved;
  for (const [name, field] of Object.entries(kind.optional)) shape[name] = field.resolved.optional();
  const schema = z.strictObject(shape);
  resolvedSchemas.set(kind, schema);
  return schema;
}

/**
 * Validates a body against the schema that agents receive, because an expression can yield any value. Fields with
 * secrets are validated again when the secrets are known.
 */
export function bodyFaults({ body, deferred }: EvaluatedBody, kind: Kind): BodyFault[] {
  const parsed = resolvedSchema(kind).safeParse(body);
  if (parsed.success) return [];
  const waiting = new Set(deferred.map(({ path }) => JSON.stringify(path)));
  return parsed.error.issues
    .map((issue) => ({
      path: issue.path as (string | number)[],
      message: issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message,
    }))
    .filter(({ path }) => !waiting.has(JSON.stringify(path)));
}

/**
 * Validates a body from the link against the schema that it was sent under.
 * @returns an empty list if the body is a `ResourceBody` of this type
 */
export const resourceBodyFaults = (type: ResourceType, body: { [field: string]: Json }): BodyFault[] =>
  bodyFaults({ body, deferred: [] }, kinds[type]);
