import { isMapping } from '../../mapping.ts';
import { secretName } from '../../secret-name.ts';
import type { Json } from '../document.ts';
import { compiledPattern, hasMatch, statesOf } from '../expression/functions/patterns.ts';
import { unknownKey } from '../kinds/declared.ts';
import {
  fitsType,
  isPattern,
  patternForm,
  type Type,
  typeText,
  type ValueFault,
  type ValueSchema,
} from './value-keywords.ts';

/**
 * Validation of parameter values by the keywords of JSON Schema (draft 2020-12) that modules may use. Interprets the
 * schema, because the console's Content-Security-Policy forbids code that validators generate.
 * @see https://json-schema.org/draft/2020-12/json-schema-validation
 */

type Path = ValueFault['path'];

const maximumFaults = 20;

/** Remaining work budget of a validation. */
interface Work {
  /** For patterns. Unit: one state visited for one character. About 0.3 s in total. */
  patterns: number;
  /** For alternatives, which multiply with the number of values. Unit: one value, or 64 characters of a value. */
  alternatives: number;
}

/** A validation of one value. */
interface Validation {
  readonly faults: ValueFault[];
  /** Number of errors after which the validation stops. */
  readonly maximum: number;
  readonly work: Work;
  /** Whether this validation only checks whether a value satisfies a part of the schema. */
  readonly isTrial: boolean;
}

/** Returns the errors in a value: at most 20. */
export function valueFaults(schema: ValueSchema, value: Json): ValueFault[] {
  const work: Work = { patterns: 10_000_000, alternatives: 500_000 };
  const faults: ValueFault[] = [];
  check(schema, value, [], { faults, maximum: maximumFaults, work, isTrial: false });
  // An undecided part may be below `not` or `if`, where it would hide other errors.
  if (faults.length === 0 && (work.patterns < 0 || work.alternatives < 0)) faults.push({ path: [], message: tooMuch });
  return faults;
}

const tooMuch = 'is too large to be compared with all alternatives of its declaration: shorten it';

function check(schema: Json, value: Json, path: Path, validation: Validation): void {
  const { faults, maximum } = validation;
  if (faults.length >= maximum) return;
  const fault = (message: string): void => {
    if (faults.length < maximum) faults.push({ path, message });
  };
  if (schema === false) fault('is not allowed here');
  if (!isMapping(schema)) return;
  if (!spend(validation, 1)) {
    fault(tooMuch);
    return;
  }
  const allowed = [schema.type ?? []].flat() as Type[];
  if (allowed.length > 0 && !allowed.some((type) => !Object.hasOwn(fitsType, type) || fitsType[type](value))) {
    fault(`must be ${allowed.map((type) => typeText[type]).join(' or ')}, to match its type`);
    return;
  }
  if (Array.isArray(schema.enum) && !canonicalSet(schema.enum).has(comparable(value, validation)))
    fault(`must be one of ${shown(schema.enum)}`);
  if (schema.const !== undefined && schema.const !== null)
    if (canonical(schema.const) !== comparable(value, validation))
      fault(`must be ${JSON.stringify(schema.const).slice(0, 200)}`);
  if (typeof value === 'number') checkNumber(schema, value, fault);
  else if (typeof value === 'string') checkText(schema, value, validation, fault);
  else if (Array.isArray(value)) checkList(schema, value, path, validation, fault);
  else if (isMapping(value)) checkMapping(schema, value, path, validation, fault);
  checkCombined(schema, value, path, validation, fault);
}

/** Counts the work of a trial. @returns whether any work budget is left */
function spend({ work, isTrial }: Validation, amount: number): boolean {
  if (isTrial) work.alternatives -= amount;
  return work.alternatives >= 0;
}

/** Returns the canonical text of a value, and adds its cost to the work limit. */
function comparable(value: Json, validation: Validation): string {
  const text = canonical(value);
  spend(validation, text.length >> 6);
  return text;
}

/** Validates a value against a part of the schema. Returns at most one error. */
function tried(schema: Json, value: Json, path: Path, { work }: Validation): ValueFault[] {
  const faults: ValueFault[] = [];
  check(schema, value, path, { faults, maximum: 1, work, isTrial: true });
  return faults;
}

/** Maximum number of alternatives in a message. */
const maximumShown = 5;

