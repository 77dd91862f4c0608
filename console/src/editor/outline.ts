import { isMap, isScalar, isSeq, parseDocument, type YAMLMap } from 'yaml';

/**
 * Reads the names in a module that may be incomplete: ids, templates, and parameters. Safe for any input: aliases are
 * not resolved, so they cannot expand exponentially.
 */

export interface DeclaredParameter {
  readonly name: string;
  /** The type as written; may be invalid. */
  readonly type: string;
  readonly description: string | null;
  /** Undefined if the parameter has no default. */
  readonly default: unknown;
}

export interface ModuleOutline {
  readonly name: string | null;
  readonly ids: readonly string[];
  readonly templates: readonly string[];
  readonly parameters: readonly DeclaredParameter[];
}

const nothing: ModuleOutline = { name: null, ids: [], templates: [], parameters: [] };
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
 * levels. Also counts brackets in strings, so a string with very many unclosed brackets causes a wrong result.
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
  const parameters = root.get('parameters', true);
  return {
    name: text(root, 'name'),
    ids: texts(root.get('resources', true), 'id'),
    templates: texts(root.get('templates', true), 'id'),
    parameters: isMap(parameters)
      ? parameters.items.flatMap(({ key, value }) => {
          if (!isScalar(key) || !isMap(value)) return [];
          const type = text(value, 'type');
          if (type === null) return [];
          const given = value.get('default', true);
          return [
            {
              name: String(key.value),
              type,
              description: text(value, 'description'),
              default:
                given === undefined || (isScalar(given) && given.value === null) ? undefined : toPlainValue(given),
            },
          ];
        })
      : [],
  };
}
