import type { Context } from '../context/context.ts';
import type { LiveBlock } from '../context/live-block.ts';
import { duration } from '../text/style.ts';
import { onCtrlC } from './interrupt.ts';
import { followFailed, Patience, startFailed } from './watch-through.ts';

/** Polls an operation or run until it has finished, and draws its progress on a terminal. */

/** Milliseconds before the second poll. Short, because most operations finish soon. */
const firstWaitMs = 60;
const longestWaitMs = 1_000;
/** Minimum ratio of the time between two polls to the duration of a poll. Limits the load on the orchestrator. */
const share = 4;
/** Milliseconds between two frames of the spinner. */
const frameMs = 120;
/**
 * Without a terminal, progress is printed line by line if an operation or run takes longer than this number of seconds.
 */
const quietSecs = 2;

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export interface Moment {
  spinner: string;
  seconds: number;
  columns: number;
  rows: number;
}

export interface Followed<T> {
  begin: () => Promise<T>;
  look: (now: T) => Promise<T>;
  hasEnded: (now: T) => boolean;
  /** Returns the progress lines; `now` is null before the first response. */
  draw: (now: T | null, moment: Moment) => string[];
  /** Returns a line for each change since the last call. Used if there is no terminal. */
  changeLines: (now: T) => string[];
  see: (now: T | null) => string;
  end: (now: T) => string;
  /** How to cancel; null for a plan, which needs no cancellation. */
  cancel: ((now: T) => Promise<void>) | null;
}

/**
 * Follows an operation or run until it finishes. Waits while the orchestrator is unavailable, because the agents
 * continue.
 * @returns the final state
 * @throws CliError that contains the command to show the operation or run, if it cannot be followed
 */
export async function follow<T>(
  context: Pick<Context, 'out' | 'prompt' | 'sleep' | 'onInterrupt' | 'now'>,
  work: Followed<T>,
): Promise<T> {
  const { out, sleep } = context;
  const started = context.now();
  const seconds = () => Math.max(0, context.now() - started);
  const live = out.live();
  let known: T | null = null;
  const patience = new Patience(context.now);
  const lostLines = () =>
    patience.lost === null
      ? []
      : [out.noteColor.yellow(`  the orchestrator does not answer; retrying for ${duration(patience.lost)}`)];
  const drawing = startDrawing(live, seconds, (moment) => [...work.draw(known, moment), ...lostLines()]);
  const { cancel } = work;
  const release = onCtrlC(context, {
    see: () => work.see(known),
    end: () => (known === null ? null : work.end(known)),
    cancel: cancel === null ? null : async () => (known === null ? undefined : cancel(known)),
    pause: drawing.pause,
    resume: drawing.resume,
  });
  const tryAgain = (error: unknown, now: T): string | null => {
    try {
      return patience.failed(error);
    } catch {
      throw followFailed(error, work.see(now), work.cancel === null ? null : work.end(now));
    }
  };
  try {
    known = await work.begin().catch((error: unknown) => {
      throw startFailed(error, work.see(null));
    });
    let pause = firstWaitMs;
    for (let took = 0; !work.hasEnded(known); pause = Math.min(pause * 1.6, longestWaitMs)) {
      await sleep(Math.max(pause, took * share));
      const before = performance.now();
      try {
        known = await work.look(known);
        if (patience.answered() && !live.isSeen) out.note('The orchestrator answers again.');
      } catch (error) {
        const why = tryAgain(error, known);
        if (why !== null && !live.isSeen) out.note(`${why}; retrying`);
      }
      took = patience.lost === null ? performance.now() - before : 0;
      drawing.now();
      if (!live.isSeen && seconds() > quietSecs) for (const line of work.changeLines(known)) out.note(line);
    }
    return known;
  } finally {
    drawing.end();
    release();
  }
}

function startDrawing(live: LiveBlock, seconds: () => number, lines: (moment: Moment) => string[]) {
  let isPaused = false;
  let frame = 0;
  const draw = () => {
    // Draws nothing for an operation that finishes immediately, to avoid flicker.
    if (isPaused || !live.isSeen || seconds() < 0.3) return;
    live.draw(lines({ spinner: frames[frame % frames.length] ?? '', seconds: seconds(), ...live.size() }));
  };
  const ticker = live.isSeen
    ? setInterval(() => {
        frame++;
        draw();
      }, frameMs)
    : undefined;
  ticker?.unref();
  return {
    now: draw,
    pause: () => {
      isPaused = true;
      live.clear();
    },
    resume: () => {
      isPaused = false;
      draw();
    },
    end: () => {
      isPaused = true;
      clearInterval(ticker);
      live.clear();
    },
  };
}
