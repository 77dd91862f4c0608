import { isMapping } from '../../mapping.ts';
import type { Json } from '../document.ts';
import type { Field } from '../kinds/field.ts';
import type { Block } from './blocks.ts';
import { described } from './compile.ts';
import { type CelError, isMissing, metered } from './environment.ts';
import { parseExpressions, soleExpression, written } from './expression.ts';
import { stepsOf } from './meter.ts';
import type { CelExpression, Expression } from './parts.ts';
import { lookUp, missing, orOmit, otherwise } from './references.ts';
import { type Evaluated, TextWriter } from './text-writer.ts';
import { ExpressionError, entriesOf, fromCel, Omit, Secret, textOf } from './values.ts';
import { type Scope, Variables } from './variables.ts';

const fault = (message: string): Evaluated => ({ kind: 'fault', message });

/** Maximum length of a string, in characters. Equals the limit for an entire desired set. */
export const maximumText = 32 * 1024 * 1024;

/** Evaluates the expressions in a string. The result is text, or is deferred if the string contains a secret. */
export function evaluateText(text: string, scope: Scope): Evaluated {
  const { parts, blocks, faults } = parseExpressions(text);
  if (faults[0] !== undefined) return fault(faults[0].message);
  const writer = new TextWriter();
  if (blocks !== null) return writeBlocks(blocks, scope, writer, 0) ?? writer.result;
  const sole = soleExpression(parts);
  for (const part of parts) {
    // Only text with blocks contains control words.
    const ended = part.kind === 'control' ? undefined : writePart(part, scope, writer, part === sole);
    if (ended !== undefined) return ended;
    if (writer.length > maximumText) return fault('the text has more than 32 MiB: insert shorter values');
  }
  return writer.result;
}

/** @returns an error, or `omitted` for a string that consists only of this part; undefined if the part was written */
function writePart(
  part: Extract<Block, { kind: 'text' | 'expression' | 'cel' }>,
  scope: Scope,
  writer: TextWriter,
  isSole: boolean,
): Evaluated | undefined {
  if (part.kind === 'text') {
    writer.text(part.text);
    return undefined;
  }
  if (part.kind === 'cel') {
    const found = evaluateCel(part, scope);
    if ('fault' in found) return fault(found.fault);
    const { value } = found;
    if (value instanceof Omit && isSole) return { kind: 'omitted' };
    if (value instanceof Secret) {
      writer.secret(Secret.nameOf(value), Secret.fallbackOf(value));
      return undefined;
    }
    const shown = celInText(value);
    if (typeof shown !== 'string') return shown;
    writer.text(shown);
    return undefined;
  }
  if (part.root === 'secrets') {
    writer.secret(part.key, part.fallback);
    return undefined;
  }
  const value = lookUp(part, scope);
  if (value === undefined) return fault(missing(part));
  const shown = inText(part, value, scope);
  if (typeof shown !== 'string') return shown;
  writer.text(shown);
  return undefined;
}

/** Maximum length of a string with loops, in characters. */
const maximumLooped = 4 * 1024 * 1024;
/** Maximum depth of templates that include each other. */
const maximumIncludes = 16;

/** @returns the error that stopped the evaluation, or undefined */
function writeBlocks(
  blocks: readonly Block[],
  scope: Scope,
  writer: TextWriter,
  includes: number,
): Evaluated | undefined {
  for (const block of blocks) {
    const ended = writeBlock(block, scope, writer, includes);
    if (ended !== undefined) return ended;
    if (writer.length > maximumLooped)
      return fault('the text has more than 4 MiB: shorten its loops or the templates that it includes');
  }
  return undefined;
}

