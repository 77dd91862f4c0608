import { linesOf } from '../docs/markdown.ts';
import type { WrittenText } from './texts.ts';

/** Returns the lines of prose on a Markdown page, without code, link targets, and HTML. */
export const proseOf = (file: string, source: string): WrittenText[] =>
  linesOf(source).flatMap((row): WrittenText[] => {
    if (row.code) return [];
    const text = row.text
      .replaceAll(/\]\([^)]*\)/g, ']')
      .replaceAll(/<[^>]*>/g, '')
      .trim();
    return text === '' ? [] : [{ kind: 'page', file, line: row.line, text }];
  });

const notWords = /`[^`]*`|https?:\S+|[\w.-]*[/\\_@=<>{}]\S*|\S*\d\S*|\$\S+|--?[a-z]\S*/g;

/**
 * Returns the words in a text whose spelling must be checked. Omits code, paths, names with special characters, and
 * numbers.
 */
export function wordsOf(text: string): string[] {
  const words = text.replaceAll(notWords, ' ');
  return [...words.matchAll(/(?<![\p{L}\p{M}.'’…])\p{L}[\p{L}\p{M}'’]*(?![\p{L}\p{M}'’…]|\.\w)/gu)].map(
    ([word]) => word,
  );
}
