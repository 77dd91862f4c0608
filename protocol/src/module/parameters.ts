import { type AgentFacts, described } from './conditions.ts';
import type { Json, Parameter } from './document.ts';
import { reasonOrValue } from './expression/values.ts';
import { suggestion } from './nearest.ts';
import { type ValueFault, valueFaults } from './parameters/value-schema.ts';
import { chooseVariant } from './variants.ts';

/** Returns the errors in a value for a parameter, with their paths in the value. */
export const parameterFaults = ({ type, schema }: Pick<Parameter, 'type' | 'schema'>, value: Json): ValueFault[] =>
  valueFaults({ ...schema, type }, value);

/**
 * Returns the values of a module's parameters: the given values, or the defaults.
 * @param given values by name; null counts as absent
 * @param agent chooses among the variants of a default; without it, they are ignored
 * @returns the values, and an error for each unknown parameter and in each value that does not match its declaration
 */
export function parameterValues(
  declared: Readonly<Record<string, Parameter>>,
  given: Readonly<Record<string, Json>>,
  agent?: AgentFacts,
): {
  values: ReadonlyMap<string, Json>;
  /** `path` begins with the parameter's name. */
  faults: { name: string; path: (string | number)[]; message: string }[];
} {
  const values = new Map<string, Json>();
  const faults: { name: string; path: (string | number)[]; message: string }[] = [];
  for (const [name, parameter] of Object.entries(declared)) {
    const { value, fault } = declaredValue(parameter, agent);
    if (fault !== null && !isGiven(given, name)) faults.push({ name, path: [name], message: fault });
    if (value !== null) values.set(name, value);
  }
  for (const [name, value] of Object.entries(given)) {
    if (value === null) continue;
    const parameter = Object.hasOwn(declared, name) ? declared[name] : undefined;
    if (parameter === undefined) {
      const message = `the module has no parameter "${name}"${suggestion(name, Object.keys(declared))}`;
      faults.push({ name, path: [name], message });
      continue;
    }
    const found = parameterFaults(parameter, value);
    if (found.length === 0) values.set(name, value);
    for (const { path, message } of found)
      faults.push({ name, path: [name, ...path], message: `${shown(path)}${message}` });
  }
  return { values, faults };
}

const isGiven = (given: Readonly<Record<string, Json>>, name: string): boolean =>
  Object.hasOwn(given, name) && given[name] !== null;

/** Returns the value of the matching variant, or the default; and the error if several variants tie. */
export function declaredValue(
  parameter: Parameter,
  agent: AgentFacts | undefined,
): { value: Json; fault: string | null } {
  const value = parameter.default;
  if (agent === undefined || parameter.variants.length === 0) return { value, fault: null };
  const conditions = parameter.variants.map(({ when }) => when);
  const choice = reasonOrValue(() => chooseVariant(conditions, agent));
  if (typeof choice === 'string') return { value, fault: choice };
  if (choice.kind === 'none') return { value, fault: null };
  if (choice.kind === 'chosen') return { value: parameter.variants[choice.index]?.value ?? value, fault: null };
  const tied = choice.indices.map((index) => described(conditions[index] ?? {})).join(' | ');
  return {
    value,
    fault: `these variants match the agent with the same number of keys: ${tied}; add a key to one of them`,
  };
}

/** Returns the path in a value for the beginning of a message, such as `users[0].uid: `. */
const shown = (path: readonly (string | number)[]): string =>
  path.length === 0
    ? ''
    : `${path.reduce<string>((text, step) => (typeof step === 'number' ? `${text}[${step}]` : text === '' ? step : `${text}.${step}`), '')}: `;