function writeBlock(block: Block, scope: Scope, writer: TextWriter, includes: number): Evaluated | undefined {
  const exceeded = scope.meter.count(1);
  if (exceeded !== undefined) return fault(exceeded);
  switch (block.kind) {
    case 'for': {
      const found = evaluateCel(block.list, scope);
      if ('fault' in found) return fault(found.fault);
      const elements = elementsOf(found.value);
      if (elements === undefined) return fault('a loop needs a list or a map');
      const [first = '', second] = block.names;
      const loops = new Map(scope.loops);
      const inner = { ...scope, loops };
      for (const [key, value] of elements) {
        if (second !== undefined) loops.set(first, key).set(second, value);
        else loops.set(first, Array.isArray(found.value) ? value : key);
        const ended = writeBlocks(block.body, inner, writer, includes);
        if (ended !== undefined) return ended;
      }
      return undefined;
    }
    case 'if':
      for (const { condition, body } of block.branches) {
        const holds = condition === null ? true : evaluateCondition(condition, scope);
        if (typeof holds === 'string') return fault(holds);
        if (holds) return writeBlocks(body, scope, writer, includes);
      }
      return undefined;
    case 'include': {
      const template = scope.templates?.get(block.id);
      if (template === undefined) return fault(`there is no template "${block.id}"`);
      if ('fault' in template) return fault(template.fault);
      if (includes === maximumIncludes) return fault(`templates include each other more than ${maximumIncludes} deep`);
      const { parts, blocks, faults } = parseExpressions(template.content);
      if (faults[0] !== undefined) return fault(faults[0].message);
      const before = writer.mark;
      const ended = writeBlocks(blocks ?? (parts as readonly Block[]), scope, writer, includes + 1);
      if (block.endsLine && writer.mark !== before) writer.endLine();
      return ended;
    }
    default:
      return writePart(block, scope, writer, false);
  }
}

/**
 * Returns the keys and values of a CEL list or map; undefined for other values. The keys of a list are its
 * positions.
 */
export function elementsOf(value: unknown): [unknown, unknown][] | undefined {
  if (Array.isArray(value)) return value.map((element, index) => [BigInt(index), element]);
  if (value instanceof Map || (typeof value === 'object' && value?.constructor === Object)) return entriesOf(value);
  return undefined;
}

/** Evaluates a condition. @returns whether it is true, or the error */
export function evaluateCondition(condition: CelExpression, scope: Scope): boolean | string {
  const found = evaluateCel(condition, scope);
  if ('fault' in found) return found.fault;
  if (typeof found.value === 'boolean') return found.value;
  return noCondition;
}

/** Converts a value for use within text. Returns an error if this is not possible. */
function inText(expression: Expression, value: Json, { meter }: Scope): string | Evaluated {
  const { separator } = expression;
  const exceeded = typeof value === 'object' ? meter.count(stepsOf(value)) : undefined;
  if (exceeded !== undefined) return fault(exceeded);
  if (separator !== null && Array.isArray(value)) {
    const odd = value.findIndex((element) => typeof element === 'object');
    if (odd === -1) return value.map(String).join(separator);
    return fault(`element ${odd} of ${written(expression)} is not a plain value, so join cannot use it`);
  }
  // The default for a missing list is used as the text, without joining.
  if (separator !== null && value !== expression.fallback)
    return fault(`${written(expression)} is not a list, so join cannot use it`);
  if (typeof value !== 'object') return String(value);
  return fault(
    Array.isArray(value)
      ? `${written(expression)} is a list, which cannot be used in text without | join("…")`
      : `${written(expression)} is a mapping, which cannot be used in text`,
  );
}

/** Evaluates a string that must consist of one expression, which may yield a value other than text. */
export function evaluateSole(text: string, shape: Field['shape'], scope: Scope): Evaluated {
  const { parts, faults } = parseExpressions(text);
  if (faults[0] !== undefined) return fault(faults[0].message);
  const expression = soleExpression(parts);
  if (expression?.kind === 'cel') return soleCel(expression, shape, scope);
  if (expression === undefined || expression.root === 'secrets')
    return fault('must be one expression, without a secret');
  const value = lookUp(expression, scope);
  if (value === undefined) return fault(missing(expression));
  if (expression.separator !== null) return fault('join yields text, which is not allowed here');
  return { kind: 'value', value: coerced(value, shape) };
}

