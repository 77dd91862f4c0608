import { type RefObject, useEffect, useState } from 'react';

/** Pixels. Coarse, so that rows do not render again at every pixel of a resize. */
const step = 24;

/**
 * Measures the width of a column in pixels.
 * @param isRendered false while the table inside of `table` is not rendered
 */
export function useColumnRoom(table: RefObject<HTMLElement | null>, column: string, isRendered: boolean): number {
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const head = isRendered ? table.current?.querySelector(`[data-column="${column}"]`) : null;
    if (!head) return;
    const observer = new ResizeObserver(([entry]) =>
      setRoom(Math.floor((entry?.contentRect.width ?? 0) / step) * step),
    );
    observer.observe(head);
    return () => observer.disconnect();
  }, [table, column, isRendered]);
  return room;
}
