import { isResourceType, type Json, kindFields, type ResourceType } from '@muster/protocol/module';
import { parse } from 'yaml';
import { blocksOf, linksOf } from './markdown.ts';

/** Checks that the modules in docs/coming-from.md show the idioms in its tables. */

interface Row {
  /** Line number on the page, from 1. */
  line: number;
  /** The texts between backticks in the column of Muster. */
  spans: string[];
  isSupported: boolean;
  /** The names in the last column. */
  names: string[];
}

interface Section {
  rows: Row[];
  /** Sources of the modules in the section, and of the files that it links to. */
  modules: string[];
}

/** A part of a module that has a name: a resource, a template, a parameter, a lookup, or a key such as `verify`. */
interface Part {
  value: Json;
  /** The fields of a resource by kind; of several kinds if it has variants. */
  bodies: [ResourceType, Json][];
}

/**
 * Returns the sections with idioms.
 * @param read returns the text of a file that the page links to
 */
function sectionsOf(page: string, read: (target: string) => string): Section[] {
  const begin = page.indexOf('\n## Idioms\n');
  const end = page.indexOf('\n## ', begin + 1);
  let line = page.slice(0, begin + 1).split('\n').length;
  return page
    .slice(begin + 1, end)
    .split(/^(?=### )/m)
    .map((text) => {
      const first = line;
      line += text.split('\n').length - 1;
      const linked = linksOf(text).flatMap(({ target }) => (target.endsWith('/module.yml') ? [read(target)] : []));
      const modules = blocksOf(text).flatMap(({ source }) => (/^name: /m.test(source) ? [source] : []));
      return { rows: rowsOf(text, first), modules: [...modules, ...linked] };
    });
}

const spansOf = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span.replaceAll('\\|', '|'));

function rowsOf(text: string, first: number): Row[] {
  return text.split('\n').flatMap((row, index) => {
    if (!row.startsWith('| ') || row.startsWith('| Salt |')) return [];
    const [, , , muster = '', example = ''] = row.split(/(?<!\\)\|/).slice(1, -1);
    const isSupported = !muster.trimStart().startsWith('not supported');
    return [{ line: first + index, spans: spansOf(muster), isSupported, names: spansOf(example) }];
  });
}

type Mapping = { [key: string]: Json };
const isMapping = (value: Json | undefined): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the parts of modules, each with its name. Several parts may have the same name. */
function partsOf(modules: readonly string[]): [string, Part][] {
  return modules.flatMap((source) => {
    const { name, supports, resources, ...keys } = parse(source) as Mapping & { resources: Mapping[] };
    const templates = (keys.templates ?? []) as Mapping[];
    const declared = ['parameters', 'lookups'].flatMap((key) =>
      Object.entries((keys[key] ?? {}) as Mapping).map(([one, value]) => [one, { [key]: { [one]: value } }] as const),
    );
    return [
      ...resources.map((value): [string, Part] => [String(value.id), { value, bodies: bodiesOf(value) }]),
      ...templates.map((value): [string, Part] => [String(value.id), { value, bodies: [] }]),
      ...declared.map(([one, value]): [string, Part] => [one, { value, bodies: [] }]),
      ...Object.entries(keys).map(([key, value]): [string, Part] => [key, { value: { [key]: value }, bodies: [] }]),
    ];
  });
}

function bodiesOf({ resource, variants }: Mapping): [ResourceType, Json][] {
  const all = variants === undefined ? [resource] : (variants as Mapping[]).map((variant) => variant.resource);
  return all.flatMap((one) => Object.entries(isMapping(one) ? one : {}) as [ResourceType, Json][]);
}

/** Returns a value with all values in it. */
const within = (value: Json): Json[] => [
  value,
  ...(typeof value === 'object' && value !== null ? Object.values(value).flatMap(within) : []),
];

/** Compares texts; `…` stands for any text. */
function matches(text: string, pattern: string, how: 'whole' | 'part'): boolean {
  const regex = pattern.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '[^]*');
  return new RegExp(how === 'whole' ? `^${regex}$` : regex).test(text);
}

