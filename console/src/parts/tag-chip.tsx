import { cutText, visibleText } from './text.tsx';

/** A tag as `key=value`. A long tag is truncated. */
export function TagChip({ name, value }: { readonly name: string; readonly value: string }) {
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
