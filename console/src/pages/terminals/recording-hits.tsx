import { useEffect, useState } from 'react';
import { visibleText } from '../../parts/text.tsx';
import type { Recording } from '../../terminal/recording.ts';
import type { TextHit } from '../../terminal/text-lines.ts';
import { clockTime } from './session-text.ts';

/** Number of lines to search before yielding to the browser. */
const searchBatchLines = 20_000;
const maxHits = 500;

/** Lists the matches of a search in the recording. Clicking a match seeks to it. */
export function RecordingHits({
  query,
  recording,
  loaded,
  position,
  onHit,
}: {
  readonly query: string;
  readonly recording: () => Recording | null;
  /** Increases while the recording loads. Each increase repeats the search. */
  readonly loaded: number;
  readonly position: number;
  readonly onHit: (hit: TextHit) => void;
}) {
  const [hits, setHits] = useState<readonly TextHit[]>([]);
  const [busy, setBusy] = useState(false);

  // biome-ignore lint/correctness/useExhaustiveDependencies: searches again when more is loaded
  useEffect(() => {
    let over = false;
    const search = async () => {
      const text = recording()?.text;
      const found: TextHit[] = [];
      if (text !== undefined) {
        setBusy(true);
        for (let from = 0; from < text.texts.length && found.length < maxHits; from += searchBatchLines) {
          found.push(...text.find(query, from, from + searchBatchLines, maxHits - found.length));
          await new Promise((resolve) => window.setTimeout(resolve));
          if (over) return;
        }
      }
      setHits(found);
      setBusy(false);
    };
    const timer = window.setTimeout(() => void search(), 120);
    return () => {
      over = true;
      window.clearTimeout(timer);
    };
  }, [query, loaded]);

  const current = hits.findLast((hit) => hit.at <= position);
  return (
    <section
      aria-label="Search results"
      className="flex max-h-[40%] min-h-0 shrink-0 flex-col rounded-lg border bg-surface lg:max-h-none lg:w-80"
    >
      <p role="status" className="px-3 py-2 text-muted text-xs">
        {busy
          ? 'Searching…'
          : hits.length === 0
            ? 'No matches'
            : `${hits.length}${hits.length >= maxHits ? ' or more' : ''} found`}
      </p>
      {hits.length > 0 && (
        <ol className="min-h-0 flex-1 divide-y overflow-y-auto border-t">
          {hits.map((hit) => (
            <li key={hit.line}>
              <button
                type="button"
                aria-current={hit === current ? 'true' : undefined}
                className="flex w-full gap-3 px-3 py-1.5 text-left outline-offset-[-2px] hover:bg-hover aria-[current]:bg-accent-soft"
                onClick={() => onHit(hit)}
              >
                <span className="tabular shrink-0 text-muted text-xs leading-5">{clockTime(hit.at)}</span>
                <Excerpt hit={hit} length={query.length} />
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Excerpt({ hit: { excerpt, from }, length }: { readonly hit: TextHit; readonly length: number }) {
  return (
    <bdi className="min-w-0 break-all font-mono text-xs leading-5">
      {visibleText(excerpt.slice(0, from))}
      <mark className="rounded bg-warn-soft text-warn">{visibleText(excerpt.slice(from, from + length))}</mark>
      {visibleText(excerpt.slice(from + length))}
    </bdi>
  );
}
