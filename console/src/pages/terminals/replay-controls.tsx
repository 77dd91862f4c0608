import type { TerminalSessionDetail } from '@muster/protocol/http';
import { Pause, Play, RotateCcw } from 'lucide-react';
import { IconButton } from '../../parts/button.tsx';
import { Checkbox, Select } from '../../parts/form/field.tsx';
import { speeds } from '../../terminal/playback.ts';
import { SaveRecordingMenu } from './save-recording-menu.tsx';
import { clockTime } from './session-text.ts';
import type { Loading } from './use-recording.ts';

/** The bar below a replay: play, seek, speed, and download. All times are in seconds. */
export function ReplayControls({
  session,
  loading,
  position,
  seeking,
  playing,
  speed,
  skipIdle,
  onToggle,
  onRestart,
  onSlide,
  onSlideEnd,
  onSpeed,
  onSkipIdle,
}: {
  readonly session: TerminalSessionDetail;
  readonly loading: Loading;
  readonly position: number;
  readonly seeking: number | null;
  readonly playing: boolean;
  readonly speed: string;
  readonly skipIdle: boolean;
  readonly onToggle: () => void;
  readonly onRestart: () => void;
  readonly onSlide: (seconds: number) => void;
  readonly onSlideEnd: () => void;
  readonly onSpeed: (speed: string) => void;
  readonly onSkipIdle: (skip: boolean) => void;
}) {
  const { duration } = loading;
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-t px-3 py-2">
      {/* On a phone, the slider has its own line. */}
      <div className="flex w-full min-w-0 items-center gap-2 max-sm:flex-wrap sm:w-auto sm:flex-1">
        <IconButton
          label={playing ? 'Pause' : 'Play'}
          look="plain"
          icon={playing ? <Pause className="size-4" /> : <Play className="size-4" />}
          onClick={onToggle}
        />
        <IconButton label="Restart" icon={<RotateCcw className="size-4" />} onClick={onRestart} />
        <span className="tabular w-12 text-right text-muted text-xs">{clockTime(position)}</span>
        <input
          type="range"
          aria-label="Position in the recording"
          aria-valuetext={`${clockTime(position)} of ${clockTime(duration)}`}
          className="h-5 min-w-0 flex-1 accent-[var(--accent)] max-sm:order-first max-sm:basis-full"
          min={0}
          max={Math.max(duration, 0.1)}
          // With a fixed step, the slider could not reach an end that lies between two steps.
          step="any"
          value={position}
          onChange={(event) => onSlide(Number(event.target.value))}
          onPointerUp={onSlideEnd}
        />
        <span className="tabular w-12 text-muted text-xs">{clockTime(duration)}</span>
      </div>
      <div className="w-20">
        <Select label="Speed" hideLabel value={speed} onChange={(event) => onSpeed(event.target.value)}>
          {speeds.map((each) => (
            <option key={each} value={String(each)}>
              {each}×
            </option>
          ))}
        </Select>
      </div>
      <Checkbox label="Skip pauses" checked={skipIdle} onChange={(event) => onSkipIdle(event.target.checked)} />
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
      <SaveRecordingMenu session_id={session.session_id} />
    </div>
  );
}
