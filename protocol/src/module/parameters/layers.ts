import { isMapping } from '../../mapping.ts';
import type { Json, Merge } from '../document.ts';
import { quoted } from '../nearest.ts';
import type { ValueFault } from './value-keywords.ts';
import { canonical } from './value-schema.ts';

/**
 * Combines the values that a parameter gets from several sources. Treats all sources the same: each value is a layer
 * with a precedence.
 */

export const merges = ['replace', 'deep', 'append', 'unique'] as const satisfies readonly Merge[];

/** A value for a parameter, and where it comes from. */
export interface Layer {
  readonly value: Json;
  /**
   * `requires`: set under `with` by a module that requires this module; `given`: without a name, such as a value from a
   * file.
   */
  readonly from: 'assignment' | 'requires' | 'given' | 'variant' | 'default';
  /** Name of the assignment, or of the module that requires this module. */
  readonly name: string | null;
  /** Null for the declaration's own value, which every other layer precedes. */
  readonly precedence: number | null;
}

/** Layers by module and parameter. */
export type Layers = Readonly<Record<string, Readonly<Record<string, readonly Layer[]>>>>;

type Path = ValueFault['path'];

/** Two layers of the same precedence with different values. */
export interface Conflict {
  /** Path in the value; empty for the entire value. */
  readonly path: Path;
  readonly one: Layer;
  readonly other: Layer;
}

export interface Combined {
  readonly value: Json;
  /** Layers that the value consists of, from highest to lowest precedence. */
  readonly layers: readonly Layer[];
  /** Layers that do not contribute to the value, from high to low. */
  readonly overrode: readonly Layer[];
  readonly conflict: Conflict | null;
  /** Returns the layers that a part of the value comes from. */
  giversOf(path: Path): readonly Layer[];
}

/** Maximum depth of values that are merged, and maximum number of values in all layers of a parameter. */
export const mergeLimits = { depth: 32, values: 100_000 };

const rankOf = ({ precedence }: Layer): number => precedence ?? Number.MIN_SAFE_INTEGER;

/**
 * Combines layers. Those of equal precedence keep their order.
 * @param layers at least one; each fits the type that `merge` needs, and is within {@link mergeLimits}
 */
export function combine(merge: Merge, layers: readonly Layer[]): Combined {
  const ordered = layers.toSorted((one, other) => rankOf(one) - rankOf(other));
  if (merge === 'deep') return deep(ordered);
  return merge === 'replace' ? replaced(ordered) : listed(ordered, merge === 'unique');
}

/** A resolution needs only the value, so the layers are determined only on demand. */
class CombinedLayers implements Combined {
  readonly value: Json;
  readonly conflict: Conflict | null;
  readonly #ordered: readonly Layer[];
  readonly #used: () => ReadonlySet<Layer>;
  readonly #giversOf: (path: Path) => readonly Layer[];

  /**
   * @param ordered from low to high
   * @param giversOf returns no layers for a part that no layer sets, such as a missing key
   */
  constructor(
    value: Json,
    conflict: Conflict | null,
    ordered: readonly Layer[],
    used: () => ReadonlySet<Layer>,
    giversOf: (path: Path) => readonly Layer[],
  ) {
    this.value = value;
    this.conflict = conflict;
    this.#ordered = ordered;
    this.#used = used;
    this.#giversOf = giversOf;
  }

  get layers(): readonly Layer[] {
    const used = this.#used();
    const down = this.#ordered.toReversed();
    // If the value is an empty list or mapping, it comes from the highest layer.
    return used.size === 0 ? down.slice(0, 1) : down.filter((layer) => used.has(layer));
  }

  get overrode(): readonly Layer[] {
    const layers = new Set(this.layers);
    return this.#ordered.toReversed().filter((layer) => !layers.has(layer));
  }

  giversOf(path: Path): readonly Layer[] {
    const givers = this.#giversOf(path);
    return givers.length === 0 ? this.layers : givers;
  }
}

function replaced(ordered: readonly Layer[]): Combined {
  const most = Math.max(...ordered.map(rankOf));
  const highest = ordered.filter((layer) => rankOf(layer) === most);
  const [one, ...others] = highest as [Layer, ...Layer[]];
  const text = others.length === 0 ? '' : canonical(one.value);
  const other = others.find(({ value }) => canonical(value) !== text);
  const conflict = other === undefined ? null : { path: [], one, other };
  return new CombinedLayers(
    one.value,
    conflict,
    ordered,
    () => new Set(highest),
    () => highest,
  );
}

