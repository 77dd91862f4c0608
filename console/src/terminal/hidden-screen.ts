import { Terminal } from '@xterm/xterm';
import type { Size } from './recording.ts';
import { emptied, Snapshots, snapshotLines } from './snapshots.ts';

/** What a replay needs of a screen. */
export interface ReplayScreen {
  readonly size: Size;
  /** @param done when it is on the screen */
  write(data: string | Uint8Array, done?: () => void): void;
  /** Empties it, behind what has yet to be drawn. */
  clear(): void;
  resize(cols: number, rows: number): void;
  /** What brings an empty screen of the same size to where this one is. */
  snapshot(): string;
}

/** A terminal that is nowhere drawn: what it takes to bring a screen forward is mostly drawing what nobody sees. */
export class HiddenScreen implements ReplayScreen {
  readonly #terminal = new Terminal({ allowProposedApi: true, scrollback: snapshotLines });
  readonly #snapshots = new Snapshots(this.#terminal);

  get size(): Size {
    return { cols: this.#terminal.cols, rows: this.#terminal.rows };
  }

  write(data: string | Uint8Array, done?: () => void): void {
    this.#terminal.write(data, done);
  }

  clear(): void {
    this.#terminal.write(emptied);
  }

  resize(cols: number, rows: number): void {
    if (cols !== this.#terminal.cols || rows !== this.#terminal.rows) this.#terminal.resize(cols, rows);
  }

  snapshot(): string {
    return this.#snapshots.take();
  }

  dispose(): void {
    this.#terminal.dispose();
  }
}
