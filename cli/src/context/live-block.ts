import stringWidth from 'string-width';
import { cutTo } from '../text/width.ts';
import type { Sink } from './sink.ts';

/**
 * Lines at the end of a terminal's output that are redrawn, and removed at the end. Each line is cut to the window
 * width, so that the block always has a known height.
 */
export interface LiveBlock {
  /** False if the output is not a terminal that the operator can see. */
  readonly isSeen: boolean;
  size(): { columns: number; rows: number };
  /** Replaces the drawn lines. */
  draw(lines: readonly string[]): void;
  /** Removes the lines until the next draw. */
  clear(): void;
}

/**
 * @param stream of a terminal; with `isSeen` false nothing is drawn
 * @param isHeld true while something else uses the screen; then nothing is drawn
 */
export function createLiveBlock(stream: Sink, isSeen: boolean, isHeld: () => boolean = () => false): LiveBlock {
  let drawn: string[] = [];
  const size = () => ({ columns: Math.max(20, stream.columns ?? 80), rows: Math.max(4, stream.rows ?? 24) });

  /** The sequence that erases the drawn lines. A narrower window may have wrapped them. */
  const back = (): string => {
    if (drawn.length === 0) return '';
    const { columns, rows } = size();
    const taken = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / columns)), 0);
    return `\u001b[${Math.min(taken, rows)}A\r\u001b[0J`;
  };

  return {
    isSeen,
    size,
    draw(lines) {
      if (!isSeen || isHeld()) return;
      const { columns, rows } = size();
      const room = rows - 1;
      const next = lines.slice(0, room).map((line) => cutTo(line, columns - 1));
      // Writes once, so that no other output is interleaved.
      stream.write(`${back()}${next.map((line) => `${line}\n`).join('')}`);
      drawn = next;
    },
    clear() {
      if (!isSeen || drawn.length === 0) return;
      stream.write(back());
      drawn = [];
    },
  };
}
