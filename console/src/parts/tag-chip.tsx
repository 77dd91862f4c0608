import { createContext, useContext } from 'react';
import { tagsThatFit } from './tags-that-fit.ts';
import { cutText, visibleText } from './text.tsx';

/** A tag as `key=value`. A long tag is truncated. */
function TagChip({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <span
      title={visibleText(cutText(`${name}=${value}`, 400))}
      className="inline-flex h-5 max-w-40 shrink-0 items-center rounded bg-raised px-1.5 text-xs"
    >
      <bdi className="truncate">
        <span className="text-muted">{visibleText(name)}</span>
        {value !== '' && <span className="text-muted">=</span>}
        {visibleText(cutText(value, 80))}
      </bdi>
    </span>
  );
}

/**
 * Width of the tags column in pixels. Provided in a context, so that a change re-renders the tags but not the rows.
 */
export const TagWidth = createContext(0);

/** Shows the tags that fit in the column. */
export function Tags({ tags }: { readonly tags: Readonly<Record<string, string>> }) {
  const width = useContext(TagWidth);
  const entries = Object.entries(tags);
  if (entries.length === 0) return null;
  const texts = entries.map(([name, value]) => (value === '' ? name : `${name}=${value}`));
  const shown = new Set(tagsThatFit(texts, width));
  return (
    <span className="flex min-w-0 items-center gap-1 overflow-hidden">
      {entries.map(([name, value], at) => shown.has(at) && <TagChip key={name} name={name} value={value} />)}
      {shown.size < entries.length && (
        <span
          className="shrink-0 text-muted text-xs"
          title={visibleText(cutText(texts.filter((_, at) => !shown.has(at)).join('\n'), 1_000))}
        >
          +{entries.length - shown.size}
        </span>
      )}
    </span>
  );
}
