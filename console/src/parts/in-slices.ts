/** Maximum duration of a slice in milliseconds: half a frame at 60 Hz, so that the browser can also paint. */
const sliceMs = 8;

export interface SliceClock {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /**
   * Calls `act` after the browser has had the opportunity to paint and to handle input. The returned function cancels
   * the call.
   */
  readonly later: (act: () => void) => () => void;
}

const tabClock: SliceClock = {
  now: () => performance.now(),
  later: (act) => {
    const timer = setTimeout(act);
    return () => clearTimeout(timer);
  },
};

/**
 * Divides long work into slices, so that it does not block the page. A slice ends after the step that reaches the
 * maximum duration.
 * @param done called with the result
 * @returns a function that cancels the work
 */
export function runInSlices<Result>(
  steps: Iterator<unknown, Result>,
  done: (result: Result) => void,
  { now, later }: SliceClock = tabClock,
): () => void {
  const slice = () => {
    const end = now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done) return done(step.value);
    } while (now() < end);
    cancel = later(slice);
  };
  let cancel = later(slice);
  return () => cancel();
}
