import { isMap, isScalar, isSeq, parseDocument, type YAMLMap } from 'yaml';

/**
 * Reads the names in a module that may be incomplete: ids, templates, and parameters. Safe for any input: aliases are
 * not resolved, so they cannot expand exponentially.
 */

export interface DeclaredParameter {
  readonly name: string;
  /** The type as written; it may be invalid. */
  readonly type: string;
  readonly description: string | null;
  /** Undefined if the parameter has no default. */
  readonly default: unknown;
  /** Declared keys of the parameter's value or, for a list, of its elements. */
  readonly keys: readonly string[];
}

/** A loop variable, with the known keys of its elements. */
export interface LoopVariable {
  readonly name: string;
  readonly keys: readonly string[];
}

export interface ModuleOutline {
  readonly name: string | null;
  readonly ids: readonly string[];
  readonly templates: readonly string[];
  readonly parameters: readonly DeclaredParameter[];
  readonly lookups: readonly { readonly name: string; readonly of: string | null }[];
  /** Loop variables of each resource; empty for a resource without `for_each`. */
  readonly loops: readonly (readonly LoopVariable[])[];
}

const nothing: ModuleOutline = { name: null, ids: [], templates: [], parameters: [], lookups: [], loops: [] };
/** Maximum length in characters. Longer text takes too long to parse on every keystroke. */
const maxLength = 512 * 1024;

const text = (map: YAMLMap, key: string): string | null => {
  const node = map.get(key, true);
  return isScalar(node) && typeof node.value === 'string' ? node.value : null;
};

const texts = (list: unknown, key: string): string[] =>
  isSeq(list) ? list.items.flatMap((item) => (isMap(item) ? (text(item, key) ?? []) : [])) : [];

/** Converts a node to a JSON value. Returns undefined for aliases and for values nested more than eight levels deep. */
function toPlainValue(node: unknown, depth = 0): unknown {
  if (depth > 8) return undefined;
  if (isScalar(node)) return ['string', 'number', 'boolean'].includes(typeof node.value) ? node.value : null;
  if (isSeq(node)) return node.items.map((item) => toPlainValue(item, depth + 1));
  if (isMap(node))
    return Object.fromEntries(
      node.items.flatMap(({ key, value }) =>
        isScalar(key) ? [[String(key.value), toPlainValue(value, depth + 1)]] : [],
      ),
    );
  return undefined;
}

/**
 * Reports whether brackets are nested deeper than in any real module, because the parser takes seconds for ten thousand
 * levels. Brackets in strings count too, so the result is wrong for a string with very many unclosed brackets.
 */
export function isTooDeep(content: string): boolean {
  let depth = 0;
  for (let index = 0; index < content.length; index++) {
    const code = content.charCodeAt(index);
    if (code === 0x5b || code === 0x7b) {
      if (++depth > 500) return true;
    } else if ((code === 0x5d || code === 0x7d) && depth > 0) depth--;
  }
  return false;
}

export function outlineOf(content: string): ModuleOutline {
  if (content.length > maxLength || isTooDeep(content)) return nothing;
  let root: unknown;
  try {
    root = parseDocument(content, { strict: false, uniqueKeys: false, logLevel: 'silent' }).contents;
  } catch {
    // The parser throws on extremely deep nesting.
    return nothing;
  }
  if (!isMap(root)) return nothing;
  const parameters = declaredIn(root, 'parameters').flatMap(parameterOf);
  const resources = root.get('resources', true);
  return {
    name: text(root, 'name'),
    ids: texts(resources, 'id'),
    templates: texts(root.get('templates', true), 'id'),
    parameters,
    lookups: declaredIn(root, 'lookups').map(([name, declared]) => ({ name, of: text(declared, 'of') })),
    loops: isSeq(resources)
      ? resources.items.map((item) => (isMap(item) ? loopOf(item.get('for_each', true), parameters) : []))
      : [],
  };
}

/** Returns the mappings below a key of the module, by name. */
function declaredIn(root: YAMLMap, key: string): [string, YAMLMap][] {
  const mapping = root.get(key, true);
  if (!isMap(mapping)) return [];
  return mapping.items.flatMap(({ key, value }): [string, YAMLMap][] =>
    isScalar(key) && isMap(value) ? [[String(key.value), value]] : [],
  );
}

function parameterOf([name, declared]: [string, YAMLMap]): DeclaredParameter[] {
  const type = text(declared, 'type');
  if (type === null) return [];
  const given = declared.get('default', true);
  const value = given === undefined || (isScalar(given) && given.value === null) ? undefined : toPlainValue(given);
  const items = declared.get('items', true);
  const owner = type === 'list' ? items : declared;
  const properties = isMap(owner) ? owner.get('properties', true) : undefined;
  const keys = [...keysOf(toPlainValue(properties)), ...(type === 'list' ? elementKeys(value) : keysOf(value))];
  return [{ name, type, description: text(declared, 'description'), default: value, keys: [...new Set(keys)] }];
}

const keysOf = (value: unknown): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
const elementKeys = (value: unknown): string[] =>
  Array.isArray(value) ? [...new Set(value.slice(0, 100).flatMap(keysOf))] : [];

const entryKeys = ['key', 'value'];

function loopOf(node: unknown, parameters: readonly DeclaredParameter[]): LoopVariable[] {
  const keysIn = (expression: string): readonly string[] => {
    const name = /^\s*(?:\$\{\{)?\s*param\.(\w+)\s*(?:\}\})?\s*$/.exec(expression)?.[1];
    const parameter = parameters.find((one) => one.name === name);
    return parameter?.type === 'map' ? entryKeys : (parameter?.keys ?? []);
  };
  const each = (keys: readonly string[]): LoopVariable[] => [
    { name: 'each', keys },
    { name: 'index', keys: [] },
  ];
  if (isScalar(node) && typeof node.value === 'string') return each(keysIn(node.value));
  if (isSeq(node)) return each(elementKeys(toPlainValue(node)));
  if (!isMap(node)) return [];
  const lists = Object.entries(toPlainValue(node) as Record<string, unknown>);
  // The resource has nested loops, or a literal map.
  if (!lists.every(([, list]) => typeof list === 'string')) return each(entryKeys);
  return [...lists.map(([name, list]) => ({ name, keys: keysIn(list as string) })), ...each([])];
}