/** Reports whether a value is as expected. A mapping may have further keys, and a list may have further elements. */
function contains(value: Json | undefined, expected: Json): boolean {
  if (expected === '…') return value !== undefined;
  if (typeof expected === 'string') return typeof value === 'string' && matches(value, expected, 'whole');
  if (Array.isArray(expected))
    return Array.isArray(value) && expected.every((one) => value.some((element) => contains(element, one)));
  if (!isMapping(expected)) return value === expected;
  if (Array.isArray(value)) return value.some((element) => contains(element, expected));
  return isMapping(value) && Object.entries(expected).every(([key, one]) => contains(value[key], one));
}

/** Returns the keys and the names of functions in a value. */
const wordsIn = (value: Json): string[] =>
  within(value).flatMap((one) =>
    typeof one === 'string'
      ? (one.match(/(?<=\| )[a-z]\w*|[a-z]\w*(?=\()/gi) ?? [])
      : isMapping(one)
        ? Object.keys(one)
        : [],
  );

function read(span: string): Json {
  try {
    return parse(span, { logLevel: 'error' }) as Json;
  } catch {
    return span;
  }
}

/**
 * Reports whether a part uses what a row names: a kind, a field with or without its value, a key, a function, or a part of
 * an expression.
 * @param kinds the kinds that the row names; their fields count only in resources of these kinds
 */
function uses({ value, bodies }: Part, span: string, kinds: ReadonlySet<string>): boolean {
  if (isResourceType(span)) return bodies.some(([kind]) => kind === span);
  const fields = new Set([...kinds].flatMap((kind) => kindFields(kind as ResourceType).map(({ name }) => name)));
  const own = bodies.flatMap(([kind, body]) => (kinds.has(kind) ? [body] : []));
  const expected = read(span);
  if (isMapping(expected)) {
    const areFields = Object.keys(expected).every((key) => fields.has(key));
    return (areFields ? own : within(value)).some((one) => contains(one, expected));
  }
  if (fields.has(span)) return own.some((body) => isMapping(body) && Object.hasOwn(body, span));
  if (/^[a-z]\w*$/i.test(span)) return wordsIn(value).includes(span);
  return within(value).some((one) => typeof one === 'string' && matches(one, span, 'part'));
}

/** Keys that most resources have, so that they show no idiom. */
const structural: ReadonlySet<string> = new Set(['id', 'name', 'path', 'resource', 'resources', 'supports']);

/** Reports whether only some parts use what a row names. Flags are not in modules: the manual describes them. */
function isTelling(span: string): boolean {
  const expected = read(span);
  const keys = isMapping(expected) ? Object.keys(expected) : [span];
  return !span.startsWith('--') && /[a-z]{2}/i.test(span) && keys.some((key) => !structural.has(key));
}

/** Returns the faults of one row, without its line. */
function rowFaults({ spans, isSupported, names }: Row, parts: readonly [string, Part][]): string[] {
  if (!isSupported) return [];
  if (names.length === 0)
    return ['the row names no resource in its last column, and does not begin with “not supported”'];
  const named = names.map((name) => ({ name, found: parts.filter(([other]) => other === name) }));
  const faults = named.flatMap(({ name, found }) =>
    found.length === 1 ? [] : [`the modules of the section have ${found.length} parts with the name ${name}, not 1`],
  );
  const shown = named.flatMap(({ name, found }) => found.map(([, part]) => ({ name, part })));
  const kinds = new Set(spans.filter(isResourceType));
  const checked = spans.filter((span) => !span.startsWith('--'));
  const telling = spans.filter(isTelling);
  if (telling.length === 0) faults.push('the row names no kind, field, or key that shows the idiom');
  for (const span of checked)
    if (!shown.some(({ part }) => uses(part, span, kinds))) faults.push(`none of ${names.join(', ')} uses ${span}`);
  for (const { name, part } of shown)
    if (telling.length > 0 && !telling.some((span) => uses(part, span, kinds)))
      faults.push(`${name} uses nothing that the row names`);
  return faults;
}

/**
 * Returns the faults of the tables with idioms: a row without a resource, a name that no module of its section has, or a
 * resource without the kind and the fields of its row.
 */
export function idiomFaults(page: string, readLinked: (target: string) => string): string[] {
  return sectionsOf(page, readLinked).flatMap(({ rows, modules }) => {
    const parts = partsOf(modules);
    return rows.flatMap((row) => rowFaults(row, parts).map((fault) => `line ${row.line}: ${fault}`));
  });
}

/** Returns the number of rows in the tables with idioms. */
export const idiomCount = (page: string): number =>
  sectionsOf(page, () => 'resources: []').flatMap(({ rows }) => rows).length;
