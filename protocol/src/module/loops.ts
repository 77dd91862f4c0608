import { isMapping } from '../mapping.ts';
import type { Json, Loop } from './document.ts';
import { elementsOf, evaluateCel, evaluateCondition, evaluateInPlace, evaluateSole } from './expression/evaluate.ts';
import { parsePlain } from './expression/expression.ts';
import { stepsOf } from './expression/meter.ts';
import { ExpressionError, fromCel, Omit, reasonOrValue } from './expression/values.ts';
import type { Scope } from './expression/variables.ts';
import type { Path } from './source/tree.ts';

/** An element of `for_each`. */
export interface LoopElement {
  /** Position or key of the element, for the ID of its resource: `0`, `alice`, or `alice,0`. */
  readonly label: string;
  readonly each: Json | undefined;
  readonly index: number;
  /** Variables of nested loops, as CEL values. */
  readonly loops: ReadonlyMap<string, unknown>;
}

/** Maximum number of elements before `where` filters them. In nested loops, the numbers multiply. */
const maximumElements = 20_000;

type Report = (path: Path, message: string) => void;

/**
 * Returns the elements of a loop, without those that `where` excludes. Reports errors; after an error, the result is
 * incomplete.
 */
export function loopElements(loop: Loop, where: string | null, scope: Scope, report: Report): LoopElement[] {
  const all = loop.kind === 'nested' ? nestedElements(loop.loops, scope, report) : singleElements(loop, scope, report);
  if (where === null) return all;
  const condition = parsePlain(where);
  if ('message' in condition) {
    report(['where'], condition.message);
    return [];
  }
  const selected: LoopElement[] = [];
  for (const element of all) {
    const { label, ...variables } = element;
    const holds = evaluateCondition(condition, { ...scope, ...variables });
    if (typeof holds === 'string') {
      report(['where'], `element ${label}: ${holds}`);
      return [];
    }
    if (holds) selected.push(element);
  }
  return selected;
}

function singleElements(loop: Exclude<Loop, { kind: 'nested' }>, scope: Scope, report: Report): LoopElement[] {
  const found =
    loop.kind === 'values' ? inPlace(loop.values, scope, ['for_each'], report) : yielded(loop.text, scope, report);
  if (found === undefined) return [];
  if (typeof found !== 'object' || found === null) {
    report(['for_each'], 'must yield a list or a map');
    return [];
  }
  const loops = new Map<string, unknown>();
  if (Array.isArray(found)) return found.map((each, index) => ({ label: String(index), each, index, loops }));
  return Object.entries(found).map(([key, value], index) => ({
    label: labelOf(key, index),
    each: { key, value },
    index,
    loops,
  }));
}

/** Evaluates the expression. Returns undefined after an error and for an omitted list. */
function yielded(text: string, scope: Scope, report: Report): Json | undefined {
  const list = evaluateSole(text, 'list', scope);
  if (list.kind === 'fault') report(['for_each'], list.message);
  return list.kind === 'value' ? list.value : undefined;
}

/** Evaluates the expressions in a value. Returns undefined after an error and for an omitted value. */
function inPlace(value: Json, scope: Scope, path: Path, report: Report): Json | undefined {
  if (typeof value === 'string') {
    const evaluated = evaluateInPlace(value, scope);
    if (evaluated.kind === 'fault') report(path, evaluated.message);
    if (evaluated.kind === 'deferred') report(path, 'cannot contain a secret');
    return evaluated.kind === 'value' ? evaluated.value : undefined;
  }
  if (Array.isArray(value))
    return value.flatMap((item, index) => {
      const evaluated = inPlace(item, scope, [...path, index], report);
      return evaluated === undefined ? [] : [evaluated];
    });
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]): [string, Json][] => {
      const evaluated = inPlace(item, scope, [...path, key], report);
      return evaluated === undefined ? [] : [[key, evaluated]];
    }),
  );
}

type NestedLoops = Extract<Loop, { kind: 'nested' }>['loops'];

/** Combines the elements of nested loops. An inner loop can use the variables of outer loops. */
function nestedElements(nested: NestedLoops, scope: Scope, report: Report): LoopElement[] {
  let combinations: { labels: readonly string[]; loops: ReadonlyMap<string, unknown> }[] = [
    { labels: [], loops: new Map() },
  ];
  for (const { name, list } of nested) {
    const path: Path = ['for_each', name];
    const parsed = parsePlain(list);
    if ('message' in parsed) {
      report(path, parsed.message);
      return [];
    }
    const next: typeof combinations = [];
    for (const { labels, loops } of combinations) {
      const found = evaluateCel(parsed, { ...scope, loops });
      const elements = 'fault' in found ? found.fault : (elementsOf(found.value) ?? 'must yield a list or a map');
      if (typeof elements === 'string') {
        report(path, elements);
        return [];
      }
      const isList = !('fault' in found) && Array.isArray(found.value);
      for (const [index, [key, value]] of elements.entries()) {
        if (value instanceof Omit) continue;
        if (next.length === maximumElements) {
          report(path, `for_each has more than ${maximumElements} elements: shorten its lists`);
          return [];
        }
        const element = isList
          ? value
          : new Map([
              ['key', key],
              ['value', value],
            ]);
        const label = isList ? String(index) : labelOf(String(key), index);
        next.push({ labels: [...labels, label], loops: new Map([...loops, [name, element]]) });
      }
    }
    combinations = next;
  }
  const jsonOf = jsonConverter(scope.meter);
  const elements: LoopElement[] = [];
  for (const [index, { labels, loops }] of combinations.entries()) {
    const each = reasonOrValue(() => Object.fromEntries([...loops].map(([name, value]) => [name, jsonOf(value)])));
    if (typeof each === 'string') {
      report(['for_each'], each);
      return [];
    }
    elements.push({ label: labels.join(','), each, index, loops });
  }
  return elements;
}

/**
 * Returns a function that converts CEL values. Converts each list and map only once, because combinations share them.
 */
function jsonConverter(meter: Scope['meter']): (value: unknown) => Json {
  const known = new Map<unknown, Json>();
  return (value) => {
    const found = known.get(value);
    if (found !== undefined) return found;
    const exceeded = meter.count(1 + stepsOf(value));
    if (exceeded !== undefined) throw new ExpressionError(exceeded);
    const converted = fromCel(value);
    if (typeof value === 'object') known.set(value, converted);
    return converted;
  };
}

/** Returns a key as part of an ID. Long keys and keys with other characters are replaced by their position. */
const labelOf = (key: string, index: number): string => (/^[\w.@:/-]{1,64}$/.test(key) ? key : String(index));
