import type { Json, Parameter, ParameterType } from './document.ts';
import { suggestion } from './nearest.ts';

const isText = (value: Json): boolean => typeof value === 'string';

const forms: Record<ParameterType, { fits: (value: Json) => boolean; form: string }> = {
  string: { fits: isText, form: 'text' },
  integer: { fits: (value) => Number.isSafeInteger(value), form: 'a whole number' },
  number: { fits: (value) => typeof value === 'number' && Number.isFinite(value), form: 'a number' },
  boolean: { fits: (value) => typeof value === 'boolean', form: 'true or false' },
  list: { fits: Array.isArray, form: 'a list' },
  map: { fits: (value) => typeof value === 'object' && value !== null && !Array.isArray(value), form: 'a mapping' },
};

/** Returns the error in a value for a parameter of this type; undefined if the value is valid. */
export const parameterFault = (type: ParameterType, value: Json): string | undefined =>
  // An unknown type is reported separately.
  Object.hasOwn(forms, type) && !forms[type].fits(value) ? `must be ${forms[type].form}, to match its type` : undefined;

/**
 * Returns the values of a module's parameters: the given values, or the defaults.
 * @param given values by name; null counts as absent
 * @returns the values, and an error for each unknown parameter and each value of the wrong type
 */
export function parameterValues(
  declared: Readonly<Record<string, Parameter>>,
  given: Readonly<Record<string, Json>>,
): { values: ReadonlyMap<string, Json>; faults: { name: string; message: string }[] } {
  const values = new Map<string, Json>();
  const faults: { name: string; message: string }[] = [];
  for (const [name, parameter] of Object.entries(declared)) {
    if (parameter.default !== null) values.set(name, parameter.default);
  }
  for (const [name, value] of Object.entries(given)) {
    if (value === null) continue;
    const parameter = Object.hasOwn(declared, name) ? declared[name] : undefined;
    if (parameter === undefined) {
      const message = `the module has no parameter "${name}"${suggestion(name, Object.keys(declared))}`;
      faults.push({ name, message });
      continue;
    }
    const message = parameterFault(parameter.type, value);
    if (message === undefined) values.set(name, value);
    else faults.push({ name, message });
  }
  return { values, faults };
}
