import { isMapping } from '../../../mapping.ts';
import type { Json } from '../../document.ts';
import type { Meter } from '../meter.ts';
import { ExpressionError, fromCel } from '../values.ts';
import type { ExpressionFunction } from './function.ts';

/** Functions that write maps as configuration files. */

type JsonMap = { readonly [key: string]: Json };

function mapOf(value: unknown, name: string): JsonMap {
  const json = fromCel(value);
  if (isMapping(json)) return json;
  throw new ExpressionError(`${name} takes a map of names to values`);
}

/** Quotes text for TOML, which uses the same escapes as JSON, but does not allow an unescaped U+007F. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007F', '\\u007f');

const bareKey = /^[A-Za-z0-9_-]+$/;
const keyText = (key: string): string => (bareKey.test(key) ? key : quoted(key));

/** Returns the tables of a list that consists of maps; undefined for other values. */
const tablesIn = (value: Json): readonly JsonMap[] | undefined =>
  Array.isArray(value) && value.length > 0 && value.every((item) => isMapping(item)) ? value : undefined;

function inlineToml(value: Json): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null) throw new ExpressionError('TOML has no null: leave the key out with | omit');
  if (Array.isArray(value)) return `[${value.map(inlineToml).join(', ')}]`;
  if (!isMapping(value)) return String(value);
  return `{ ${Object.entries(value)
    .map(([key, item]) => `${keyText(key)} = ${inlineToml(item)}`)
    .join(', ')} }`;
}

/**
 * Returns the lines of a table. The values come before the tables in it, because a value after a header would belong to
 * that table.
 * @see https://toml.io/en/v1.0.0
 */
function tomlLines(table: JsonMap, path: readonly string[]): string[] {
  const values: string[] = [];
  const tables: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    const inner = [...path, keyText(key)];
    const list = tablesIn(value);
    if (isMapping(value)) tables.push('', `[${inner.join('.')}]`, ...tomlLines(value, inner));
    else if (list === undefined) values.push(`${keyText(key)} = ${inlineToml(value)}`);
    else for (const item of list) tables.push('', `[[${inner.join('.')}]]`, ...tomlLines(item, inner));
  }
  return [...values, ...tables];
}

function iniText(name: string, value: Json): string {
  const text = Array.isArray(value) || isMapping(value) || value === null ? undefined : String(value);
  if (text === undefined || /[\r\n]/.test(text))
    throw new ExpressionError(
      `ini: the value of ${JSON.stringify(name)} must be one line of text, a number, or a Boolean`,
    );
  return text;
}

function iniName(name: string, forbidden: RegExp): string {
  if (name !== '' && !forbidden.test(name)) return name;
  throw new ExpressionError(`ini: ${JSON.stringify(name)} cannot be a name in this format`);
}

function iniLines(section: JsonMap): string[] {
  return Object.entries(section).map(([key, value]) =>
    `${iniName(key, /^[[#;\s]|[=\r\n]|\s$/)} = ${iniText(key, value)}`.trimEnd(),
  );
}

function ini(map: JsonMap): string {
  const entries = Object.entries(map);
  const global = iniLines(Object.fromEntries(entries.filter(([, value]) => !isMapping(value))));
  const sections = entries.flatMap(([name, value]) =>
    isMapping(value) ? ['', `[${iniName(name, /[\]\r\n]/)}]`, ...iniLines(value)] : [],
  );
  return written([...global, ...sections]);
}

/** Joins lines. The first header has no empty line above it. */
const written = (lines: readonly string[]): string =>
  lines
    .slice(lines[0] === '' ? 1 : 0)
    .map((line) => `${line}\n`)
    .join('');

/** Counts the steps for writing text, 20 and one per 16 characters, and returns the text. */
function metered(meter: Meter, text: string): string {
  meter.spend(20 + (text.length >> 4));
  return text;
}

export const formatFunctions: readonly ExpressionFunction[] = [
  {
    name: 'toml',
    form: 'toml(map)',
    signatures: ['toml(dyn): string'],
    about: 'The map as TOML, with a line break at the end. A nested map becomes a table.',
    examples: [['toml({"a": 1, "b": {"c": ["d"]}})', '"a = 1\\n\\n[b]\\nc = [\\"d\\"]\\n"']],
    call: (meter, value: unknown) => metered(meter, written(tomlLines(mapOf(value, 'toml'), []))),
  },
  {
    name: 'ini',
    form: 'ini(map)',
    signatures: ['ini(dyn): string'],
    about:
      'The map as INI, with a line break at the end. A nested map becomes a section, whose values must be plain values.',
    examples: [['ini({"a": 1, "b": {"c": "d"}})', '"a = 1\\n\\n[b]\\nc = d\\n"']],
    call: (meter, value: unknown) => metered(meter, ini(mapOf(value, 'ini'))),
  },
];