/** Checks the keywords that combine schemas. */
function checkCombined(schema: ValueSchema, value: Json, path: Path, validation: Validation, fault: Report): void {
  const { allOf, anyOf, oneOf, not } = schema;
  for (const each of listOf(allOf)) check(each, value, path, validation);
  const unmet = (found: readonly ValueFault[][]): string =>
    found
      .slice(0, maximumShown)
      .map(([first], index) => {
        const inside = (first?.path.slice(path.length) ?? []).join('.');
        return `(${index + 1}) ${inside === '' ? '' : `${inside} `}${(first?.message ?? '').slice(0, 200)}`;
      })
      .join('; ') + (found.length > maximumShown ? '; …' : '');
  if (Array.isArray(anyOf)) {
    const found: ValueFault[][] = [];
    const fits = anyOf.some((each) => {
      const faults = tried(each, value, path, validation);
      found.push(faults);
      return faults.length === 0;
    });
    if (!fits) fault(`must satisfy one of the alternatives of anyOf: ${unmet(found)}`);
  }
  if (Array.isArray(oneOf)) {
    const found = oneOf.map((each) => tried(each, value, path, validation));
    const fitting = found.flatMap((faults, index) => (faults.length === 0 ? [index + 1] : []));
    if (fitting.length === 0) fault(`must satisfy one of the alternatives of oneOf: ${unmet(found)}`);
    if (fitting.length > 1)
      fault(
        `must satisfy only one of the alternatives of oneOf, and satisfies ${fitting.slice(0, maximumShown).join(' and ')}`,
      );
  }
  if (isSchema(not) && tried(not, value, path, validation).length === 0)
    fault(`must not be what its declaration excludes: ${JSON.stringify(not).slice(0, 200)}`);
  if (!isSchema(schema.if)) return;
  const branch = tried(schema.if, value, path, validation).length === 0 ? schema.then : schema.else;
  if (isSchema(branch)) check(branch, value, path, validation);
}

const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
const isSchema = (value: Json | undefined): value is Json => typeof value === 'boolean' || isMapping(value);

type Report = (message: string) => void;

/** Calls a function with the keyword's value if the keyword is present. */
function limit(
  schema: ValueSchema,
  keyword: string,
  apply: (bound: number) => string | undefined,
  fault: Report,
): void {
  const bound = schema[keyword];
  const message = typeof bound === 'number' ? apply(bound) : undefined;
  if (message !== undefined) fault(message);
}

function checkNumber(schema: ValueSchema, value: number, fault: Report): void {
  limit(schema, 'minimum', (bound) => (value < bound ? `must be at least ${bound}` : undefined), fault);
  limit(schema, 'maximum', (bound) => (value > bound ? `must be at most ${bound}` : undefined), fault);
  limit(schema, 'exclusiveMinimum', (bound) => (value <= bound ? `must be above ${bound}` : undefined), fault);
  limit(schema, 'exclusiveMaximum', (bound) => (value >= bound ? `must be below ${bound}` : undefined), fault);
  limit(schema, 'multipleOf', (step) => (isMultiple(value, step) ? undefined : `must be a multiple of ${step}`), fault);
}

/** Allows for the rounding of decimal fractions such as 0.3 / 0.1. */
function isMultiple(value: number, step: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(step)) return value % step === 0;
  const times = value / step;
  return Math.abs(times - Math.round(times)) <= 4 * Number.EPSILON * Math.max(1, Math.abs(times));
}

/** Counts code points, as JSON Schema does. */
const lengthOf = (text: string): number => [...text].length;

