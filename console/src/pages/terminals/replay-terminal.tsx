import type { TerminalSessionDetail } from '@muster/protocol/http';
import { Download, Pause, Play, RotateCcw } from 'lucide-react';
import { type KeyboardEvent, useCallback, useEffect, useRef, useState } from 'react';
import { downloadTranscript, readTranscript } from '../../api/terminals.ts';
import { IconButton } from '../../parts/button.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { Failure, Skeleton } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { advance, speeds } from '../../terminal/playback.ts';
import { Recording } from '../../terminal/recording.ts';
import { Replay } from '../../terminal/replay.ts';
import { Screen } from '../../terminal/screen.ts';
import type { TextHit } from '../../terminal/text-lines.ts';
import { clockTime } from './session-text.ts';

/** Lines to search before yielding to the page. */
const searchBatchLines = 20_000;
const maxHits = 500;
/** Bytes to parse before checking the time, and milliseconds to work before yielding to the page. */
const readBatchBytes = 128 * 1024;
const maxBusyMs = 25;
/** While loading, the search runs again after this many bytes. */
const searchIntervalBytes = 4 * 1024 * 1024;
const stepSeconds = 5;
const fontSizes = { min: 9, max: 16 };
/** Width of a character relative to the font size. */
const characterWidth = 0.605;

interface Loading {
  readonly state: 'loading' | 'whole' | 'failed';
  readonly bytes: number;
  readonly duration: number;
  readonly error?: unknown;
}

