import { parseDocument, stringify } from 'yaml';
import { type DeclaredParameter, isTooDeep } from '../../editor/outline.ts';

/** Form fields for an assignment's module parameters. */

/** Parameter values by module and name, as in the API. */
export type ParameterValues = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ParameterField {
  readonly module: string;
  readonly name: string;
  /** `unknown` if the module no longer declares the parameter. */
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'map' | 'unknown';
  readonly description: string | null;
  /** The default value as field text. If null, there is no default and a value is required. */
  readonly fallback: string | null;
  readonly key: string;
}

/** Typed values by field key. An empty value selects the default. */
export type ParameterTexts = Readonly<Record<string, string>>;

export const fieldKey = (module: string, name: string): string => JSON.stringify([module, name]);

const types: readonly string[] = ['string', 'integer', 'number', 'boolean', 'list', 'map'];

/** Formats a value as field text. An empty string becomes `""`, because an empty field selects the default. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value === '' || /^\s*["']/.test(value) ? JSON.stringify(value) : value;
  if (typeof value === 'object') return stringify(value).trimEnd();
  return String(value);
}

/**
 * Returns the form fields: for each module, its declared parameters in order, then parameters that have a value but are
 * not declared.
 * @param declared parameters by module; does not contain modules that are still loading
 */
export function fieldsOf(
  modules: readonly string[],
  declared: ReadonlyMap<string, readonly DeclaredParameter[]>,
  given: ParameterValues,
): ParameterField[] {
  return [...new Set([...modules, ...Object.keys(given)])].flatMap((module) => {
    const known = declared.get(module);
    const fields = (known ?? []).map(
      ({ name, type, description, default: fallback }): ParameterField => ({
        ...{ module, name, description, key: fieldKey(module, name) },
        type: types.includes(type) ? (type as ParameterField['type']) : 'unknown',
        fallback: fallback === undefined ? null : textOf(fallback),
      }),
    );
    const isKnown = new Set(fields.map(({ name }) => name));
    const others = Object.keys(given[module] ?? {})
      .filter((name) => !isKnown.has(name))
      .map(
        (name): ParameterField => ({
          ...{ module, name, type: 'unknown', description: null, fallback: null, key: fieldKey(module, name) },
        }),
      );
    return [...fields, ...others];
  });
}

export const textsOf = (given: ParameterValues): ParameterTexts =>
  Object.fromEntries(
    Object.entries(given).flatMap(([module, values]) =>
      Object.entries(values).map(([name, value]) => [fieldKey(module, name), textOf(value)]),
    ),
  );

type ReadResult = { readonly value: unknown } | { readonly fault: string };

const readYaml = (text: string, isValid: (value: unknown) => boolean, fault: string): ReadResult => {
  if (isTooDeep(text)) return { fault };
  try {
    const document = parseDocument(text, { logLevel: 'silent' });
    if (document.errors.length > 0) return { fault };
    // A limit of 0 rejects all aliases, because they can expand exponentially.
    const value = document.toJS({ maxAliasCount: 0 });
    return isValid(value) ? { value } : { fault };
  } catch {
    return { fault };
  }
};

const isMap = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param text must not be empty */
export function readValue(type: ParameterField['type'], text: string): ReadResult {
  const trimmed = text.trim();
  switch (type) {
    case 'string': {
      if (!/^\s*["']/.test(text)) return { value: text };
      return readYaml(trimmed, (value) => typeof value === 'string', 'Close or remove the quotes.');
    }
    case 'integer':
      return /^-?\d{1,16}$/.test(trimmed) && Number.isSafeInteger(Number(trimmed))
        ? { value: Number(trimmed) }
        : { fault: 'Enter a whole number.' };
    case 'number':
      return /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed) && Number.isFinite(Number(trimmed))
        ? { value: Number(trimmed) }
        : { fault: 'Enter a number.' };
    case 'boolean':
      return trimmed === 'true' || trimmed === 'false'
        ? { value: trimmed === 'true' }
        : { fault: 'Choose true or false.' };
    case 'list':
      return readYaml(text, Array.isArray, 'Enter a list: one “- element” per line, or [a, b].');
    case 'map':
      return readYaml(text, isMap, 'Enter a mapping: one “key: value” per line.');
    case 'unknown':
      return { fault: 'The module does not declare this parameter. Remove it.' };
  }
}

/**
 * Returns the parameters to send, or error messages by field key.
 * @param isGiven reports whether another assignment sets a value for the field's parameter
 */
export function readParameters(
  fields: readonly ParameterField[],
  texts: ParameterTexts,
  isGiven: (key: string) => boolean = () => false,
): { parameters: Record<string, Record<string, never>> } | { faults: Readonly<Record<string, string>> } {
  const faults: Record<string, string> = {};
  const parameters = new Map<string, [string, unknown][]>();
  for (const { module, name, type, fallback, key } of fields) {
    const text = texts[key] ?? '';
    if (text.trim() === '') {
      if (fallback === null && type !== 'unknown' && !isGiven(key))
        faults[key] = 'Enter a value: the parameter has no default.';
      continue;
    }
    const read = readValue(type, text);
    if ('fault' in read) faults[key] = read.fault;
    else parameters.set(module, [...(parameters.get(module) ?? []), [name, read.value]]);
  }
  if (Object.keys(faults).length > 0) return { faults };
  return {
    parameters: Object.fromEntries(
      [...parameters].map(([module, values]) => [module, Object.fromEntries(values)]),
    ) as Record<string, Record<string, never>>,
  };
}
