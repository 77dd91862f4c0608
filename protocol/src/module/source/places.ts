import type { Fault } from '../../errors.ts';
import type { ModuleDocument } from '../document.ts';
import { pointerKeys } from './json-pointer.ts';
import { Positions } from './source.ts';
import { offsetOf, type Path, readTree, type TreeNode } from './tree.ts';

/** Positions in the sources of modules, for errors that are found after parsing. */

interface Position {
  /** From 1; columns count UTF-16 units. */
  readonly line: number;
  readonly column: number;
}

interface Source {
  readonly text: string;
  /** Positions found so far, by JSON pointer. Cached, because all agents that use a module get the same errors. */
  readonly known: Map<string, Position>;
}

const maximumKnown = 1000;

const sources = new WeakMap<ModuleDocument, Source>();
/**
 * The tree of the source that was last searched for a position. Only one tree is cached, because a tree needs much
 * memory.
 */
let latest: { readonly source: Source; readonly root: TreeNode | undefined; readonly positions: Positions } | undefined;

/** @param text result of `decodeSource` */
export const rememberSource = (module: ModuleDocument, text: string): void => {
  sources.set(module, { text, known: new Map() });
};

/** Returns the position of the value at a path; undefined if the module does not come from a source. */
export function placeOf(module: ModuleDocument, path: Path): Position | undefined {
  const source = sources.get(module);
  if (source === undefined) return undefined;
  const key = path.join('\0');
  const found = source.known.get(key);
  if (found !== undefined) return found;
  if (latest?.source !== source) {
    const positions = new Positions(source.text);
    latest = { source, positions, root: readTree(source.text, positions).root };
  }
  if (latest.root === undefined) return undefined;
  const position = latest.positions.at(offsetOf(latest.root, path, 'value'));
  if (source.known.size >= maximumKnown) source.known.clear();
  source.known.set(key, position);
  return position;
}

/** Adds line and column to errors whose path is a JSON pointer into `{modules: {<name>: <module>}}`. */
export const located = (faults: readonly Fault[], modules: readonly ModuleDocument[]): Fault[] =>
  faults.map((fault) => {
    const [root, name, ...path] = pointerKeys(fault.path);
    const module = root === 'modules' ? modules.find((one) => one.name === name) : undefined;
    return module === undefined ? fault : { ...fault, ...placeOf(module, path) };
  });
