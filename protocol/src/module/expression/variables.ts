import type { AgentFacts } from '../agent-facts.ts';
import type { Json } from '../document.ts';
import type { Meter } from './meter.ts';
import { omitted, SecretNames, toCel } from './values.ts';

/** The values that expressions can use. Expressions within these values are not evaluated. */
export interface Scope {
  readonly agent: AgentFacts;
  readonly parameters: ReadonlyMap<string, Json>;
  /** Lookup values, by name. */
  readonly lookups?: ReadonlyMap<string, Json>;
  /** The current element of the list; undefined outside `for_each`. */
  readonly each: Json | undefined;
  /** Position of the element in the list, from 0; undefined outside `for_each`. */
  readonly index: number | undefined;
  /** Loop variables, as CEL values. */
  readonly loops?: ReadonlyMap<string, unknown>;
  /** Templates of the module by id, for `include`; a template may be unavailable for the agent. */
  readonly templates?: ReadonlyMap<string, { readonly content: string } | { readonly fault: string }>;
  /** Tracks the total evaluation cost of the agent's expressions. */
  readonly meter: Meter;
}

/**
 * The variables of an expression, each converted when it is used. Uses a Map, so that names such as
 * `constructor` are not variables.
 */
export class Variables extends Map<string, unknown> {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    super();
    this.#scope = scope;
  }

  override get(name: string): unknown {
    const { loops, agent, parameters, lookups = noLookups, each, index } = this.#scope;
    if (loops?.has(name)) return loops.get(name);
    switch (name) {
      case 'agent':
        return remembered(agent, namesOf);
      case 'attr':
        return remembered(agent.attributes, factsOf);
      case 'tag':
        return remembered(agent.tags, factsOf);
      case 'param':
        return remembered(parameters, valuesOf);
      case 'lookup':
        return remembered(lookups, valuesOf);
      case 'each':
        return each === undefined ? undefined : toCel(each);
      case 'index':
        return index === undefined ? undefined : BigInt(index);
      case 'omit':
        return omitted;
      case 'secrets':
        return secretNames;
      default:
        return undefined;
    }
  }
}

const namesOf = ({ name, node_id }: AgentFacts): unknown =>
  new Map(Object.entries({ name, node_id }).filter(([, value]) => value !== null));

const valuesOf = (values: ReadonlyMap<string, Json>): unknown =>
  new Map([...values].map(([name, value]) => [name, toCel(value)]));

const noLookups: ReadonlyMap<string, Json> = new Map();
const secretNames = new SecretNames();
const known = new WeakMap<object, unknown>();

function remembered<T extends object>(value: T, convert: (value: T) => unknown): unknown {
  const found = known.get(value);
  if (found !== undefined) return found;
  const converted = convert(value);
  known.set(value, converted);
  return converted;
}

/**
 * An agent's facts as CEL values. Reads a value only when an expression uses it, so that agents that differ in other
 * values share a resolution.
 */
class Facts extends Map<string, unknown> {
  readonly #values: Readonly<Record<string, string>>;

  /** @param values the facts; an entry of this map is a key of `values`, or a map of such keys */
  constructor(values: Readonly<Record<string, string>>) {
    super();
    this.#values = values;
  }

  override get(name: string): unknown {
    const found = super.get(name);
    return typeof found === 'string' ? this.#values[found] : found;
  }

  override *entries(): MapIterator<[string, unknown]> {
    for (const name of this.keys()) yield [name, this.get(name)];
  }

  override *values(): MapIterator<unknown> {
    for (const name of this.keys()) yield this.get(name);
  }

  override [Symbol.iterator](): MapIterator<[string, unknown]> {
    return this.entries();
  }

  override forEach(call: (value: unknown, name: string, map: Map<string, unknown>) => void): void {
    for (const [name, value] of this.entries()) call(value, name, this);
  }
}

// The library determines a value's type from its constructor.
Object.defineProperty(Facts.prototype, 'constructor', { value: Map });

/** Makes `rack.row` available as a key, and as the key `row` of the map `rack` if no value has the key `rack`. */
function factsOf(values: Readonly<Record<string, string>>): Facts {
  const root = new Facts(values);
  // `Object.keys` would call a getter for each value.
  const keys = Reflect.ownKeys(values) as string[];
  for (const key of keys) root.set(key, key);
  for (const key of keys) {
    const segments = key.split('.');
    const last = segments.pop() as string;
    let facts: Facts | undefined = root;
    for (const segment of segments) {
      const inner: unknown = facts.get(segment) ?? new Facts(values);
      if (inner instanceof Facts) facts.set(segment, inner);
      facts = inner instanceof Facts ? inner : undefined;
      if (facts === undefined) break;
    }
    if (facts !== undefined && facts !== root && !facts.has(last)) facts.set(last, key);
  }
  return root;
}
