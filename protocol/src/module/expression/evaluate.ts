import { type AgentFacts, own } from '../conditions.ts';
import type { Json } from '../document.ts';
import type { Field } from '../kinds/field.ts';
import { type Expression, parseExpressions, soleExpression, written } from './expression.ts';

/** The values that expressions can use. Expressions within these values are not evaluated. */
export interface Scope {
  readonly agent: AgentFacts;
  readonly parameters: ReadonlyMap<string, Json>;
  /** The current element of the list; undefined outside `for_each`. */
  readonly each: Json | undefined;
}

/**
 * A part of a text whose secrets are inserted later. Parts are never parsed again, so a value cannot become an
 * expression.
 */
export type DeferredPart = { readonly text: string } | { readonly secret: string; readonly default: string | null };

/** A value, or the parts of a text with secrets. */
export type Evaluated =
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'deferred'; readonly parts: readonly DeferredPart[] }
  | { readonly kind: 'fault'; readonly message: string };

const fault = (message: string): Evaluated => ({ kind: 'fault', message });

/** Evaluates the expressions in a text. The result is text, or is deferred if the text contains a secret. */
export function evaluateText(text: string, scope: Scope): Evaluated {
  const { parts, faults } = parseExpressions(text);
  if (faults[0] !== undefined) return fault(faults[0].message);
  const pieces: DeferredPart[] = [];
  let literal = '';
  for (const part of parts) {
    if (part.kind === 'text') {
      literal += part.text;
    } else if (part.root === 'secrets') {
      if (literal !== '') pieces.push({ text: literal });
      literal = '';
      pieces.push({ secret: part.key, default: part.fallback });
    } else {
      const value = lookUp(part, scope);
      if (value === undefined) return fault(missing(part));
      const shown = inText(part, value);
      if (typeof shown !== 'string') return shown;
      literal += shown;
    }
  }
  if (pieces.length === 0) return { kind: 'value', value: literal };
  if (literal !== '') pieces.push({ text: literal });
  return { kind: 'deferred', parts: pieces };
}

/** Converts a value for its use within text. Returns an error if this is not possible. */
function inText(expression: Expression, value: Json): string | Evaluated {
  const { separator } = expression;
  if (separator !== null && Array.isArray(value)) {
    const odd = value.findIndex((element) => typeof element === 'object');
    if (odd === -1) return value.map(String).join(separator);
    return fault(`element ${odd} of ${written(expression)} is not a plain value, so join cannot use it`);
  }
  // The default for a missing list replaces the joined text.
  if (separator !== null && value !== expression.fallback)
    return fault(`${written(expression)} is not a list, so join cannot use it`);
  if (typeof value !== 'object') return String(value);
  return fault(
    Array.isArray(value)
      ? `${written(expression)} is a list, which cannot be used in text without | join("…")`
      : `${written(expression)} is a mapping, which cannot be used in text`,
  );
}

/** Evaluates a text that must consist of one expression, which may yield a value other than text. */
export function evaluateSole(text: string, shape: Field['shape'], scope: Scope): Evaluated {
  const { parts, faults } = parseExpressions(text);
  if (faults[0] !== undefined) return fault(faults[0].message);
  const expression = soleExpression(parts);
  if (expression === undefined || expression.root === 'secrets')
    return fault('must be one expression, without a secret');
  const value = lookUp(expression, scope);
  if (value === undefined) return fault(missing(expression));
  if (expression.separator !== null) return fault('join yields text, which is not allowed here');
  return { kind: 'value', value: coerced(value, shape) };
}

/**
 * Converts a text, such as an agent attribute, to the field's type. Returns any other text unchanged, so that the
 * field's validation refuses it.
 */
function coerced(value: Json, shape: Field['shape']): Json {
  if (shape === 'list' && Array.isArray(value)) return value.map(asText);
  if (shape === 'map' && isMapping(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asText(item)]));
  }
  if (typeof value !== 'string') return value;
  if (shape === 'integer' && /^(0|-?[1-9][0-9]{0,15})$/.test(value)) return Number(value);
  if (shape === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}

const asText = (value: Json): Json => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value);

export const isMapping = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @returns undefined if the value does not exist and there is no default */
function lookUp(expression: Expression, scope: Scope): Json | undefined {
  const value = valueOfReference(expression, scope);
  return value ?? expression.fallback ?? undefined;
}

function valueOfReference({ root, key }: Expression, { agent, parameters, each }: Scope): Json | undefined {
  switch (root) {
    case 'agent':
      return key === 'name' ? agent.name : agent.node_id;
    case 'attr':
      return own(agent.attributes, key);
    case 'tag':
      return own(agent.tags, key);
    case 'param':
      return parameters.get(key);
    case 'each': {
      let value = each;
      for (const segment of key === '' ? [] : key.split('.')) {
        value = isMapping(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
      }
      return value;
    }
    case 'secrets':
      return undefined;
  }
}

function missing(expression: Expression): string {
  const name = written(expression);
  const otherwise = 'or give the expression | default("…")';
  switch (expression.root) {
    case 'agent':
      return `${name} has no value yet: approve the agent under a name, ${otherwise}`;
    case 'attr':
      return `the agent reports no attribute "${expression.key}": fix the name, ${otherwise}`;
    case 'tag':
      return `the agent has no tag "${expression.key}": set it, ${otherwise}`;
    case 'param':
      return `the parameter "${expression.key}" has neither value nor default: set it in the assignment, ${otherwise}`;
    default:
      return `${name} has no value: fix the list, ${otherwise}`;
  }
}
