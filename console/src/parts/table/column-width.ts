import { type RefObject, useEffect, useState } from 'react';

/**
 * Widths are rounded down to a multiple of this number of pixels, so that resizing does not render the rows again at
 * every pixel.
 */
const step = 24;

/**
 * Returns a column's width in pixels.
 * @param isRendered whether `table` contains the rendered table
 */
export function useColumnWidth(table: RefObject<HTMLElement | null>, column: string, isRendered: boolean): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const head = isRendered ? table.current?.querySelector(`[data-column="${column}"]`) : null;
    if (!head) return;
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.floor((entry?.contentRect.width ?? 0) / step) * step),
    );
    observer.observe(head);
    return () => observer.disconnect();
  }, [table, column, isRendered]);
  return width;
}
