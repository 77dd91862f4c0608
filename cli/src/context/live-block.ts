import stringWidth from 'string-width';
import { cutTo } from '../text/width.ts';
import type { Sink } from './sink.ts';

/**
 * Lines at the end of what a terminal shows that are drawn anew as things go on, and are gone at the end. Each is cut to
 * the window, so that what was drawn can be found again; the cursor stays where it can be seen.
 */
export interface LiveBlock {
  /** Somebody sees it. */
  readonly isSeen: boolean;
  /** What the window holds. */
  size(): { columns: number; rows: number };
  /** Draws these lines in place of those before. */
  draw(lines: readonly string[]): void;
  /** Takes them away until they are drawn again. */
  clear(): void;
}

/**
 * @param stream of a terminal; `isSeen` false: nothing is ever drawn
 * @param isHeld true while something else has the screen: nothing is drawn then
 */
export function createLiveBlock(stream: Sink, isSeen: boolean, isHeld: () => boolean = () => false): LiveBlock {
  let drawn: string[] = [];
  const size = () => ({ columns: Math.max(20, stream.columns ?? 80), rows: Math.max(4, stream.rows ?? 24) });

  /** Upwards over what was drawn: in a window that is narrower by now its lines may take more than one row each. */
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
      // In one piece: nothing else may come in between.
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
