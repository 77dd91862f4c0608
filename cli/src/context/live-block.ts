import stringWidth from 'string-width';
import { cutTo } from '../text/width.ts';
import type { Sink } from './sink.ts';

/**
 * The last lines of a terminal's output, which are redrawn in place and finally removed. Each line is truncated to the
 * window width, so that the height of the block is known.
 */
export interface LiveBlock {
  /** Whether the output supports redrawing: false for a pipe or in a CI job. */
  readonly isSeen: boolean;
  size(): { columns: number; rows: number };
  draw(lines: readonly string[]): void;
  /** Removes the block until the next draw. */
  clear(): void;
}

/**
 * Creates a block. Draws nothing if `isSeen` is false, or while `isPaused` returns true.
 * @param isPaused reports whether something else is using the screen
 */
export function createLiveBlock(stream: Sink, isSeen: boolean, isPaused: () => boolean = () => false): LiveBlock {
  let drawn: string[] = [];
  const size = () => ({ columns: Math.max(20, stream.columns ?? 80), rows: Math.max(4, stream.rows ?? 24) });

  /**
   * Returns the escape sequence that erases the block. The block's lines may have wrapped if the window became
   * narrower.
   */
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
      if (!isSeen || isPaused()) return;
      const { columns, rows } = size();
      const maxLines = rows - 1;
      const next = lines.slice(0, maxLines).map((line) => cutTo(line, columns - 1));
      // Uses a single write, so that no other output is interleaved.
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
