import type { Fault } from '../../errors.ts';
import { isMapping } from '../../mapping.ts';
import type { Json, ModuleDocument } from '../document.ts';
import { quoted, suggestion } from '../nearest.ts';
import { byModule } from './agent-facts.ts';
import { type Explained, type ExplainedResource, explainDesiredSet } from './explain.ts';
import type { ExpectedResource, ModuleTest } from './module-test.ts';

/** A difference between the expectation of a test and the resolution. */
export interface Mismatch {
  /** Position in the test file. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The expected and the actual value, if a value differs. */
  readonly difference: { readonly expected: string; readonly actual: string } | null;
}

export interface TestOutcome {
  readonly mismatches: readonly Mismatch[];
  /** Resolution errors that the test does not expect. */
  readonly faults: readonly Fault[];
}

type Add = (path: readonly (string | number)[], message: string, difference?: Mismatch['difference']) => void;

/**
 * Resolves the modules for the agent of a test and compares the result. The test passes if both returned lists are
 * empty.
 */
export function runModuleTest(test: ModuleTest, modules: readonly ModuleDocument[]): TestOutcome {
  const mismatches: Mismatch[] = [];
  const add: Add = (path, message, difference = null) => mismatches.push({ ...test.at(path), message, difference });
  const resolution = explainDesiredSet({
    modules,
    agent: test.agent,
    parameters: byModule(test.parameters, modules),
    lookups: Object.fromEntries(modules.map(({ name }) => [name, test.lookups])),
  });
  const { expect } = test;
  if (!resolution.ok) {
    const expected = expect.faults ?? [];
    for (const [index, text] of expected.entries())
      if (!resolution.faults.some(({ message }) => message.includes(text)))
        add(['faults', index], `no error contains ${quoted(text)}`);
    return {
      mismatches,
      faults: resolution.faults.filter(({ message }) => !expected.some((text) => message.includes(text))),
    };
  }
  if (expect.faults !== undefined) add(['faults'], 'the modules resolve without an error');
  compareResources(resolution, expect.resources ?? {}, add);
  for (const [index, id] of (expect.absent ?? []).entries()) {
    const found = withId(resolution, id)[0];
    if (found !== undefined)
      add(['absent', index], `${quoted(id)} is not absent: it is ${found.type} ${found.identity}`);
  }
  if (expect.secrets !== undefined) {
    const expected = [...expect.secrets].sort();
    if (JSON.stringify(expected) !== JSON.stringify(resolution.secrets))
      add(['secrets'], 'other secrets are used', {
        expected: textOf(expected),
        actual: textOf([...resolution.secrets]),
      });
  }
  return { mismatches, faults: [] };
}

/** Returns the resources that have an ID, by `id` or `module:id`. */
const withId = ({ resources }: Explained, id: string): ExplainedResource[] =>
  resources.filter(
    (resource) => resource.id !== null && (resource.id === id || `${resource.module}:${resource.id}` === id),
  );

function compareResources(resolution: Explained, expected: Readonly<Record<string, ExpectedResource>>, add: Add): void {
  for (const [id, resource] of Object.entries(expected)) {
    const found = withId(resolution, id);
    const [actual] = found;
    const ids = resolution.resources.flatMap((each) => each.id ?? []);
    if (actual === undefined) {
      const loop = ids.filter((each) => each.startsWith(`${id.replace(/\[.*$/, '')}[`));
      const all = ids.length === 0 ? 'no resource has an id' : `the ids are ${few(ids)}`;
      const instead = loop.length > 0 ? `; the ids of its loop are ${few(loop)}` : suggestion(id, ids) || `; ${all}`;
      add(['resources', id], `there is no resource ${quoted(id)}${instead}`);
    } else if (found.length > 1) {
      const names = found.map((each) => `${each.module}:${id}`);
      add(['resources', id], `${found.length} modules have ${quoted(id)}: write ${few(names, 'or')}`);
    } else compareResource(id, actual, resource, add);
  }
}