/**
 * Evaluates a string within a value. A string that consists of a single expression keeps the type of its value. An
 * expression with `join` yields text.
 */
export function evaluateInPlace(text: string, scope: Scope): Evaluated {
  const { parts, faults } = parseExpressions(text);
  const expression = faults.length > 0 ? undefined : soleExpression(parts);
  if (expression?.kind === 'cel') {
    const found = evaluateCel(expression, scope);
    if ('fault' in found) return fault(found.fault);
    const { value } = found;
    if (value instanceof Omit) return { kind: 'omitted' };
    if (value instanceof Secret) return evaluateText(text, scope);
    return guarded(() => ({ kind: 'value', value: fromCel(value) }));
  }
  if (expression === undefined || expression.separator !== null || expression.root === 'secrets')
    return evaluateText(text, scope);
  const value = lookUp(expression, scope);
  return value === undefined ? fault(missing(expression)) : { kind: 'value', value };
}

function soleCel(expression: CelExpression, shape: Field['shape'], scope: Scope): Evaluated {
  const found = evaluateCel(expression, scope);
  if ('fault' in found) return fault(found.fault);
  const { value } = found;
  if (value instanceof Omit) return { kind: 'omitted' };
  if (value instanceof Secret) return fault('must be one expression, without a secret');
  if (value === null) return fault('the expression yields null: add | default(…) or | omit');
  return guarded(() => ({ kind: 'value', value: coerced(fromCel(value), shape) }));
}

/**
 * Reports whether a condition is true. If it reads a missing value, it is false.
 * @throws ExpressionError
 */
export function holds(condition: CelExpression, scope: Scope): boolean {
  try {
    const value: unknown = metered(scope.meter, () => condition.compiled.evaluate(new Variables(scope)));
    if (typeof value === 'boolean') return value;
  } catch (error) {
    if (isMissing(error as CelError)) return false;
    throw new ExpressionError(messageOf(error as CelError));
  }
  throw new ExpressionError(noCondition);
}

const noCondition = 'the condition must be true or false: use a comparison, such as param.x == "y"';

function celInText(value: unknown): string | Evaluated {
  let shown: string | undefined;
  const evaluated = guarded(() => {
    shown = textOf(value);
    return fault(
      Array.isArray(value)
        ? 'the expression yields a list, which cannot be used in text without | join("…") or | json'
        : 'the expression yields a map, which cannot be used in text without | json or | yaml',
    );
  });
  return shown ?? evaluated;
}

function guarded(evaluate: () => Evaluated): Evaluated {
  try {
    return evaluate();
  } catch (error) {
    return fault(messageOf(error as Error));
  }
}

/** Evaluates an expression. @returns the CEL value, or the error */
export function evaluateCel(part: CelExpression, scope: Scope): { value: unknown } | { fault: string } {
  try {
    return { value: metered(scope.meter, () => part.compiled.evaluate(new Variables(scope))) };
  } catch (error) {
    return { fault: messageOf(error as Error) };
  }
}

function messageOf(error: CelError): string {
  if (error instanceof ExpressionError) return error.message;
  const key = /^No such key: (.*)$/s.exec(error.summary ?? '')?.[1];
  if (key === undefined) return described(error);
  const index = /^index out of bounds, index (\S+)/.exec(key)?.[1];
  if (index !== undefined) return `the list has no element ${index}: fix the index, ${otherwise}`;
  const node = error.node;
  const owner = node?.op === '.' || node?.op === '[]' ? node.args[0] : undefined;
  const root = owner?.op === 'id' ? owner.args : '';
  return root === 'param' || root === 'attr' || root === 'tag' || root === 'agent'
    ? missing({ root, key })
    : `the value has no key "${key.slice(0, 100)}": fix the name, ${otherwise}${orOmit}`;
}

/**
 * Converts a string, such as an agent attribute, to the field's type. Returns any other string unchanged, so that the
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
