import { type RefObject, useEffect, useState } from 'react';

/** Coarse, so that the rows are not drawn anew at every pixel of a window that is resized. */
const grain = 24;

/**
 * How wide the cells of a column are, in pixels.
 * @param isThere false while the table inside of `table` is not drawn
 */
export function useColumnRoom(table: RefObject<HTMLElement | null>, column: string, isThere: boolean): number {
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const head = isThere ? table.current?.querySelector(`[data-column="${column}"]`) : null;
    if (!head) return;
    const observer = new ResizeObserver(([entry]) =>
      setRoom(Math.floor((entry?.contentRect.width ?? 0) / grain) * grain),
    );
    observer.observe(head);
    return () => observer.disconnect();
  }, [table, column, isThere]);
  return room;
}
