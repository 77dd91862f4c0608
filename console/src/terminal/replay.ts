import { HiddenScreen, type ReplayScreen } from './hidden-screen.ts';
import { checkpointBefore } from './playback.ts';
import { isSize, type Recording, type Size } from './recording.ts';

/** Number of characters between two checkpoints. */
const checkpointEvery = 2 * 1024 * 1024;
/** Number of characters to write before yielding to the browser. */
const batch = 256 * 1024;
/** Minimum number of characters for which the hidden screen is faster. */
const far = 1024 * 1024;

interface Checkpoint {
  /** Number of events before the checkpoint. `length` is their number of characters. */
  readonly count: number;
  readonly length: number;
  readonly size: Size;
  readonly snapshot: string;
}

/** A screen and its position in the recording. */
interface Head {
  readonly screen: ReplayScreen;
  count: number;
  /** Number of characters in the written events. */
  length: number;
}

/**
 * Shows any position in a recording on a screen. Starts at the nearest checkpoint and works in batches that keep the
 * page responsive. Long distances are replayed on a hidden screen.
 */
export class Replay {
  readonly #recording: Recording;
  readonly #shown: Head;
  readonly #checkpoints: Checkpoint[] = [];
  #hidden: (Head & { readonly screen: HiddenScreen }) | null = null;
  /** Number of events written by the head that is currently working. */
  #reached = 0;
  /** Incremented for every target, to stop work on earlier targets. */
  #generation = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(recording: Recording, screen: ReplayScreen) {
    this.#recording = recording;
    this.#shown = { screen, count: 0, length: 0 };
    this.#restart(this.#shown);
  }

  /** Number of events that were written to the screen. */
  get count(): number {
    return this.#reached;
  }

  /** Shows the first `count` events. Resolves when they are shown, or when another call replaces this target. */
  show(count: number): Promise<void> {
    const generation = ++this.#generation;
    this.#running = this.#running.then(() =>
      generation === this.#generation ? this.#go(count, generation) : undefined,
    );
    return this.#running;
  }

  stop(): void {
    this.#generation++;
    void this.#running.then(() => {
      this.#hidden?.screen.dispose();
      this.#hidden = null;
    });
  }

  #restart(head: Head): void {
    head.screen.clear();
    head.screen.resize(this.#recording.size.cols, this.#recording.size.rows);
    head.count = 0;
    head.length = 0;
  }

  async #go(count: number, generation: number): Promise<void> {
    if (this.#isFar(count)) {
      this.#hidden ??= { screen: new HiddenScreen(), count: 0, length: 0 };
      await this.#bring(this.#hidden, count, generation);
      if (generation !== this.#generation) return;
      await this.#restore(this.#shown, this.#checkpointOf(this.#hidden));
    } else await this.#bring(this.#shown, count, generation);
    if (generation === this.#generation) this.#reached = this.#shown.count;
  }

  /** Reports whether at least {@link far} characters must be written to the visible screen to reach `count`. */
  #isFar(count: number): boolean {
    const { count: from } = this.#startFor(this.#shown, count);
    const { events } = this.#recording;
    let length = 0;
    for (let at = from; at < count && length < far; at++) {
      const event = events[at];
      if (event !== undefined && !isSize(event)) length += event.length;
    }
    return length >= far;
  }

  /** Returns the nearest start for a screen: its current position, a checkpoint, or the beginning. */
  #startFor(head: Head, count: number): Head | Checkpoint | { readonly count: 0 } {
    const best = checkpointBefore(
      this.#checkpoints.map((each) => each.count),
      count,
    );
    const checkpoint = this.#checkpoints[best];
    if (checkpoint !== undefined && (count < head.count || checkpoint.count > head.count)) return checkpoint;
    return count < head.count ? { count: 0 } : head;
  }

  async #bring(head: Head, count: number, generation: number): Promise<void> {
    const start = this.#startFor(head, count);
    if ('snapshot' in start) await this.#restore(head, start);
    else if (start !== head) this.#restart(head);
    while (head.count < count && generation === this.#generation) await this.#step(head, count);
  }

  async #restore(head: Head, { count, length, size, snapshot }: Checkpoint): Promise<void> {
    head.screen.clear();
    await drawn(head.screen, '');
    head.screen.resize(size.cols, size.rows);
    await drawn(head.screen, snapshot);
    head.count = count;
    head.length = length;
  }

  /** Writes one batch of events, or applies one size change. */
  async #step(head: Head, count: number): Promise<void> {
    const { events } = this.#recording;
    const first = events[head.count];
    if (first !== undefined && isSize(first)) {
      head.count++;
      head.screen.resize(first.cols, first.rows);
      return;
    }
    let length = 0;
    while (head.count < count && length < batch) {
      const event = events[head.count];
      if (event === undefined || isSize(event)) break;
      length += event.length;
      head.screen.write(event);
      head.count++;
    }
    await drawn(head.screen, '');
    head.length += length;
    this.#reached = head.count;
    const last = this.#checkpoints.at(-1);
    if (head.length >= (last?.length ?? 0) + checkpointEvery) this.#checkpoints.push(this.#checkpointOf(head));
  }

  #checkpointOf = ({ screen, count, length }: Head): Checkpoint => ({
    count,
    length,
    size: screen.size,
    snapshot: screen.snapshot(),
  });
}

const drawn = (screen: ReplayScreen, text: string): Promise<void> =>
  new Promise((resolve) => screen.write(text, resolve));
