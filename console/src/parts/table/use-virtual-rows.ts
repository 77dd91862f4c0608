import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { type FocusEvent, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';

/** Distance from the last row, in rows, at which more rows are requested. */
const nearEndRows = 20;

/** Number of rows to render above and below the visible rows, so that scrolling shows them without delay. */
const overscanRows = 10;

/**
 * Renders only the visible rows and moves the focus between rows.
 * @param rowHeight in pixels; an estimate if `isMeasured`
 * @param onNearEnd called when the last rows come into view
 * @param isMeasured whether rows have different heights, which are measured
 */
export function useVirtualRows(
  keys: readonly string[],
  rowHeight: number,
  onNearEnd: (() => void) | undefined,
  isMeasured: boolean,
) {
  const scroller = useRef<HTMLDivElement>(null);
  /**
   * Key of the row that has or last had the focus. It stays rendered when it is scrolled out of view, so that the focus
   * is not lost.
   */
  const [active, setActive] = useState<string | null>(null);
  const activeIndex = useMemo(() => (active === null ? -1 : keys.indexOf(active)), [keys, active]);
  // The first render includes only the visible rows.
  const overscan = useDeferredValue(overscanRows, 0);
  const virtualizer = useVirtualizer({
    count: keys.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan,
    getItemKey: (index) => keys[index] as string,
    rangeExtractor: (range) => {
      const indexes = defaultRangeExtractor(range);
      if (activeIndex === -1 || indexes.includes(activeIndex)) return indexes;
      return [...indexes, activeIndex].sort((a, b) => a - b);
    },
  });
  /** Index of the row that contains the focus, or null if no row does. */
  const focusedIndex = useRef<number | null>(null);
  // Browsers move the focus to the body if its element is removed, and React then calls no `onBlur`. The arrow keys would
  // have no effect.
  useLayoutEffect(() => {
    const rows = scroller.current;
    if (focusedIndex.current === null || rows === null || document.activeElement !== document.body) return;
    const to = Math.min(focusedIndex.current, keys.length - 1);
    rows.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus();
  });
  const wasMeasured = useRef(isMeasured);
  useEffect(() => {
    if (wasMeasured.current === isMeasured) return;
    wasMeasured.current = isMeasured;
    virtualizer.measure();
  }, [virtualizer, isMeasured]);
  const items = virtualizer.getVirtualItems();
  const isNearEnd = keys.length > 0 && (items.at(-1)?.index ?? 0) >= keys.length - nearEndRows;
  useEffect(() => {
    if (isNearEnd) onNearEnd?.();
  }, [isNearEnd, onNearEnd]);

  /**
   * Focuses the row at the index, or the nearest existing row.
   * @returns its key
   */
  const focus = (index: number): string | undefined => {
    const to = Math.max(0, Math.min(keys.length - 1, index));
    setActive(keys[to] ?? null);
    virtualizer.scrollToIndex(to);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus());
    return keys[to];
  };
  const onFocus = ({ target }: FocusEvent<HTMLElement>) => {
    const index = target.closest<HTMLElement>('[data-index]')?.dataset.index;
    focusedIndex.current = index === undefined ? null : Number(index);
  };
  const onBlur = () => {
    focusedIndex.current = null;
  };
  return {
    ...{ scroller, items, focus, setActive, onFocus, onBlur },
    /** The callback ref of each row; undefined if all rows have the same height. */
    measure: isMeasured ? virtualizer.measureElement : undefined,
    height: virtualizer.getTotalSize(),
    /** Index of the only row that the Tab key reaches. */
    tabStop: activeIndex === -1 ? (virtualizer.range?.startIndex ?? 0) : activeIndex,
  };
}
