import { readCast } from './asciicast.ts';
import { ReplayFilter } from './replay-filter.ts';
import { ScreenState } from './screen-state.ts';

export interface PlayerOptions {
  /** Returns the recording from its beginning. Called again for each replay. */
  readonly source: () => AsyncIterable<Uint8Array>;
  readonly speed: number;
  /** Maximum pause in seconds; null for no limit. */
  readonly idleLimit: number | null;
  readonly write: (text: string) => Promise<void>;
  /** Returns the current window size. */
  readonly size: () => { cols: number; rows: number } | null;
  /** Called before the first output and whenever the recording grows, if the recording does not fit into the window. */
  readonly tooLarge: (cols: number, rows: number) => void;
  /** Returns milliseconds on a monotonic clock. */
  readonly clock: () => number;
  /** Waits; resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export type PlayerKey = 'pause' | 'back' | 'forward' | 'quit';

const skipSeconds = 5;

/** Parses keys. Arrow keys have two forms, because a recording may switch the cursor key mode. */
export function playerKeys(bytes: Uint8Array): PlayerKey[] {
  const text = Buffer.from(bytes).toString('latin1');
  const keys: PlayerKey[] = [];
  for (const [key] of text.matchAll(/\u001b[[O][A-D]|[ q\u0003\u0004]/g)) {
    if (key === ' ') keys.push('pause');
    else if (key === 'q' || key === '\u0003' || key === '\u0004') keys.push('quit');
    else if (key.endsWith('C')) keys.push('forward');
    else if (key.endsWith('D')) keys.push('back');
  }
  return keys;
}

/**
 * Plays a recording with its original timing and the configured maximum pause. Filters the output with `ReplayFilter`.
 */
export class Player {
  readonly #options: PlayerOptions;
  readonly #screen = new ScreenState();
  /** Aborted on a key press to cancel the current wait. */
  #interrupt = new AbortController();
  #paused = false;
  #quit = false;
  /** Position to skip to, in seconds from the start of the recording; null if there is none. */
  #target: number | null = null;
  /** Position in the recording, and the clock time at that position, both in seconds. */
  #position = 0;
  #since = 0;

  constructor(options: PlayerOptions) {
    this.#options = options;
  }

  restore(): string {
    return this.#screen.restore();
  }

  press(key: PlayerKey): void {
    const now = this.#now();
    if (key === 'quit') this.#quit = true;
    else if (key === 'pause') {
      this.#setPosition(now);
      this.#paused = !this.#paused;
    } else {
      const target = Math.max(0, (this.#target ?? now) + (key === 'forward' ? skipSeconds : -skipSeconds));
      this.#target = target;
    }
    this.#interrupt.abort();
  }

  /**
   * Plays the recording.
   * @returns false if the operator quit early
   */
  async play(): Promise<boolean> {
    this.#setPosition(0);
    while (!(await this.#once())) {
      // Skips back by replaying from the beginning up to the target without pauses.
      await this.#options.write(`${this.#screen.restore()}\u001b[H\u001b[2J`);
      this.#setPosition(0);
    }
    return !this.#quit;
  }

  #now(): number {
    if (this.#paused) return this.#position;
    return this.#position + ((this.#options.clock() - this.#since) / 1000) * this.#options.speed;
  }

  #setPosition(position: number): void {
    this.#position = position;
    this.#since = this.#options.clock();
  }

  /**
   * Plays once from the beginning.
   * @returns false if the playback must restart
   */
  async #once(): Promise<boolean> {
    const { source, idleLimit, write, size, tooLarge } = this.#options;
    const filter = new ReplayFilter();
    const largest = { cols: size()?.cols ?? Number.POSITIVE_INFINITY, rows: size()?.rows ?? Number.POSITIVE_INFINITY };
    const fit = ({ cols, rows }: { cols: number; rows: number }) => {
      if (cols <= largest.cols && rows <= largest.rows) return;
      largest.cols = Math.max(cols, largest.cols);
      largest.rows = Math.max(rows, largest.rows);
      tooLarge(cols, rows);
    };
    let at = 0;
    let cut = 0;
    for await (const event of readCast(source())) {
      if (event.kind === 'header') {
        fit(event);
        continue;
      }
      const gap = event.at - cut - at;
      if (idleLimit !== null && gap > idleLimit) cut += gap - idleLimit;
      at = event.at - cut;
      const verdict = await this.#until(at);
      if (verdict === 'quit') return true;
      if (verdict === 'anew') return false;
      if (event.kind === 'resize') fit(event);
      else {
        const text = filter.feed(event.text);
        this.#screen.feed(Buffer.from(text));
        await write(text);
      }
    }
    return true;
  }

  /** Waits until playback reaches a time in the recording. */
  async #until(at: number): Promise<'go' | 'quit' | 'anew'> {
    for (;;) {
      if (this.#quit) return 'quit';
      if (this.#target !== null) {
        const target = this.#target;
        // Earlier output can only be shown by replaying from the beginning.
        if (target < this.#position) {
          this.#position = 0;
          return 'anew';
        }
        if (at <= target) {
          this.#position = at;
          return 'go';
        }
        this.#target = null;
        this.#setPosition(target);
      }
      const left = at - this.#now();
      if (!this.#paused && left <= 0) {
        this.#setPosition(at);
        return 'go';
      }
      this.#interrupt = new AbortController();
      const milliseconds = this.#paused ? 3_600_000 : Math.min(3_600_000, (left / this.#options.speed) * 1000);
      await this.#options.wait(milliseconds, this.#interrupt.signal);
    }
  }
}
