import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { readTranscript } from '../../api/terminals/terminals.ts';
import { Recording } from '../../terminal/recording.ts';
import { Replay } from '../../terminal/replay.ts';
import { Screen } from '../../terminal/screen.ts';

/** Number of bytes to parse between two time checks, and milliseconds to work before yielding to the browser. */
const readBatchBytes = 128 * 1024;
const maxBusyMs = 25;
const progressMs = 100;
const fontSizes = { min: 11, max: 16 };
/** Character width, as a fraction of the font size. */
const characterWidth = 0.605;

export interface Loading {
  readonly state: 'loading' | 'whole' | 'failed';
  readonly bytes: number;
  /** Duration of the loaded part in seconds. */
  readonly duration: number;
  readonly error?: unknown;
}

export interface Player {
  readonly recording: Recording;
  readonly replay: Replay;
}

export interface RecordingState {
  /** The element that contains the screen. */
  readonly container: RefObject<HTMLDivElement | null>;
  /** Null until the first bytes are loaded. */
  readonly player: RefObject<Player | null>;
  readonly loading: Loading;
  readonly retry: () => void;
  /** Playback position in seconds, as last rendered. */
  readonly position: number;
  readonly setPosition: (seconds: number) => void;
  /** Playback position in seconds. Current even between renders. */
  readonly at: RefObject<number>;
  /** Progress of a seek in percent; null if no seek is running. */
  readonly seeking: number | null;
  readonly seek: (seconds: number) => void;
}

const nothingLoaded: Loading = { state: 'loading', bytes: 0, duration: 0 };

/**
 * Loads a transcript and parses it while it arrives.
 * @param onProgress called after each chunk with the number of bytes loaded so far
 */
async function readInto(
  recording: Recording,
  session_id: string,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  let bytes = 0;
  let yieldedAt = performance.now();
  for await (const piece of await readTranscript(session_id, 'asciicast', signal)) {
    for (let from = 0; from < piece.length; from += readBatchBytes) {
      recording.feed(piece.subarray(from, from + readBatchBytes));
      if (performance.now() - yieldedAt < maxBusyMs) continue;
      await new Promise((resolve) => window.setTimeout(resolve));
      yieldedAt = performance.now();
    }
    bytes += piece.length;
    onProgress(bytes);
  }
  recording.end();
}

/** Creates a screen whose font size follows the width of its container. */
function fittedScreen(container: HTMLElement): Screen {
  let fitted = 0;
  const fit = () => {
    const pixels = Math.floor(((container.clientWidth - 24) / screen.size.cols / characterWidth) * 2) / 2;
    const size = Math.max(fontSizes.min, Math.min(fontSizes.max, pixels));
    if (size !== fitted) screen.fontSize = size;
    fitted = size;
  };
  const screen: Screen = new Screen(
    container,
    { fontSize: 13, screenReader: false, readOnly: true, scrollback: 1_000 },
    { containerResized: () => fit() },
  );
  screen.terminal.onResize(fit);
  return screen;
}

/**
 * Loads a terminal session's recording and shows one position in it.
 * @param start initial position in seconds; null starts at the first text
 */
export function useRecording(session_id: string, start: number | null): RecordingState {
  const container = useRef<HTMLDivElement>(null);
  const player = useRef<Player | null>(null);
  const [loading, setLoading] = useState<Loading>(nothingLoaded);
  const [attempt, setAttempt] = useState(0);
  const [position, setPosition] = useState(0);
  const [seeking, setSeeking] = useState<number | null>(null);
  const at = useRef(0);
  const seeks = useRef(0);
  /** Position to show as soon as it is loaded. */
  const pendingSeek = useRef(start);

  const seek = useCallback((seconds: number) => {
    if (player.current === null) return;
    const { recording, replay } = player.current;
    pendingSeek.current = null;
    at.current = Math.max(0, Math.min(seconds, recording.duration));
    setPosition(at.current);
    const turn = ++seeks.current;
    const goal = recording.countAt(at.current);
    const progress = window.setInterval(() => {
      if (turn === seeks.current) setSeeking(Math.floor((Math.min(replay.count, goal) / Math.max(goal, 1)) * 100));
    }, 200);
    void replay.show(goal).then(() => {
      window.clearInterval(progress);
      if (turn === seeks.current) setSeeking(null);
    });
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once per session and attempt
  useEffect(() => {
    if (container.current === null) return;
    const stop = new AbortController();
    const screen = fittedScreen(container.current);
    const recording = new Recording();
    let total = 0;
    let reportedAt = 0;
    const onProgress = (bytes: number) => {
      total = bytes;
      player.current ??= { recording, replay: new Replay(recording, screen) };
      // Starts playback at the first text, because the screen is empty before it.
      if (at.current === 0 && pendingSeek.current === null && recording.text.times[0] !== undefined)
        seek(recording.text.times[0]);
      if (performance.now() - reportedAt < progressMs) return;
      reportedAt = performance.now();
      setLoading({ state: 'loading', bytes, duration: recording.duration });
      if (pendingSeek.current !== null && recording.duration >= pendingSeek.current) seek(pendingSeek.current);
    };
    const load = async () => {
      await readInto(recording, session_id, stop.signal, onProgress);
      player.current ??= { recording, replay: new Replay(recording, screen) };
      setLoading({ state: 'whole', bytes: total, duration: recording.duration });
      if (pendingSeek.current !== null) seek(pendingSeek.current);
      else if (at.current === 0) seek(recording.text.times[0] ?? recording.times[0] ?? 0);
    };
    load().catch((error: unknown) => {
      if (!stop.signal.aborted) setLoading((before) => ({ ...before, state: 'failed', error }));
    });
    return () => {
      stop.abort();
      player.current?.replay.stop();
      player.current = null;
      screen.dispose();
    };
  }, [session_id, attempt]);

  const retry = () => {
    setLoading(nothingLoaded);
    setAttempt(attempt + 1);
  };
  return { container, player, loading, retry, position, setPosition, at, seeking, seek };
}
