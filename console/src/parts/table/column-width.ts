import { type RefObject, useEffect, useState } from 'react';

/**
 * Widths are rounded down to a multiple of this number of pixels, so that resizing does not render the rows again at
 * every pixel.
 */
const step = 24;

/**
 * Returns a column's width in pixels.
 * @param column null for the width of the whole table, because rows have no columns on a phone
 * @param isRendered whether `table` contains the rendered table
 */
export function useColumnWidth(
  table: RefObject<HTMLElement | null>,
  column: string | null,
  isRendered: boolean,
): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const head = column === null ? table.current : table.current?.querySelector(`[data-column="${column}"]`);
    if (!isRendered || !head) return;
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.floor((entry?.contentRect.width ?? 0) / step) * step),
    );
    observer.observe(head);
    return () => observer.disconnect();
  }, [table, column, isRendered]);
  return width;
}
