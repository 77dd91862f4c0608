import type { z } from 'zod';
import type { Fault } from '../../errors.ts';
import { flatten, inOrder } from '../parse.ts';
import { pointer } from '../source/json-pointer.ts';
import { decodeSource, Positions } from '../source/source.ts';
import { offsetOf, type Path, readTree, treeValue } from '../source/tree.ts';

export type ReadDocument<T> =
  | { readonly ok: true; readonly value: T; readonly at: (path: Path) => { line: number; column: number } }
  | { readonly ok: false; readonly faults: Fault[] };

/**
 * Reads a YAML file other than a module, within the limits of a module.
 * @returns the value and a function for positions in it, or all errors with line and column, in order
 */
export function readDocument<S extends z.ZodType>(schema: S, source: string | Uint8Array): ReadDocument<z.output<S>> {
  const decoded = decodeSource(source, 'the file');
  if (!decoded.ok) return decoded;
  const positions = new Positions(decoded.text);
  const { root, faults, replaced } = readTree(decoded.text, positions);
  if (root === undefined) return { ok: false, faults };
  const parsed = schema.safeParse(treeValue(root));
  if (!parsed.success)
    for (const { path, message, at } of flatten(parsed.error.issues, root, decoded.text))
      if (!replaced.has(pointer(path)))
        faults.push({ path: pointer(path), message, ...positions.at(offsetOf(root, path, at)) });
  if (!parsed.success || faults.length > 0) return { ok: false, faults: inOrder(faults) };
  return { ok: true, value: parsed.data, at: (path) => positions.at(offsetOf(root, path, 'key')) };
}
