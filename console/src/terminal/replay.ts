import { HiddenScreen, type ReplayScreen } from './hidden-screen.ts';
import { checkpointBefore } from './playback.ts';
import { isSize, type Recording, type Size } from './recording.ts';

/** Characters between two checkpoints, and of what is written at once. */
const checkpointEvery = 2 * 1024 * 1024;
const batch = 256 * 1024;
/** So many characters further on, one is faster there unseen. */
const far = 1024 * 1024;

interface Checkpoint {
  /** Events that it stands behind, and the characters in them. */
  readonly count: number;
  readonly length: number;
  readonly size: Size;
  readonly snapshot: string;
}

/** A screen, and how far in the recording it is. */
interface Head {
  readonly screen: ReplayScreen;
  count: number;
  /** Characters of the events that are on it. */
  length: number;
}

/**
 * Brings a screen to any moment of a recording, by the nearest moment that was kept, in pieces that leave room to act. A
 * long way is gone on a screen that is not drawn.
 */
export class Replay {
  readonly #recording: Recording;
  readonly #shown: Head;
  readonly #checkpoints: Checkpoint[] = [];
  #hidden: (Head & { readonly screen: HiddenScreen }) | null = null;
  /** How far whichever goes on is. */
  #reached = 0;
  /** Turns with every aim, so that a former one stops. */
  #turn = 0;
  #going: Promise<void> = Promise.resolve();

  constructor(recording: Recording, screen: ReplayScreen) {
    this.#recording = recording;
    this.#shown = { screen, count: 0, length: 0 };
    this.#restart(this.#shown);
  }

  /** Events that are on the screen, or on their way to it. */
  get count(): number {
    return this.#reached;
  }

  /** @param count of events that are to be on the screen; resolves when they are, or somebody asked for others */
  show(count: number): Promise<void> {
    const turn = ++this.#turn;
    this.#going = this.#going.then(() => (turn === this.#turn ? this.#go(count, turn) : undefined));
    return this.#going;
  }

  stop(): void {
    this.#turn++;
    void this.#going.then(() => {
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

  async #go(count: number, turn: number): Promise<void> {
    if (this.#isFar(count)) {
      this.#hidden ??= { screen: new HiddenScreen(), count: 0, length: 0 };
      await this.#bring(this.#hidden, count, turn);
      if (turn !== this.#turn) return;
      await this.#put(this.#shown, this.#kept(this.#hidden));
    } else await this.#bring(this.#shown, count, turn);
    if (turn === this.#turn) this.#reached = this.#shown.count;
  }

  /** Whether the screen would have much to draw until then. */
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

  /** From where a screen goes there: from where it is, from a moment that was kept, or from the beginning. */
  #startFor(head: Head, count: number): Head | Checkpoint | { readonly count: 0 } {
    const best = checkpointBefore(
      this.#checkpoints.map((each) => each.count),
      count,
    );
    const checkpoint = this.#checkpoints[best];
    if (checkpoint !== undefined && (count < head.count || checkpoint.count > head.count)) return checkpoint;
    return count < head.count ? { count: 0 } : head;
  }

  async #bring(head: Head, count: number, turn: number): Promise<void> {
    const start = this.#startFor(head, count);
    if ('snapshot' in start) await this.#put(head, start);
    else if (start !== head) this.#restart(head);
    while (head.count < count && turn === this.#turn) await this.#step(head, count);
  }

  async #put(head: Head, { count, length, size, snapshot }: Checkpoint): Promise<void> {
    head.screen.clear();
    await drawn(head.screen, '');
    head.screen.resize(size.cols, size.rows);
    await drawn(head.screen, snapshot);
    head.count = count;
    head.length = length;
  }

  /** As much as is written at once; a change of size stands alone. */
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
    if (head.length >= (last?.length ?? 0) + checkpointEvery) this.#checkpoints.push(this.#kept(head));
  }

  #kept = ({ screen, count, length }: Head): Checkpoint => ({
    count,
    length,
    size: screen.size,
    snapshot: screen.snapshot(),
  });
}

const drawn = (screen: ReplayScreen, text: string): Promise<void> =>
  new Promise((resolve) => screen.write(text, resolve));
