import { useEffect, useState } from 'react';
import { advance } from '../../terminal/playback.ts';
import type { RecordingState } from './use-recording.ts';

/** Returns whether a recording is playing, and a function that starts or pauses it. Playback stops at the end. */
export function usePlayback(
  { player, at, setPosition, loading }: Pick<RecordingState, 'player' | 'at' | 'setPosition' | 'loading'>,
  { speed, skipIdle, startsPlaying }: { speed: number; skipIdle: boolean; startsPlaying: boolean },
): [boolean, (playing: boolean) => void] {
  const [playing, setPlaying] = useState(startsPlaying);
  const isWhole = loading.state === 'whole';
  useEffect(() => {
    if (!playing) return;
    let last = performance.now();
    let busy = false;
    let frame = 0;
    const tick = (now: number) => {
      frame = requestAnimationFrame(tick);
      // Playback pauses until the screen catches up.
      if (player.current === null || busy) {
        last = now;
        return;
      }
      const { recording, replay } = player.current;
      const nextAt = recording.times[recording.countAt(at.current)] ?? null;
      at.current = advance(at.current, (now - last) / 1000, { speed, skipIdle, nextAt, end: recording.duration });
      last = now;
      busy = true;
      void replay.show(recording.countAt(at.current)).then(() => {
        busy = false;
      });
      setPosition(at.current);
      if (isWhole && at.current >= recording.duration) setPlaying(false);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, skipIdle, isWhole, player, at, setPosition]);
  return [playing, setPlaying];
}
