import { Fragment, useState } from 'react';

/**
 * Shows untrusted text from machines and operators. Invisible characters, and characters that change the text
 * direction, are replaced by their codes. Long text is truncated until the operator expands it.
 */

/**
 * Control and format characters (including bidirectional and zero-width characters), line separators, and blank
 * letters. Line feeds and tabs are not included.
 */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/u;
const invisibleAll = new RegExp(invisible.source, 'gu');

/** Formats a character as its code, such as `⟨1B⟩`. */
const codeOf = (character: string): string =>
  `⟨${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(2, '0')}⟩`;

/** Replaces every invisible character with its code. */
export const visibleText = (text: string): string => (invisible.test(text) ? text.replace(invisibleAll, codeOf) : text);

/** Truncates text to at most `maxLength` UTF-16 code units without splitting a surrogate pair. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const code = text.charCodeAt(maxLength - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? maxLength - 1 : maxLength);
}

export function Text({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  const [isExpanded, setExpanded] = useState(false);
  const isCut = text.length > maxLength && !isExpanded;
  // The text may be tens of kilobytes long, so the whole text is rendered only on request.
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
            setExpanded(true);
          }}
          aria-label={`Show all ${text.length} characters`}
        >
          …
        </button>
      )}
    </bdi>
  );
}

/** Joins lines of text. Truncates the result to about `maxLength` characters and then appends `…`. */
export const lineText = (text: string, maxLength: number): string =>
  visibleText(cutText(text, maxLength).replace(/\s+/g, ' ')) + (text.length > maxLength ? '…' : '');

/** Shows untrusted text in one line, for cells and links. Unlike `Text`, it cannot be expanded. */
export function Line({ text, maxLength = 200 }: { readonly text: string; readonly maxLength?: number }) {
  return (
    <bdi className="truncate" title={text.length > 30 ? visibleText(cutText(text, 1000)) : undefined}>
      {lineText(text, maxLength)}
    </bdi>
  );
}

/** Two lines of this height fit in the row of a table. */
export const twoLineClasses = 'line-clamp-2 min-w-0 leading-4 [overflow-wrap:anywhere]';

/** Shows untrusted text in at most two lines, for reasons in the rows of tables. */
export function TwoLineText({ text, className = '' }: { readonly text: string; readonly className?: string }) {
  return (
    <bdi className={`${twoLineClasses} ${className}`} title={visibleText(cutText(text, 1000))}>
      {lineText(text, 300)}
    </bdi>
  );
}

/** Maximum number of characters to keep at the end of a truncated path. */
const maxPathEnd = 22;
/** Texts up to this length are never divided, because they fit in the narrowest row. */
const maxWhole = 26;

/** Divides a path, so that its start is truncated instead of its end, which distinguishes paths. */
export function divideLine(line: string): readonly [start: string, end: string] {
  if (line.length <= maxWhole) return [line, ''];
  const slash = line.lastIndexOf('/', line.length - 2);
  const isShort = slash > 0 && line.length - slash <= maxPathEnd;
  const at = isShort ? slash : line.length - maxPathEnd;
  const start = cutText(line, at);
  return [start, line.slice(start.length)];
}

/** Shows an untrusted path on as many lines as it needs. Lines break after slashes, and within a name only if it is too long. */
export function PathText({ text, maxLength = 300 }: { readonly text: string; readonly maxLength?: number }) {
  return (
    <bdi className="[overflow-wrap:anywhere]">
      {visibleText(cutText(text, maxLength))
        .split(/(?<=\/)/)
        .map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text
          <Fragment key={at}>
            {part}
            <wbr />
          </Fragment>
        ))}
    </bdi>
  );
}

/** Shows an untrusted path in a monospaced font in one line. Truncates it in the middle if it does not fit. */
export function PathLine({ text, maxLength = 300 }: { readonly text: string; readonly maxLength?: number }) {
  const line = lineText(text, maxLength);
  const [start, end] = divideLine(line);
  return (
    <bdi className="flex min-w-0" title={end === '' ? undefined : visibleText(cutText(text, 1000))}>
      {/* The browser truncates after a whole character. A width of whole characters leaves no gap before the
          end. The additional pixels keep a rounding error from truncating a text that fits. */}
      <span
        className="truncate whitespace-pre"
        style={end === '' ? undefined : { maxWidth: `calc(round(down, 100% + 1px, 1ch) - ${end.length}ch + 1px)` }}
      >
        {start}
      </span>
      {end !== '' && <span className="shrink-0 whitespace-pre">{end}</span>}
    </bdi>
  );
}