function listed(ordered: readonly Layer[], isUnique: boolean): Combined {
  const seen = new Set<string>();
  const elements = ordered.flatMap((layer) =>
    (Array.isArray(layer.value) ? layer.value : []).flatMap((value) => {
      const text = isUnique ? canonical(value) : '';
      if (isUnique && seen.has(text)) return [];
      seen.add(text);
      return [{ value, layer }];
    }),
  );
  return new CombinedLayers(
    elements.map(({ value }) => value),
    null,
    ordered,
    () => new Set(elements.map(({ layer }) => layer)),
    ([index]) => (typeof index === 'number' ? [elements[index]?.layer ?? []].flat() : []),
  );
}

/** A part of a merged mapping. `layer` is the last layer that set the part or a value within it. */
type Part =
  | { readonly kind: 'value'; readonly value: Json; readonly layer: Layer; readonly clash: Layer | null }
  | { readonly kind: 'mapping'; readonly entries: ReadonlyMap<string, Part>; readonly layer: Layer };

function deep(ordered: readonly Layer[]): Combined {
  let root: Part | undefined;
  for (const layer of ordered) root = merged(root, layer.value, layer);
  const used = new Set<Layer>();
  let conflict: Conflict | null = null;
  const visit = (part: Part, path: Path): void => {
    if (part.kind === 'value') {
      used.add(part.layer);
      if (part.clash !== null) conflict ??= { path, one: part.layer, other: part.clash };
    } else for (const [key, inner] of part.entries) visit(inner, [...path, key]);
  };
  if (root !== undefined) visit(root, []);
  return new CombinedLayers(
    root === undefined ? null : (jsonOf(root) ?? null),
    conflict,
    ordered,
    () => used,
    (path) => giversIn(root, path),
  );
}

/** Merges a layer's value into a part. Null removes what lower layers set. */
function merged(part: Part | undefined, value: Json, layer: Layer): Part {
  const isRival = part !== undefined && rankOf(part.layer) === rankOf(layer);
  if (isMapping(value)) {
    if (isRival && part.kind === 'value') return { ...part, clash: part.clash ?? layer };
    const entries = new Map(part?.kind === 'mapping' ? part.entries : []);
    for (const [key, inner] of Object.entries(value)) entries.set(key, merged(entries.get(key), inner, layer));
    return { kind: 'mapping', entries, layer };
  }
  if (!isRival) return { kind: 'value', value, layer, clash: null };
  if (part.kind === 'mapping') return { kind: 'value', value, layer: part.layer, clash: layer };
  return canonical(part.value) === canonical(value) ? part : { ...part, clash: part.clash ?? layer };
}

/** @returns undefined for a part that is removed */
function jsonOf(part: Part): Json | undefined {
  if (part.kind === 'value') return part.value ?? undefined;
  return Object.fromEntries(
    [...part.entries].flatMap(([key, inner]) => {
      const value = jsonOf(inner);
      return value === undefined ? [] : [[key, value] as const];
    }),
  );
}

function giversIn(root: Part | undefined, path: Path): Layer[] {
  let part = root;
  for (const step of path) {
    if (part?.kind !== 'mapping') break;
    part = part.entries.get(String(step));
  }
  return part?.kind === 'value' ? [part.layer] : [];
}

/** Returns a path for messages, such as `users[0].uid`. */
export const shownPath = (name: string, path: Path): string =>
  path.reduce<string>((text, step) => (typeof step === 'number' ? `${text}[${step}]` : `${text}.${step}`), name);

/** Describes the origin of a layer for the end of a message, such as `from assignment "web"`; empty for `given`. */
export function originText({ from, name }: Layer): string {
  if (from === 'given') return '';
  if (from === 'assignment') return `from assignment ${quoted(name ?? '')}`;
  if (from === 'requires') return `from module ${quoted(name ?? '')}, which requires this one`;
  return from === 'variant' ? 'from a variant of its declaration' : 'from its default';
}

/** Describes a conflict and how to resolve it. */
export function conflictText(module: string, parameter: string, { path, one, other }: Conflict): string {
  const at = shownPath(parameter, path);
  const names = `${one.name} and ${other.name}`;
  if (one.from === 'requires' && other.from === 'requires')
    return `modules ${names} require ${module} with different values of ${at}: set it in an assignment`;
  const what = `the parameter ${at} of module ${module} to different values`;
  if (one.from === 'assignment' && other.from === 'assignment')
    return `assignments ${names} set ${what}; give one of them a higher precedence`;
  return `module ${one.name} and assignment ${other.name} set ${what}; give the assignment another precedence`;
}
