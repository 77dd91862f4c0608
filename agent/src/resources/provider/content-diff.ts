import { isUtf8 } from 'node:buffer';
import { maxDiffLength } from '@muster/protocol';
import { type StructuredPatch, structuredPatch } from 'diff';

/** Returns a note in place of a diff. */
const note = (path: string, text: string): string => `--- ${path}\n+++ ${path}\n\\ ${text}\n`;

/**
 * Bounds for the line comparison. Beyond them, the diff replaces the whole content. They limit steps instead of time,
 * because the diff is part of a plan and must not depend on the load of the machine.
 */
const maxEditLength = 4_000;
const maxComparisons = 1_000_000;
const context = 3;

/**
 * Returns the unified diff between two file contents. A diff that exceeds the maximum length is truncated, with a line
 * that indicates this.
 * @param before null if the file does not exist
 * @param after  null if the file is removed
 * @param around number of context lines
 */
export function contentDiff(path: string, before: Buffer | null, after: Buffer | null, around = context): string {
  if ((before !== null && isBinary(before)) || (after !== null && isBinary(after)))
    return note(path, `Binary content: ${sizeOf(before)} before, ${sizeOf(after)} after`);
  const from = before === null ? '/dev/null' : path;
  const to = after === null ? '/dev/null' : path;
  const old = before?.toString('utf8') ?? '';
  const next = after?.toString('utf8') ?? '';
  return cut(
    `--- ${from}\n+++ ${to}\n${old === '' || next === '' ? replaced(old, next) : compared(old, next, around)}`,
  );
}

/** Returns a note in place of the diff for content that is too large to compare. */
export const largeContentDiff = (path: string, before: number | null, after: number | null): string =>
  note(path, `Too large to compare: ${before ?? 0} bytes before, ${after ?? 0} bytes after`);

const sizeOf = (content: Buffer | null): string => (content === null ? 'nothing' : `${content.length} bytes`);

/** Reports whether the first 8 KiB contain a NUL or invalid UTF-8, the usual definition of binary content. */
function isBinary(content: Buffer): boolean {
  const start = content.subarray(0, 8192);
  if (start.includes(0)) return true;
  // The slice may end inside a character.
  for (let spare = 0; spare < 4; spare++)
    if (isUtf8(start.subarray(0, Math.max(0, start.length - (content.length > 8192 ? spare : 0))))) return false;
  return true;
}

function compared(old: string, next: string, around: number): string {
  const patch = patchOf(old, next, around);
  if (patch === null) return replaced(old, next);
  let text = '';
  for (const { oldStart, oldLines, newStart, newLines, lines } of patch.hunks)
    text += `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@\n${lines.join('\n')}\n`;
  return text;
}

class TooManyComparisons extends Error {}

/** @returns null if the file contents have too little in common */
function patchOf(old: string, next: string, around: number): StructuredPatch | null {
  let left = maxComparisons;
  const comparator = (one: string, other: string): boolean => {
    // The comparison of long lines counts as several steps. Lines of different lengths differ, so they need no
    // comparison.
    left -= one.length === other.length ? 1 + (one.length >>> 8) : 1;
    if (left < 0) throw new TooManyComparisons();
    return one === other;
  };
  const options = { context: around, maxEditLength, comparator } as const;
  try {
    return structuredPatch('', '', old, next, undefined, undefined, options) ?? null;
  } catch (error) {
    if (error instanceof TooManyComparisons) return null;
    throw error;
  }
}

const range = (start: number, lines: number): string =>
  lines === 1 ? `${start}` : `${lines === 0 ? start - 1 : start},${lines}`;

/** Returns a diff that removes every old line and adds every new one. */
function replaced(old: string, next: string): string {
  const [oldLines, newLines] = [linesOf(old), linesOf(next)];
  if (oldLines.length + newLines.length === 0) return '';
  const header = `@@ -${oldLines.length === 0 ? '0,0' : range(1, oldLines.length)} +${newLines.length === 0 ? '0,0' : range(1, newLines.length)} @@\n`;
  return header + marked('-', old, oldLines) + marked('+', next, newLines);
}

function linesOf(text: string): string[] {
  if (text === '') return [];
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

function marked(sign: string, text: string, lines: string[]): string {
  if (lines.length === 0) return '';
  const end = text.endsWith('\n') ? '\n' : '\n\\ No newline at end of file\n';
  return sign + lines.join(`\n${sign}`) + end;
}

function cut(text: string): string {
  if (text.length <= maxDiffLength) return text;
  const end = text.lastIndexOf('\n', maxDiffLength);
  const start = text.slice(0, end > 0 ? end : maxDiffLength);
  return `${start}\n\\ Truncated here: ${text.length - start.length} more characters\n`;
}
