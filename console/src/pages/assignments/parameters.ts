import { parseDocument, stringify } from 'yaml';
import { type DeclaredParameter, isTooDeep } from '../../editor/outline.ts';

/** The values that an assignment sets for its modules, as a form shows them. Pure. */

/** By module, by parameter, as the API has them. */
export type ParameterValues = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ParameterField {
  readonly module: string;
  readonly name: string;
  /** `unknown`: the module declares no such parameter any more. */
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list' | 'map' | 'unknown';
  readonly description: string | null;
  /** As it is written in a field; null: there is none, so a value must be set. */
  readonly fallback: string | null;
  readonly key: string;
}

/** What is typed, by the key of the field; an empty text leaves the default. */
export type ParameterTexts = Readonly<Record<string, string>>;

export const fieldKey = (module: string, name: string): string => JSON.stringify([module, name]);

const types: readonly string[] = ['string', 'integer', 'number', 'boolean', 'list', 'map'];

/** A value as one writes it. An empty text is written with quotes, as nothing means the default. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value === '' || /^\s*["']/.test(value) ? JSON.stringify(value) : value;
  if (typeof value === 'object') return stringify(value).trimEnd();
  return String(value);
}

/**
 * The fields of the form: what each module declares, in that order, then whatever is set that no module declares.
 * @param declared by module; undefined while it is not known
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

type Read = { readonly value: unknown } | { readonly fault: string };

const readYaml = (text: string, fits: (value: unknown) => boolean, fault: string): Read => {
  if (isTooDeep(text)) return { fault };
  try {
    const document = parseDocument(text, { logLevel: 'silent' });
    if (document.errors.length > 0) return { fault };
    // No alias: what they could blow up to is nobody's to send.
    const value = document.toJS({ maxAliasCount: 0 });
    return fits(value) ? { value } : { fault };
  } catch {
    return { fault };
  }
};

const isMap = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param text not empty */
export function readValue(type: ParameterField['type'], text: string): Read {
  const trimmed = text.trim();
  switch (type) {
    case 'string': {
      if (!/^\s*["']/.test(text)) return { value: text };
      return readYaml(trimmed, (value) => typeof value === 'string', 'Close the quotes, or leave them out.');
    }
    case 'integer':
      return /^-?\d{1,16}$/.test(trimmed) && Number.isSafeInteger(Number(trimmed))
        ? { value: Number(trimmed) }
        : { fault: 'Write a whole number.' };
    case 'number':
      return /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(trimmed) && Number.isFinite(Number(trimmed))
        ? { value: Number(trimmed) }
        : { fault: 'Write a number.' };
    case 'boolean':
      return trimmed === 'true' || trimmed === 'false'
        ? { value: trimmed === 'true' }
        : { fault: 'Choose true or false.' };
    case 'list':
      return readYaml(text, Array.isArray, 'Write a list: one “- element” a line, or [a, b].');
    case 'map':
      return readYaml(text, isMap, 'Write a mapping: one “key: value” a line.');
    case 'unknown':
      return { fault: 'The module declares no such parameter: take it away.' };
  }
}

/** What to send; or what is wrong, by the key of the field. Values of modules that are not listed are left out. */
export function readParameters(
  fields: readonly ParameterField[],
  texts: ParameterTexts,
): { parameters: Record<string, Record<string, never>> } | { faults: Readonly<Record<string, string>> } {
  const faults: Record<string, string> = {};
  const parameters = new Map<string, [string, unknown][]>();
  for (const { module, name, type, fallback, key } of fields) {
    const text = texts[key] ?? '';
    if (text.trim() === '') {
      if (fallback === null && type !== 'unknown') faults[key] = 'It has no default: set it.';
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
