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
  /** Fields to validate. Absent if all have to be. The parser validated those without an expression. */
  unchecked?: readonly string[] | undefined;
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

interface DeclaredField {
  readonly name: string;
  readonly value: Json;
  readonly field: Field;
  readonly isRequired: boolean;
  readonly hasExpression: boolean;
}

const declaredFields = new WeakMap<DeclaredBody, readonly DeclaredField[]>();

/** Returns the fields of a body that its kind has. Caches them, because a body is evaluated for each agent. */
function fieldsOf(declared: DeclaredBody, kind: Kind): readonly DeclaredField[] {
  const known = declaredFields.get(declared);
  if (known !== undefined) return known;
  const fields = Object.entries(declared).flatMap(([name, value]): DeclaredField[] => {
    const field = kind.required[name] ?? kind.optional[name];
    if (field === undefined) return [];
    const isRequired = kind.required[name] !== undefined;
    return [{ name, value, field, isRequired, hasExpression: JSON.stringify(value).includes('${{') }];
  });
  declaredFields.set(declared, fields);
  return fields;
}

/**
 * Evaluates the expressions of all fields. Does not validate the result.
 * @param template content in place of the field `content`
 */
export function evaluateBody(
  declared: DeclaredBody,
  kind: Kind,
  scope: Scope,
  template?: string,
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
  const unchecked: string[] = [];
  for (const { name, value, field, isRequired, hasExpression } of fieldsOf(declared, kind)) {
    if (name === 'content' && template !== undefined) continue;
    if (!hasExpression && typeof value !== 'object') {
      body[name] = value;
      continue;
    }
    if (hasExpression) unchecked.push(name);
    const evaluated = evaluateField(value, field, scope, [name], take);
    if (evaluated !== undefined) body[name] = evaluated;
    else if (isRequired)
      faults.push({ path: [name], message: 'is required, so its value cannot be omitted: use | default(…)' });
  }
  const content = kind.optional.content ?? kind.required.content;
  if (template !== undefined && content !== undefined) {
    unchecked.push('content');
    const evaluated = evaluateField(template, content, scope, ['content'], take);
    if (evaluated !== undefined) body.content = evaluated;
  }
  return { body, deferred, faults, unchecked };
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
export function bodyFaults({ body, deferred, unchecked }: EvaluatedBody, kind: Kind): BodyFault[] {
  if (unchecked?.every((name) => isValid(kind, name, body[name]))) return [];
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

function isValid(kind: Kind, name: string, value: Json | undefined): boolean {
  if (value === undefined) return true;
  const field = kind.required[name] ?? kind.optional[name];
  return field?.resolved.safeParse(value).success === true;
}

/**
 * Validates a body with inserted secrets.
 * @returns the faults of the body; empty if it is a valid `ResourceBody` of this type
 */
export const resourceBodyFaults = (type: ResourceType, body: { [field: string]: Json }): BodyFault[] =>
  bodyFaults({ body, deferred: [] }, kinds[type]);
