import { checkpointBefore } from './playback.ts';
import { isSize, type Recording, type Size } from './recording.ts';
import type { Screen } from './screen.ts';

/** Characters between two checkpoints, and of what is written at once. */
const checkpointEvery = 2 * 1024 * 1024;
const batch = 256 * 1024;

interface Checkpoint {
  /** Events that it stands behind. */
  readonly count: number;
  readonly size: Size;
  readonly snapshot: string;
}

/** Brings a screen to any moment of a recording, by the nearest moment that it has kept, in pieces that leave room to act. */
export class Replay {
  readonly #recording: Recording;
  readonly #screen: Screen;
  readonly #checkpoints: Checkpoint[] = [];
  /** Events that are on the screen. */
  #count = 0;
  #written = 0;
  #kept = 0;
  /** Turns with every aim, so that a former one stops. */
  #turn = 0;
  #going: Promise<void> = Promise.resolve();

  constructor(recording: Recording, screen: Screen) {
    this.#recording = recording;
    this.#screen = screen;
    this.#restart();
  }

  get count(): number {
    return this.#count;
  }

  /** @param count of events that are to be on the screen; resolves when they are, or somebody asked for others */
  show(count: number): Promise<void> {
    const turn = ++this.#turn;
    this.#going = this.#going.then(() => (turn === this.#turn ? this.#go(count, turn) : undefined));
    return this.#going;
  }

  stop(): void {
    this.#turn++;
  }

  #restart(): void {
    this.#screen.clear();
    this.#screen.resize(this.#recording.size.cols, this.#recording.size.rows);
    this.#count = 0;
    this.#written = 0;
  }

  async #go(count: number, turn: number): Promise<void> {
    const best = checkpointBefore(
      this.#checkpoints.map((each) => each.count),
      count,
    );
    const checkpoint = this.#checkpoints[best];
    if (checkpoint !== undefined && (count < this.#count || checkpoint.count > this.#count))
      await this.#return(checkpoint, best);
    else if (count < this.#count) this.#restart();
    while (this.#count < count && turn === this.#turn) await this.#step(count);
  }

  async #return({ count, size, snapshot }: Checkpoint, index: number): Promise<void> {
    this.#screen.clear();
    await this.#drawn('');
    this.#screen.resize(size.cols, size.rows);
    await this.#drawn(snapshot);
    this.#count = count;
    this.#written = (index + 1) * checkpointEvery;
  }

  /** As much as is written at once; a change of size stands alone. */
  async #step(count: number): Promise<void> {
    const { events } = this.#recording;
    const first = events[this.#count];
    if (first !== undefined && isSize(first)) {
      this.#count++;
      this.#screen.resize(first.cols, first.rows);
      return;
    }
    let length = 0;
    while (this.#count < count && length < batch) {
      const event = events[this.#count];
      if (event === undefined || isSize(event)) break;
      length += event.length;
      this.#screen.write(event);
      this.#count++;
    }
    await this.#drawn('');
    this.#written += length;
    this.#keep();
  }

  #keep(): void {
    if (this.#written < (this.#kept + 1) * checkpointEvery || this.#count <= (this.#checkpoints.at(-1)?.count ?? 0))
      return;
    this.#kept = Math.floor(this.#written / checkpointEvery);
    this.#checkpoints.push({ count: this.#count, size: this.#screen.size, snapshot: this.#screen.snapshot() });
  }

  #drawn(text: string): Promise<void> {
    return new Promise((resolve) => this.#screen.write(text, resolve));
  }
}
