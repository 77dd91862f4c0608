import { z } from 'zod';
import { isMapping } from '../mapping.ts';
import type { DeclaredBody, Json } from './document.ts';
import { evaluateInPlace, evaluateSole, evaluateText } from './expression/evaluate.ts';
import type { DeferredPart, Evaluated } from './expression/text-writer.ts';
import type { Scope } from './expression/variables.ts';
import type { Field } from './kinds/field.ts';
import type { Kind } from './kinds/kind.ts';
import { kinds, type ResourceType } from './kinds.ts';

/** Text in a body that contains secrets, which are inserted at dispatch. */
export interface DeferredText {
  /** Path in the body, beginning with the field. The value at this path is "" until the secrets are inserted. */
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

type BodyPath = readonly (string | number)[];

/**
 * Receives the value of an evaluated string. `to` is the path in the body, which differs from `from` after an omitted
 * element.
 */
type Take = (from: BodyPath, evaluated: Evaluated, to?: BodyPath) => Json | undefined;

/** Evaluates the expressions of all fields. Does not validate the result. */
export function evaluateBody(
  declared: DeclaredBody,
  kind: Kind,
  scope: Scope,
): EvaluatedBody & { faults: BodyFault[] } {
  const body: Record<string, Json> = {};
  const deferred: DeferredText[] = [];
  const faults: BodyFault[] = [];
  /** @returns the value, an empty string if the value contains secrets or an error, or undefined if it is omitted */
  const take: Take = (from, evaluated, to = from) => {
    if (evaluated.kind === 'value') return evaluated.value;
    if (evaluated.kind === 'omitted') return undefined;
    if (evaluated.kind === 'fault') faults.push({ path: from, message: evaluated.message });
    else deferred.push({ path: to, parts: evaluated.parts });
    return '';
  };
  for (const [name, value] of Object.entries(declared)) {
    const field = kind.required[name] ?? kind.optional[name];
    if (field === undefined) continue;
    const evaluated = evaluateField(value, field, scope, [name], take);
    if (evaluated !== undefined) body[name] = evaluated;
    else if (kind.required[name] !== undefined)
      faults.push({ path: [name], message: 'is required, so its value cannot be omitted: use | default(…)' });
  }
  return { body, deferred, faults };
}

/**
 * Evaluates the strings in a value of any form. A string that consists of a single expression keeps the type of its
 * value.
 */
function evaluateAny(value: Json, scope: Scope, path: BodyPath, to: BodyPath, take: Take): Json | undefined {
  if (typeof value === 'string') return take(path, evaluateInPlace(value, scope), to);
  if (Array.isArray(value)) {
    const list: Json[] = [];
    for (const [index, entry] of value.entries()) {
      const evaluated = evaluateAny(entry, scope, [...path, index], [...to, list.length], take);
      if (evaluated !== undefined) list.push(evaluated);
    }
    return list;
  }
  if (!isMapping(value)) return value;
  const entries = Object.entries(value).flatMap(([key, entry]): [string, Json][] => {
    const evaluated = evaluateAny(entry, scope, [...path, key], [...to, key], take);
    return evaluated === undefined ? [] : [[key, evaluated]];
  });
  return Object.fromEntries(entries);
}

function evaluateField(value: Json, { shape }: Field, scope: Scope, path: BodyPath, take: Take): Json | undefined {
  if (shape === 'any') return evaluateAny(value, scope, path, path, take);
  if (typeof value === 'string') {
    const isText = shape === 'text' || shape === 'choice';
    return take(path, isText ? evaluateText(value, scope) : evaluateSole(value, shape, scope));
  }
  const item = (entry: Json, key: string | number, to: string | number): Json | undefined =>
    typeof entry === 'string' ? take([...path, key], evaluateText(entry, scope), [...path, to]) : entry;
  if (Array.isArray(value)) {
    const list: Json[] = [];
    for (const [index, entry] of value.entries()) {
      const evaluated = item(entry, index, list.length);
      if (evaluated !== undefined) list.push(evaluated);
    }
    return list;
  }
  if (!isMapping(value)) return value;
  const entries = Object.entries(value).flatMap(([key, entry]): [string, Json][] => {
    const evaluated = item(entry, key, key);
    return evaluated === undefined ? [] : [[key, evaluated]];
  });
  return Object.fromEntries(entries);
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
 * Validates an evaluated body, because an expression can yield any value. Skips values with secrets, which are validated
 * after the secrets are inserted.
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
 * Validates a body with inserted secrets.
 * @returns the faults of the body; empty if it is a valid `ResourceBody` of this type
 */
export const resourceBodyFaults = (type: ResourceType, body: { [field: string]: Json }): BodyFault[] =>
  bodyFaults({ body, deferred: [] }, kinds[type]);
