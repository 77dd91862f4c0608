import { isMapping } from '../mapping.ts';
import { type AgentFacts, described } from './conditions.ts';
import type { Json, Parameter } from './document.ts';
import { reasonOrValue } from './expression/values.ts';
import { quoted, suggestion } from './nearest.ts';
import {
  type Combined,
  type Conflict,
  combine,
  type Layer,
  mergeLimits,
  originText,
  shownPath,
} from './parameters/layers.ts';
import { partSchema, type ValueFault } from './parameters/value-keywords.ts';
import { valueFaults } from './parameters/value-schema.ts';
import { chooseVariant } from './variants.ts';

/** Returns the errors in a parameter value, with their paths in the value. */
export const parameterFaults = ({ type, schema }: Pick<Parameter, 'type' | 'schema'>, value: Json): ValueFault[] =>
  valueFaults({ ...schema, type }, value);

/** Returns the error if a parameter's type cannot be merged as declared. */
export function mergeFault({ type, merge }: Parameter): string | undefined {
  if (merge === 'replace') return undefined;
  const needed = merge === 'deep' ? 'map' : 'list';
  return type === needed ? undefined : `${merge} merges only parameters of type ${needed}; this one is a ${type}`;
}

export interface ParameterFault {
  /** Name of the parameter. */
  readonly name: string;
  /** Begins with the parameter's name. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/**
 * Returns an error for each unknown parameter, and for each value that does not match its declaration. A value that is
 * merged with other values may be a part of a valid value.
 * @param given values by name; null is treated as absent
 */
export function givenFaults(
  declared: Readonly<Record<string, Parameter>>,
  given: Readonly<Record<string, Json>>,
): ParameterFault[] {
  return Object.entries(given).flatMap(([name, value]): ParameterFault[] => {
    if (value === null) return [];
    const parameter = Object.hasOwn(declared, name) ? declared[name] : undefined;
    if (parameter === undefined) return [unknownParameter(declared, name)];
    return layerFaults(parameter, value).map((fault) => located(name, fault));
  });
}

/** Returns the error for a value whose parameter does not exist. */
export const unknownParameter = (declared: Readonly<Record<string, Parameter>>, name: string): ParameterFault => ({
  name,
  path: [name],
  message: `the module has no parameter ${quoted(name)}${suggestion(name, Object.keys(declared))}`,
});

/** @param layers the layers that the part with the error comes from */
function located(name: string, { path, message }: ValueFault, layers: readonly Layer[] = []): ParameterFault {
  const origins = [...new Set(layers.map(originText))].filter((text) => text !== '');
  const shown = origins.length > 5 ? [...origins.slice(0, 5), '…'] : origins;
  const suffix = shown.length === 0 ? '' : ` (${shown.join(', ')})`;
  return { name, path: [name, ...path], message: `parameter ${shownPath(name, path)}: ${message}${suffix}` };
}

/** Returns the errors in a value before it is merged with other values. */
function layerFaults(parameter: Parameter, value: Json): ValueFault[] {
  const { merge, schema, type } = parameter;
  if (merge === 'replace') return parameterFaults(parameter, value);
  const exceeded = mergedSizeFault([value]);
  if (exceeded !== undefined) return [{ path: [], message: exceeded }];
  const part = merge === 'deep' ? withoutNulls(value) : value;
  return valueFaults(partSchema({ ...schema, type }, merge), part);
}

/** Returns a mapping without its null keys, which remove keys of lower layers. */
const withoutNulls = (value: Json): Json =>
  isMapping(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)] as const])),
      )
    : value;

/** Returns the error if values are too large or too deep to be merged. */
function mergedSizeFault(values: readonly Json[]): string | undefined {
  let left = mergeLimits.values;
  const fits = (value: Json, depth: number): boolean => {
    if (--left < 0 || depth > mergeLimits.depth) return false;
    return typeof value !== 'object' || value === null || Object.values(value).every((item) => fits(item, depth + 1));
  };
  return values.every((value) => fits(value, 0))
    ? undefined
    : `values that are merged have at most ${mergeLimits.values} values in total, nested at most ${mergeLimits.depth} deep`;
}

export interface LayeredParameters {
  readonly values: ReadonlyMap<string, Json>;
  readonly faults: readonly ParameterFault[];
  readonly conflicts: readonly { readonly name: string; readonly conflict: Conflict }[];
}

/**
 * Determines the values of a module's parameters for an agent, from layers and from the declarations.
 * @param layers by parameter; null values are treated as absent
 * @param agent chooses among the variants of a default; without it, they are ignored
 * @returns the values; an error for each unknown parameter and in each value that does not match its declaration; and
 * the conflicts
 */
