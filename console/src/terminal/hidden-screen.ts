import { Terminal } from '@xterm/xterm';
import type { Size } from './recording.ts';
import { emptied, Snapshots, snapshotLines } from './snapshots.ts';

/** The screen interface that a replay uses. */
export interface ReplayScreen {
  readonly size: Size;
  /** @param done called when the screen has processed the data */
  write(data: string | Uint8Array, done?: () => void): void;
  /** Clears the screen after all pending writes. */
  clear(): void;
  resize(cols: number, rows: number): void;
  /** Returns escape sequences that restore this state on an empty screen of the same size. */
  snapshot(): string;
}

/** A terminal that is not rendered. It replays long stretches faster, because rendering takes most of the time. */
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
