import { pointer as pointerText } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Syntax, Tree } from './syntax.ts';
import { type Place, type Pointer, same, type Value, withValue } from './value.ts';

/** Edits one value in a file, and refuses an edit that would change anything else. */

/** Maximum size of a file, in characters, because parsing blocks the agent. */
const maxCharacters = 256 * 1024;
/** Maximum depth of brackets, because parsers are recursive. */
const maxDepth = 200;

export interface StructuredFile<T extends Tree = Tree> {
  readonly syntax: Syntax<T>;
  /** Path of the file, for messages. */
  readonly path: string;
}

/** Converts an error from a parser or an edit. A file may be hostile, so any error can occur. */
function failure({ path, syntax }: StructuredFile, error: unknown, what: string): HostFailure {
  if (error instanceof HostFailure) return error;
  const message = error instanceof RangeError ? 'it is nested too deeply' : (error as Error).message;
  return new HostFailure(`${path} ${what.replace('SYNTAX', syntax.name)}: ${message}`);
}

/** Returns a file's text. @throws HostFailure if the file is not UTF-8 or is too large */
export function decode(bytes: Buffer, path: string): string {
  if (bytes.length > maxCharacters)
    throw new HostFailure(
      `${path} has ${bytes.length} bytes; the agent edits values only in files up to ${maxCharacters / 1024} KiB`,
    );
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new HostFailure(`${path} is not UTF-8, so its values cannot be edited`);
  }
}

/** @throws HostFailure if the file is not valid */
export function parse<T extends Tree>(file: StructuredFile<T>, text: string): T {
  try {
    let depth = 0;
    for (const character of text) {
      if (character === '[' || character === '{') depth++;
      else if (character === ']' || character === '}') depth = Math.max(0, depth - 1);
      if (depth > maxDepth) throw new RangeError();
    }
    return file.syntax.parse(text);
  } catch (error) {
    throw failure(file, error, 'cannot be read as SYNTAX');
  }
}

/** Reports whether the parsed text equals this value. */
export function hasValue(file: StructuredFile, text: string, value: Value): boolean {
  try {
    return same(parse(file, text).value, value);
  } catch {
    return false;
  }
}

function checked<R extends { readonly text: string }>(
  file: StructuredFile,
  tree: Tree,
  pointer: Pointer,
  value: Value | undefined,
  edit: () => R,
): R {
  const where = `cannot be edited at ${pointerText(pointer)}`;
  let result: R;
  try {
    result = edit();
  } catch (error) {
    throw failure(file, error, where);
  }
  if (!hasValue(file, result.text, withValue(tree.value, pointer, value)))
    throw new HostFailure(
      `${file.path} ${where} without another change, such as through an anchor; nothing was changed. Declare the lines with line-unix or block-unix.`,
    );
  return result;
}

/** Returns the file with a value, and whether an empty line was added above. */
export function withSetting<T extends Tree>(
  file: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
  place: Place,
  value: Value,
): { text: string; addedBlank: boolean } {
  const { syntax } = file;
  return checked(file, tree, pointer, value, () =>
    place.found
      ? { text: syntax.replace(tree, pointer, value), addedBlank: false }
      : syntax.insert(tree, pointer, place.depth, value),
  );
}

/** Returns the file without an existing value. */
export function withoutSetting<T extends Tree>(
  file: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
  hasBlank = false,
): string {
  return checked(file, tree, pointer, undefined, () => ({ text: file.syntax.remove(tree, pointer, hasBlank) })).text;
}