function checkText(schema: ValueSchema, value: string, validation: Validation, fault: Report): void {
  const has = (count: number, word: string) =>
    `must have at ${word} ${count} ${count === 1 ? 'character' : 'characters'}`;
  limit(schema, 'minLength', (least) => (lengthOf(value) < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxLength', (most) => (lengthOf(value) > most ? has(most, 'most') : undefined), fault);
  if (schema.format === 'secret-name' && !secretName.test(value)) fault('must be the name of a secret');
  if (typeof schema.pattern === 'string') {
    const message = patternFault(schema.pattern, value, validation);
    if (message !== undefined) fault(message);
  }
}

function patternFault(pattern: string, value: string, validation: Validation): string | undefined {
  const compiled = isPattern(pattern) ? compiledPattern(pattern) : null;
  if (compiled === null) return `cannot be checked: its pattern must be ${patternForm}`;
  const { work } = validation;
  work.patterns -= 200 + statesOf(pattern) * (value.length + 1);
  if (work.patterns < 0) return 'has too much text to be compared with its pattern: shorten it';
  return hasMatch(compiled, value) ? undefined : `must match the pattern ${pattern}`;
}

function checkList(schema: ValueSchema, value: Json[], path: Path, validation: Validation, fault: Report): void {
  const has = (count: number, word: string) => `must have at ${word} ${count} ${count === 1 ? 'element' : 'elements'}`;
  limit(schema, 'minItems', (least) => (value.length < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxItems', (most) => (value.length > most ? has(most, 'most') : undefined), fault);
  if (schema.uniqueItems === true && new Set(value.map((item) => comparable(item, validation))).size < value.length)
    fault('must not have equal elements');
  const prefix = listOf(schema.prefixItems);
  for (const [index, item] of value.entries())
    check(index < prefix.length ? (prefix[index] as Json) : (schema.items ?? true), item, [...path, index], validation);
  if (!isSchema(schema.contains)) return;
  const { contains, minContains = 1, maxContains = null } = schema;
  const count = value.filter((item, index) => tried(contains, item, [...path, index], validation).length === 0).length;
  const containing = `that its declaration asks for, and has ${count}: ${JSON.stringify(contains).slice(0, 200)}`;
  if (typeof minContains === 'number' && count < minContains) fault(`${has(minContains, 'least')} ${containing}`);
  if (typeof maxContains === 'number' && count > maxContains) fault(`${has(maxContains, 'most')} ${containing}`);
}

function checkMapping(
  schema: ValueSchema,
  value: { [key: string]: Json },
  path: Path,
  validation: Validation,
  fault: Report,
): void {
  const { faults, maximum } = validation;
  const keys = Object.keys(value);
  const has = (count: number, word: string) => `must have at ${word} ${count} ${count === 1 ? 'key' : 'keys'}`;
  limit(schema, 'minProperties', (least) => (keys.length < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxProperties', (most) => (keys.length > most ? has(most, 'most') : undefined), fault);
  for (const key of listOf(schema.required)) if (!Object.hasOwn(value, String(key))) fault(`needs the key "${key}"`);
  checkDependents(schema, value, path, validation, fault);
  const properties = isMapping(schema.properties) ? schema.properties : {};
  const patterns = isMapping(schema.patternProperties) ? Object.entries(schema.patternProperties) : [];
  const { additionalProperties: others, propertyNames } = schema;
  for (const key of keys) {
    if (isSchema(propertyNames)) {
      const [wrong] = tried(propertyNames, key, [...path, key], validation);
      if (wrong !== undefined) fault(`has the key "${key.slice(0, 100)}", which ${wrong.message}`);
    }
    const matching = patterns.filter(([pattern]) => {
      const wrong = patternFault(pattern, key, validation);
      return wrong === undefined;
    });
    for (const [, inner] of matching) check(inner, value[key] as Json, [...path, key], validation);
    const isListed = Object.hasOwn(properties, key);
    const inner = isListed ? properties[key] : matching.length > 0 ? true : others;
    if (isSchema(inner) && inner !== false) check(inner, value[key] as Json, [...path, key], validation);
    else if (inner === false && faults.length < maximum)
      faults.push({ path: [...path, key], message: unknownKey('key', key, Object.keys(properties)) });
    if (faults.length >= maximum) return;
  }
}

/** Checks the keywords that depend on whether a key exists. */
function checkDependents(
  { dependentRequired, dependentSchemas }: ValueSchema,
  value: { [key: string]: Json },
  path: Path,
  validation: Validation,
  fault: Report,
): void {
  for (const [key, needed] of isMapping(dependentRequired) ? Object.entries(dependentRequired) : []) {
    if (!Object.hasOwn(value, key)) continue;
    for (const other of listOf(needed))
      if (!Object.hasOwn(value, String(other))) fault(`needs the key "${other}", because it has "${key}"`);
  }
  for (const [key, inner] of isMapping(dependentSchemas) ? Object.entries(dependentSchemas) : [])
    if (Object.hasOwn(value, key)) check(inner, value, path, validation);
}

const shown = (values: readonly Json[]): string =>
  values
    .slice(0, 20)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 100))
    .join(', ') + (values.length > 20 ? ', …' : '');

const canonicalSets = new WeakMap<readonly Json[], ReadonlySet<string>>();

/**
 * Returns the values of an `enum` as canonical strings. Cached, because each element of a list is compared with them.
 */
function canonicalSet(values: readonly Json[]): ReadonlySet<string> {
  const known = canonicalSets.get(values) ?? new Set(values.map(canonical));
  canonicalSets.set(values, known);
  return known;
}

/** Returns a string that is the same for equal values, regardless of the order of keys. */
export const canonical = (value: Json): string =>
  JSON.stringify(value, (_, item: unknown) =>
    isMapping(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
