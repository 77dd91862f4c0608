import type { Pointer, Value } from './value.ts';

/** Offsets in a file's text: of the first character, and of the one after the last. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** A parsed file. */
export interface Tree {
  readonly text: string;
  /** Null for a file without values. */
  readonly value: Value;
}

/**
 * Finds and edits one value in a file's text. An edit changes only the text of the value, or adds or removes its entry.
 * The caller parses the result, and refuses an edit that changes another value.
 */
export interface Syntax<T extends Tree = Tree> {
  readonly name: string;
  /** @throws Error that describes the fault without values from the file */
  parse(text: string): T;
  /**
   * Returns the ranges of an existing value and of its entry, which begins with the key. Returns null if the value is
   * spread over several parts of the file.
   */
  find(tree: T, pointer: Pointer): { readonly value: Range; readonly entry: Range } | null;
  /** Replaces an existing value. */
  replace(tree: T, pointer: Pointer, value: Value): string;
  /**
   * Adds a value.
   * @param depth number of the pointer's keys that exist
   * @returns `addedBlank`: whether an empty line was added above
   */
  insert(tree: T, pointer: Pointer, depth: number, value: Value): { text: string; addedBlank: boolean };
  /**
   * Removes the entry of an existing value.
   * @param hasBlank whether to remove the empty line above
   */
  remove(tree: T, pointer: Pointer, hasBlank: boolean): string;
}

export const spliced = (text: string, { start, end }: Range, by: string): string =>
  text.slice(0, start) + by + text.slice(end);

export const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1;

/** Returns the offset after the line's line break, or the end of the text. */
export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end + 1;
}

/** Returns the number of the line, from 1. */
export const lineNumber = (text: string, at: number): number => text.slice(0, at).split('\n').length;

export const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

/** Returns the whitespace at the start of the line. */
export const indentationAt = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, at), at))?.[0] ?? '';

/** Reports whether only whitespace precedes the offset on its line. */
export const startsLine = (text: string, at: number): boolean => text.slice(lineStart(text, at), at).trim() === '';
