import type { TerminalModes } from './terminal-modes.ts';

/** The part of a recording from which a screen is built. */
export interface ScreenSource {
  readonly session_id: string;
  /** Offset in the transcript at which the part starts, in bytes. */
  readonly from: number;
  readonly to: number;
  /** The state of the terminal at `from`: its size, and the sequences that restore its modes. */
  readonly cols: number;
  readonly rows: number;
  readonly opening: string;
}

/** Builds the screen as it looks after a part of a recording. Never rejects. */
export type RecentScreen = (source: ScreenSource) => Promise<Uint8Array>;

/** A point in a recording from which a screen can be built, with the state of the terminal at that point. */
interface StartingPoint {
  readonly at: number;
  readonly cols: number;
  readonly rows: number;
  readonly opening: string;
  /** Whether the alternate screen has earlier content that cannot be rebuilt from this point. */
  readonly partial: boolean;
}

/** Maximum number of bytes of a recording from which a screen is built, and the distance between starting points. */
const screenBytes = 1024 * 1024;
const startingPointBytes = 128 * 1024;

type Size = Pick<StartingPoint, 'cols' | 'rows'>;

/** The points of a recording from which its latest screen can be built. */
export class StartingPoints {
  readonly #points: StartingPoint[] = [];

  /** Records the beginning of the recording. */
  begin(at: number, size: Size): void {
    this.#points.push({ at, ...size, opening: '', partial: false });
  }

  /**
   * Records a point, unless the last one is near. Drops points that are more than {@link screenBytes} before the
   * position that clients have received.
   */
  add(at: number, size: Size, modes: TerminalModes, shownTo: number): void {
    if (at - (this.#points.at(-1)?.at ?? 0) < startingPointBytes) return;
    this.#points.push({ at, ...size, opening: modes.opening(), partial: modes.alternate });
    while ((this.#points[1]?.at ?? at) < shownTo - screenBytes) this.#points.shift();
  }

  /** Returns the point from which to build the screen as it looks at `to`; null if nothing was shown. */
  before(to: number): StartingPoint | null {
    const point = this.#points.find(({ at }) => to - at <= screenBytes);
    return point !== undefined && point.at < to ? point : null;
  }
}