/** Plays and searches the recording of a session. */
export function ReplayTerminal({ session }: { readonly session: TerminalSessionDetail }) {
  const { session_id } = session;
  const place = useRef<HTMLDivElement>(null);
  const held = useRef<{ recording: Recording; screen: Screen; replay: Replay } | null>(null);
  const [loading, setLoading] = useState<Loading>({ state: 'loading', bytes: 0, duration: 0 });
  const [asked, setAsked] = useUrlState('t', '');
  const [position, setPosition] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useUrlState<string>('speed', '1');
  const [skip, setSkip] = useUrlState<string>('idle', 'skip');
  const [query, setQuery] = useUrlState('q', '');
  const [attempt, setAttempt] = useState(0);
  /** Progress of a seek in percent; null when done. */
  const [seeking, setSeeking] = useState<number | null>(null);
  const seeks = useRef(0);
  const at = useRef(0);
  /** The start position from the address, until that part is loaded. */
  const pendingSeek = useRef<number | null>(Number.parseFloat(asked) || null);

  const seek = useCallback((to: number) => {
    const all = held.current;
    if (all === null) return;
    pendingSeek.current = null;
    at.current = Math.max(0, Math.min(to, all.recording.duration));
    setPosition(at.current);
    const turn = ++seeks.current;
    const goal = all.recording.countAt(at.current);
    const telling = window.setInterval(() => {
      if (turn === seeks.current) setSeeking(Math.floor((Math.min(all.replay.count, goal) / Math.max(goal, 1)) * 100));
    }, 200);
    void all.replay.show(goal).then(() => {
      window.clearInterval(telling);
      if (turn === seeks.current) setSeeking(null);
    });
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once per session and attempt
  useEffect(() => {
    if (place.current === null) return;
    const stop = new AbortController();
    const box = place.current;
    let fitted = 0;
    const fit = () => {
      const pixels = Math.floor(((box.clientWidth - 24) / screen.size.cols / characterWidth) * 2) / 2;
      const size = Math.max(fontSizes.min, Math.min(fontSizes.max, pixels));
      if (size !== fitted) screen.fontSize = size;
      fitted = size;
    };
    const screen: Screen = new Screen(
      box,
      { fontSize: 13, screenReader: false, readOnly: true, scrollback: 1_000 },
      { roomChanged: () => fit() },
    );
    screen.terminal.onResize(fit);
    const recording = new Recording();
    const read = async () => {
      let bytes = 0;
      let reportedAt = 0;
      let yieldedAt = performance.now();
      for await (const piece of await readTranscript(session_id, 'asciicast', stop.signal)) {
        for (let from = 0; from < piece.length; from += readBatchBytes) {
          recording.feed(piece.subarray(from, from + readBatchBytes));
          if (performance.now() - yieldedAt < maxBusyMs) continue;
          // Yields to the page.
          await new Promise((resolve) => window.setTimeout(resolve));
          yieldedAt = performance.now();
        }
        bytes += piece.length;
        held.current ??= { recording, screen, replay: new Replay(recording, screen) };
        // Starts at the first text instead of an empty screen.
        if (at.current === 0 && pendingSeek.current === null && recording.text.times[0] !== undefined)
          seek(recording.text.times[0]);
        if (performance.now() - reportedAt < 100) continue;
        reportedAt = performance.now();
        setLoading({ state: 'loading', bytes, duration: recording.duration });
        if (pendingSeek.current !== null && recording.duration >= pendingSeek.current) seek(pendingSeek.current);
      }
      recording.end();
      held.current ??= { recording, screen, replay: new Replay(recording, screen) };
      setLoading({ state: 'whole', bytes, duration: recording.duration });
      if (pendingSeek.current !== null) seek(pendingSeek.current);
      else if (at.current === 0) seek(recording.text.times[0] ?? recording.times[0] ?? 0);
    };
    read().catch((error: unknown) => {
      if (!stop.signal.aborted) setLoading((before) => ({ ...before, state: 'failed', error }));
    });
    return () => {
      stop.abort();
      held.current?.replay.stop();
      held.current = null;
      screen.dispose();
    };
  }, [session_id, attempt]);

  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    let busy = false;
    let frame = 0;
    const tick = (now: number) => {
      frame = requestAnimationFrame(tick);
      const all = held.current;
      // Pauses while the screen catches up.
      if (all === null || busy) {
        last = now;
        return;
      }
      const { recording, replay } = all;
      const next = recording.times[recording.countAt(at.current)] ?? null;
      at.current = advance(at.current, (now - last) / 1000, {
        speed: Number(speed),
        skipIdle: skip === 'skip',
        nextAt: next,
        end: recording.duration,
      });
      last = now;
      busy = true;
      void replay.show(recording.countAt(at.current)).then(() => {
        busy = false;
      });
      setPosition(at.current);
      if (at.current >= recording.duration) setPlaying(false);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, skip]);

  const pauseAt = (seconds: number) => setAsked(seconds <= 0 ? '' : seconds.toFixed(1));
  const toggle = () => {
    if (playing) pauseAt(at.current);
    else if (at.current >= loading.duration) seek(0);
    setPlaying(!playing);
  };
  const seekTo = (seconds: number) => {
    seek(seconds);
    pauseAt(Math.max(0, Math.min(seconds, loading.duration)));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const target = event.target as HTMLElement;
    const isSlider = target instanceof HTMLInputElement && target.type === 'range';
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!isSlider && target.closest('input,select,button,a,[role=menu]') !== null) return;
    const actions: Record<string, () => void> = {
      ' ': toggle,
      k: toggle,
      ArrowLeft: () => seekTo(at.current - stepSeconds),
      ArrowRight: () => seekTo(at.current + stepSeconds),
      ArrowDown: () => seekTo(at.current - stepSeconds),
      ArrowUp: () => seekTo(at.current + stepSeconds),
      PageDown: () => seekTo(at.current - 12 * stepSeconds),
      PageUp: () => seekTo(at.current + 12 * stepSeconds),
      Home: () => seekTo(0),
      End: () => seekTo(loading.duration),
    };
    const act = actions[event.key];
    if (act === undefined || (!isSlider && ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown'].includes(event.key))) return;
    event.preventDefault();
    act();
  };

  if (loading.state === 'failed')
    return (
      <Failure
        title="The recording could not be loaded"
        error={loading.error}
        retry={() => {
          setLoading({ state: 'loading', bytes: 0, duration: 0 });
          setAttempt(attempt + 1);
        }}
      />
    );
  return (
    <div className="flex h-full min-h-0 flex-col gap-3 lg:flex-row" onKeyDown={onKeyDown}>
      <section
        aria-label="Replay"
        className="flex min-h-0 min-w-0 flex-1 flex-col overflow-hidden rounded-lg border bg-surface"
      >
        <div className="flex shrink-0 items-center justify-end gap-2 border-b p-1.5">
          <div className="w-full sm:w-72">
            <Input
              label="Search the recording"
              hideLabel
              type="search"
              data-search=""
              placeholder="Search the recording"
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
          </div>
        </div>
        <div className="relative min-h-48 flex-1">
          <div ref={place} className="absolute inset-0 overflow-auto p-2" data-terminal />
          {loading.state === 'loading' && loading.duration === 0 && (
            <div role="status" aria-label="Loading the recording" className="absolute inset-0 space-y-2 bg-surface p-4">
              <Skeleton className="h-3 w-1/3" />
              <Skeleton className="h-3 w-1/2" />
              <Skeleton className="h-3 w-1/4" />
            </div>
          )}
        </div>
        <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-t px-3 py-2">
          <div className="flex w-full min-w-0 items-center gap-2 sm:w-auto sm:flex-1">
            <IconButton
              label={playing ? 'Pause' : 'Play'}
              look="plain"
              icon={playing ? <Pause className="size-4" /> : <Play className="size-4" />}
              onClick={toggle}
            />
            <IconButton label="Restart" icon={<RotateCcw className="size-4" />} onClick={() => seekTo(0)} />
            <span className="tabular w-12 text-right text-muted text-xs">{clockTime(position)}</span>
            <input
              type="range"
              aria-label="Position in the recording"
              aria-valuetext={`${clockTime(position)} of ${clockTime(loading.duration)}`}
              className="h-5 min-w-0 flex-1 accent-[var(--accent)]"
              min={0}
              max={Math.max(loading.duration, 0.1)}
              // Steps would make an end between two steps unreachable.
              step="any"
              value={position}
              onChange={(event) => seek(Number(event.target.value))}
              onPointerUp={() => pauseAt(at.current)}
            />
            <span className="tabular w-12 text-muted text-xs">{clockTime(loading.duration)}</span>
          </div>
          <div className="w-20">
            <Select label="Speed" hideLabel value={speed} onChange={(event) => setSpeed(event.target.value)}>
              {speeds.map((each) => (
                <option key={each} value={String(each)}>
                  {each}×
                </option>
              ))}
            </Select>
          </div>
          <Checkbox
            label="Skip pauses"
            checked={skip === 'skip'}
            onChange={(event) => setSkip(event.target.checked ? 'skip' : 'keep')}
          />
          {seeking !== null && (
            <span className="tabular text-muted text-xs">
              <span role="status">Seeking</span>, {seeking} %
            </span>
          )}
          {loading.state === 'loading' && (
            <span role="status" className="tabular text-muted text-xs">
              {session.transcript_bytes
                ? `Loading, ${Math.floor((loading.bytes / session.transcript_bytes) * 100)} %`
                : 'Loading'}
            </span>
          )}
          <SaveMenu session_id={session_id} />
        </div>
      </section>
      {query !== '' && (
        <Hits
          query={query}
          recording={() => held.current?.recording ?? null}
          loaded={
            loading.state === 'whole' ? Number.POSITIVE_INFINITY : Math.floor(loading.bytes / searchIntervalBytes)
          }
          position={position}
          onHit={(hit) => {
            setPlaying(false);
            seekTo(hit.at);
          }}
        />
      )}
    </div>
  );
}

function SaveMenu({ session_id }: { readonly session_id: string }) {
  const save = async (format: 'raw' | 'asciicast') => {
    try {
      saveFile(await downloadTranscript(session_id, format), `${session_id}.${format === 'raw' ? 'raw' : 'cast'}`);
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <Menu trigger={<IconButton label="Download the recording" icon={<Download className="size-4" />} />}>
      <MenuItem onSelect={() => void save('asciicast')}>As asciicast, with timing</MenuItem>
      <MenuItem onSelect={() => void save('raw')}>As raw output</MenuItem>
    </Menu>
  );
}

/** Lists matches in the recording, and seeks to them. */
function Hits({
  query,
  recording,
  loaded,
  position,
  onHit,
}: {
  readonly query: string;
  readonly recording: () => Recording | null;
  /** Increases while loading, to search again. */
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
