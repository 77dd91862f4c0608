import type { TerminalSessionDetail } from '@muster/protocol/http';
import { type KeyboardEvent, useState } from 'react';
import { Input } from '../../parts/form/field.tsx';
import { Failure, Skeleton } from '../../parts/states.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { RecordingHits } from './recording-hits.tsx';
import { ReplayControls } from './replay-controls.tsx';
import { usePlayback } from './use-playback.ts';
import { useRecording } from './use-recording.ts';

/** Number of bytes to load before the search is repeated, while the recording loads. */
const searchIntervalBytes = 4 * 1024 * 1024;
const stepSeconds = 5;
/** Keys that seek only while the slider has the focus, because they scroll elsewhere. */
const sliderKeys = ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown'];

export function ReplayTerminal({ session }: { readonly session: TerminalSessionDetail }) {
  const [start, setStart] = useUrlState('t', '');
  const [speed, setSpeed] = useUrlState<string>('speed', '1');
  const [idle, setIdle] = useUrlState<string>('idle', 'skip');
  const [search, setSearch] = useUrlState('q', '');
  const state = useRecording(session.session_id, Number.parseFloat(start) || null);
  const { container, player, loading, position, seeking, seek, at } = state;
  const skipIdle = idle === 'skip';
  // A link may contain a position or a search. Shows that position, or the first match of the search.
  const [startsPlaying] = useState(start === '' && search === '');
  const [playing, setPlaying] = usePlayback(state, { speed: Number(speed), skipIdle, startsPlaying });

  const keepPosition = (seconds: number) => setStart(seconds <= 0 ? '' : seconds.toFixed(1));
  const toggle = () => {
    if (playing) keepPosition(at.current);
    else if (at.current >= loading.duration) seek(0);
    setPlaying(!playing);
  };
  const seekTo = (seconds: number) => {
    seek(seconds);
    keepPosition(Math.max(0, Math.min(seconds, loading.duration)));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const target = event.target as HTMLElement;
    const isSlider = target instanceof HTMLInputElement && target.type === 'range';
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!isSlider && target.closest('input,select,button,a,[role=menu]') !== null) return;
    const step = (steps: number) => () => seekTo(at.current + steps * stepSeconds);
    const actions: Record<string, () => void> = {
      ...{ ' ': toggle, k: toggle },
      ...{ ArrowLeft: step(-1), ArrowRight: step(1), ArrowDown: step(-1), ArrowUp: step(1) },
      ...{ PageDown: step(-12), PageUp: step(12), Home: () => seekTo(0), End: () => seekTo(loading.duration) },
    };
    const act = actions[event.key];
    if (act === undefined || (!isSlider && sliderKeys.includes(event.key))) return;
    event.preventDefault();
    act();
  };

  if (loading.state === 'failed')
    return <Failure title="The recording could not be loaded" error={loading.error} retry={state.retry} />;
  return (
    <div className="flex h-full min-h-0 flex-col gap-3 lg:flex-row" onKeyDown={onKeyDown}>
      <section
        aria-label="Replay"
        className="flex min-h-0 min-w-0 flex-1 flex-col overflow-hidden rounded-lg border bg-surface"
      >
        <SearchField value={search} onChange={setSearch} />
        <div className="relative min-h-48 flex-1">
          <div ref={container} className="absolute inset-0 overflow-auto p-2" data-terminal />
          {loading.state === 'loading' && loading.duration === 0 && <Placeholder />}
        </div>
        <ReplayControls
          {...{ session, loading, position, seeking, playing, speed, skipIdle }}
          onToggle={toggle}
          onRestart={() => seekTo(0)}
          onSlide={seek}
          onSlideEnd={() => keepPosition(at.current)}
          onSpeed={setSpeed}
          onSkipIdle={(skip) => setIdle(skip ? 'skip' : 'keep')}
        />
      </section>
      {search !== '' && (
        <RecordingHits
          query={search}
          recording={() => player.current?.recording ?? null}
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

function SearchField({ value, onChange }: { readonly value: string; readonly onChange: (text: string) => void }) {
  return (
    <div className="flex shrink-0 items-center justify-end gap-2 border-b p-1.5">
      <div className="w-full sm:w-72">
        <Input
          label="Search the recording"
          hideLabel
          type="search"
          data-search=""
          placeholder="Search the recording"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      </div>
    </div>
  );
}

const Placeholder = () => (
  <div role="status" aria-label="Loading the recording" className="absolute inset-0 space-y-2 bg-surface p-4">
    <Skeleton className="h-3 w-1/3" />
    <Skeleton className="h-3 w-1/2" />
    <Skeleton className="h-3 w-1/4" />
  </div>
);