const few = (texts: readonly string[], last = 'and'): string =>
  texts.length > 10 ? `${texts.slice(0, 10).join(', ')}, …` : texts.join(texts.length === 2 ? ` ${last} ` : ', ');

function compareResource(id: string, actual: ExplainedResource, expected: ExpectedResource, add: Add): void {
  const { name, depends_on, ...byKind } = expected as {
    name?: string;
    depends_on?: string[];
  } & Record<string, Record<string, Json>>;
  const at = (...path: string[]) => ['resources', id, ...path];
  if (name !== undefined && name !== actual.name)
    add(at('name'), `${quoted(id)} has another name`, { expected: name, actual: actual.name ?? '(none)' });
  for (const needed of depends_on ?? [])
    if (!actual.depends_on.includes(needed))
      add(
        at('depends_on'),
        `${quoted(id)} does not depend on ${quoted(needed)}; it depends on ${few(actual.depends_on) || 'nothing'}`,
      );
  for (const [type, fields] of Object.entries(byKind)) {
    if (type !== actual.type) {
      add(at(type), `${quoted(id)} is ${actual.type} ${actual.identity}, not ${type}`);
      continue;
    }
    for (const [field, value] of Object.entries(fields as unknown as Record<string, Json>))
      compareField({ id, actual, field, value }, (message, difference) => add(at(type, field), message, difference));
  }
}

const triggers = ['reload_on', 'restart_on', 'rerun_on'] as const;

function compareField(
  { id, actual, field, value }: { id: string; actual: ExplainedResource; field: string; value: Json },
  add: (message: string, difference?: Mismatch['difference']) => void,
): void {
  const trigger = triggers.find((name) => name === field);
  const found = trigger === undefined ? actual.fields[field] : undefined;
  if (found?.hidden === true) {
    add(`${field} of ${quoted(id)} is hidden, so a test cannot compare it`);
    return;
  }
  const present: Json | undefined = trigger === undefined ? found?.value : [...actual[trigger]];
  if (value === null) {
    if (present !== undefined)
      add(`${quoted(id)} has ${field}, which the test expects to be left out`, {
        expected: '(none)',
        actual: textOf(present),
      });
    return;
  }
  const parts = partsOf(value);
  if (parts !== null && typeof present === 'string') {
    for (const text of parts.contains)
      if (!present.includes(text))
        add(`${field} of ${quoted(id)} does not contain ${quoted(text)}`, { expected: text, actual: present });
    for (const text of parts.lacks)
      if (present.includes(text))
        add(`${field} of ${quoted(id)} contains ${quoted(text)}, which the test expects to be left out`);
    return;
  }
  if (isEqual(value, present)) return;
  add(present === undefined ? `${quoted(id)} has no ${field}` : `${field} of ${quoted(id)} differs`, {
    expected: textOf(value),
    actual: present === undefined ? '(none)' : textOf(present),
  });
}

/** Reads `{ contains: …, lacks: … }`. Returns null for any other value. */
function partsOf(value: Json): { contains: string[]; lacks: string[] } | null {
  if (!isMapping(value)) return null;
  const keys = Object.keys(value);
  if (keys.length === 0 || !keys.every((key) => key === 'contains' || key === 'lacks')) return null;
  const list = (item: Json | undefined): string[] =>
    item === undefined ? [] : Array.isArray(item) ? item.map(String) : [String(item)];
  return { contains: list(value.contains), lacks: list(value.lacks) };
}

function isEqual(one: Json, other: Json | undefined): boolean {
  if (typeof one !== 'object' || one === null) return one === other;
  if (Array.isArray(one))
    return (
      Array.isArray(other) && one.length === other.length && one.every((item, index) => isEqual(item, other[index]))
    );
  if (!isMapping(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isEqual(one[key] as Json, other[key]))
  );
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
