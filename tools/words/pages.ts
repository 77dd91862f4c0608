import type { WrittenText } from './texts.ts';

/** Returns the lines of prose on a Markdown page, without code, link targets, and HTML. */
export function proseOf(file: string, source: string): WrittenText[] {
  let fence: string | null = null;
  return source.split('\n').flatMap((line, index): WrittenText[] => {
    const [mark] = /^ *(?:```+|~~~+)/.exec(line) ?? [];
    if (mark !== undefined) {
      const opened = mark.trim();
      if (fence === null) fence = opened;
      else if (opened.startsWith(fence)) fence = null;
      return [];
    }
    if (fence !== null) return [];
    const text = line
      .replaceAll(/\]\([^)]*\)/g, ']')
      .replaceAll(/<[^>]*>/g, '')
      .trim();
    return text === '' ? [] : [{ kind: 'page', file, line: index + 1, text }];
  });
}

const notWords = /`[^`]*`|https?:\S+|[\w.-]*[/\\_@=<>{}]\S*|\S*\d\S*|\$\S+|--?[a-z]\S*/g;

/**
 * Returns the words of a text whose spelling must be checked. Omits code, paths, names with special characters, and
 * numbers.
 */
export function wordsOf(text: string): string[] {
  const words = text.replaceAll(notWords, ' ');
  return [...words.matchAll(/(?<![\p{L}\p{M}.'’…])\p{L}[\p{L}\p{M}'’]*(?![\p{L}\p{M}'’…]|\.\w)/gu)].map(
    ([word]) => word,
  );
}