export function layeredParameters(
  declared: Readonly<Record<string, Parameter>>,
  layers: Readonly<Record<string, readonly Layer[]>>,
  agent?: AgentFacts,
): LayeredParameters {
  const values = new Map<string, Json>();
  const faults: ParameterFault[] = [];
  const conflicts: { name: string; conflict: Conflict }[] = [];
  for (const [name, parameter] of Object.entries(declared)) {
    const given = Object.hasOwn(layers, name) ? (layers[name] ?? []) : [];
    if (given.length === 0) {
      // Most parameters have only their default.
      const own = declaredLayer(parameter, agent);
      if (own.fault !== null) faults.push(located(name, { path: [], message: own.fault }));
      if (own.layer !== null) values.set(name, own.layer.value);
      continue;
    }
    const found = parameterValue(name, parameter, given, agent);
    faults.push(...found.faults);
    const conflict = found.combined?.conflict ?? null;
    if (conflict !== null) conflicts.push({ name, conflict });
    else if (found.combined !== null && found.combined.value !== null) values.set(name, found.combined.value);
  }
  for (const [name, given] of Object.entries(layers)) {
    if (Object.hasOwn(declared, name)) continue;
    const present = given.filter(({ value }) => value !== null);
    if (present.length === 0) continue;
    const { message, ...fault } = unknownParameter(declared, name);
    const [origin = ''] = present.map(originText);
    faults.push({ ...fault, message: origin === '' ? message : `${message} (${origin})` });
  }
  return { values, faults, conflicts };
}

/**
 * Combines the layers of one parameter with its default, which is merged as well.
 * @returns null as `combined` if there is no value; with errors, only the default
 */
export function parameterValue(
  name: string,
  parameter: Parameter,
  layers: readonly Layer[],
  agent: AgentFacts | undefined,
): { combined: Combined | null; faults: readonly ParameterFault[] } {
  const { merge } = parameter;
  const given = layers.filter(({ value }) => value !== null);
  const own = declaredLayer(parameter, agent);
  const all = own.layer === null ? given : [own.layer, ...given];
  const faulty = (faults: readonly ParameterFault[]) => ({
    combined: own.layer === null ? null : combine('replace', [own.layer]),
    faults,
  });
  if (own.fault !== null && (given.length === 0 || merge !== 'replace'))
    return faulty([located(name, { path: [], message: own.fault })]);
  // Defaults are checked when the module is uploaded.
  if (given.length === 0) return faulty([]);
  if (merge !== 'replace') {
    const found = given.flatMap((layer) =>
      layerFaults(parameter, layer.value).map((fault) => located(name, fault, [layer])),
    );
    if (found.length > 0) return faulty(found);
    const exceeded = mergedSizeFault(all.map(({ value }) => value));
    if (exceeded !== undefined) return faulty([located(name, { path: [], message: exceeded }, all.toReversed())]);
  }
  const combined = combine(merge, all);
  const found = parameterFaults(parameter, combined.value);
  if (found.length === 0) return { combined, faults: [] };
  return faulty(found.map((fault) => located(name, fault, combined.giversOf(fault.path))));
}

/** Returns the layer of the matching variant, or of the default; and the error if several variants tie. */
function declaredLayer(
  { default: value, variants }: Parameter,
  agent: AgentFacts | undefined,
): { layer: Layer | null; fault: string | null } {
  const layer: Layer | null = value === null ? null : { value, from: 'default', name: null, precedence: null };
  if (agent === undefined || variants.length === 0) return { layer, fault: null };
  const conditions = variants.map(({ when }) => when);
  const choice = reasonOrValue(() => chooseVariant(conditions, agent));
  if (typeof choice === 'string') return { layer, fault: choice };
  if (choice.kind === 'none') return { layer, fault: null };
  if (choice.kind === 'chosen') {
    const chosen = variants[choice.index]?.value ?? null;
    return {
      layer: chosen === null ? layer : { value: chosen, from: 'variant', name: null, precedence: null },
      fault: null,
    };
  }
  const tied = choice.indices.map((index) => described(conditions[index] ?? {})).join(' | ');
  return {
    layer,
    fault: `these variants match the agent with the same number of keys: ${tied}; add a key to one of them`,
  };
}

/** Returns unnamed layers for values, such as those from a file. */
export const givenLayers = (given: Readonly<Record<string, Json>>): Record<string, Layer[]> =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, [{ value, from: 'given', name: null, precedence: 0 }]]),
  );
