import { useState } from 'react';

/**
 * Text that came from a machine or a person, and may be anything: it is only ever text. What would be invisible, or turn
 * the rest of the line round, is shown as its code; what is very long is cut, with the whole on demand.
 */

/**
 * Control and format characters (bidirectional and zero-width marks among them), line separators, and letters that draw
 * nothing; not line feeds and tabs.
 */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/u;
const invisibleAll = new RegExp(invisible.source, 'gu');

/** As `⟨1B⟩`. */
const codeOf = (character: string): string =>
  `⟨${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(2, '0')}⟩`;

/** The text with everything invisible spelled out. */
export const visibleText = (text: string): string => (invisible.test(text) ? text.replace(invisibleAll, codeOf) : text);

/** At most so many UTF-16 units, never half a character. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const code = text.charCodeAt(maxLength - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? maxLength - 1 : maxLength);
}

export function Text({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  const [whole, setWhole] = useState(false);
  const isCut = text.length > maxLength && !whole;
  // Where text comes to tens of kilobytes, it is not drawn before somebody asks.
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

/** In one line, of at most about so many characters, with a mark where there was more. */
export const lineText = (text: string, maxLength: number): string =>
  visibleText(cutText(text, maxLength).replace(/\s+/g, ' ')) + (text.length > maxLength ? '…' : '');

/** The same in one line, without the way to see all of it: for cells and links. */
export function Line({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  return (
    <bdi className="truncate" title={text.length > 30 ? visibleText(cutText(text, 1000)) : undefined}>
      {lineText(text, maxLength)}
    </bdi>
  );
}
