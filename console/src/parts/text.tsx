import { useState } from 'react';

/**
 * Shows untrusted text from machines and operators. Invisible characters and characters that reorder the line are shown as
 * their codes. Long text is truncated; the reader can expand it.
 */

/**
 * Control and format characters (including bidirectional and zero-width marks), line separators, and letters without a
 * glyph. Line feeds and tabs are not included.
 */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/u;
const invisibleAll = new RegExp(invisible.source, 'gu');

/** Formats a character as its code, such as `⟨1B⟩`. */
const codeOf = (character: string): string =>
  `⟨${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(2, '0')}⟩`;

/** Replaces every invisible character with its code. */
export const visibleText = (text: string): string => (invisible.test(text) ? text.replace(invisibleAll, codeOf) : text);

/** Truncates to at most `maxLength` UTF-16 units without splitting a surrogate pair. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const code = text.charCodeAt(maxLength - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? maxLength - 1 : maxLength);
}

export function Text({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  const [whole, setWhole] = useState(false);
  const isCut = text.length > maxLength && !whole;
  // The text may have tens of kilobytes: render all of it only on request.
  const shown = visibleText(isCut ? cutText(text, maxLength) : text);
  return (
    <bdi className="[overflow-wrap:anywhere]">
      {shown}
      {isCut && (
        <button
          type="button"
          className="ml-1 rounded bg-raised px-1 text-muted text-xs hover:text-text"
          onClick={(event) => {
            event.stopPropagation();
            event.preventDefault();
            setWhole(true);
          }}
          aria-label={`Show all ${text.length} characters`}
        >
          …
        </button>
      )}
    </bdi>
  );
}

/** Joins the text into one line of at most about `maxLength` characters; `…` marks a truncated text. */
export const lineText = (text: string, maxLength: number): string =>
  visibleText(cutText(text, maxLength).replace(/\s+/g, ' ')) + (text.length > maxLength ? '…' : '');

/** Shows text in one line that cannot be expanded: for cells and links. */
export function Line({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  return (
    <bdi className="truncate" title={text.length > 30 ? visibleText(cutText(text, 1000)) : undefined}>
      {lineText(text, maxLength)}
    </bdi>
  );
}
