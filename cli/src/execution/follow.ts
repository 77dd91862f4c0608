import type { Context } from '../context/context.ts';
import type { LiveBlock } from '../context/live-block.ts';
import { duration } from '../text/style.ts';
import { onCtrlC } from './interrupt.ts';
import { leftGoing, notBegun, Patience } from './watch-through.ts';

/** Looks at something that goes on until it has ended, drawing it where somebody sees that. */

/** Between two looks, in milliseconds: often at first, since most work is short. */
const firstWaitMs = 60;
const longestWaitMs = 1_000;
/** A look may take so much of the time, however long it takes. */
const share = 4;
/** Of the spinner. */
const frameMs = 120;
/** What takes longer is told line by line where nobody sees it drawn. Seconds. */
const quietSecs = 2;

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** What a view is drawn with. */
export interface Moment {
  spinner: string;
  /** Since it began. */
  seconds: number;
  columns: number;
  rows: number;
}

export interface Followed<T> {
  begin: () => Promise<T>;
  look: (now: T) => Promise<T>;
  hasEnded: (now: T) => boolean;
  /** Null: it has not been taken yet. */
  draw: (now: T | null, moment: Moment) => string[];
  /** Lines for what is new since the last call, where nothing is drawn. */
  tell: (now: T) => string[];
  see: (now: T | null) => string;
  end: (now: T) => string;
  /** Null: it changes nothing. */
  cancel: ((now: T) => Promise<void>) | null;
}

/**
 * An orchestrator that is away for a while is waited for: what was begun goes on by itself.
 * @returns it as it was at its end
 * @throws CliError that says how to look on, where that cannot be waited for
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
      : [out.noteColor.yellow(`  the orchestrator does not answer; trying again for ${duration(patience.lost)}`)];
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
      throw leftGoing(error, work.see(now), work.cancel === null ? null : work.end(now));
    }
  };
  try {
    known = await work.begin().catch((error: unknown) => {
      throw notBegun(error, work.see(null));
    });
    let pause = firstWaitMs;
    for (let took = 0; !work.hasEnded(known); pause = Math.min(pause * 1.6, longestWaitMs)) {
      await sleep(Math.max(pause, took * share));
      const before = performance.now();
      try {
        known = await work.look(known);
        if (patience.answered() && !live.isSeen) out.note('It answers again.');
      } catch (error) {
        const why = tryAgain(error, known);
        if (why !== null && !live.isSeen) out.note(`${why}; trying again`);
      }
      took = patience.lost === null ? performance.now() - before : 0;
      drawing.now();
      if (!live.isSeen && seconds() > quietSecs) for (const line of work.tell(known)) out.note(line);
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
    // What is over at once need not flicker.
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
