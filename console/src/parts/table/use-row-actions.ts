import { type KeyboardEvent, type MouseEvent, useCallback, useRef } from 'react';
import { rangeChosen, toggled } from './choosing.ts';

const pageRows = 15;

/**
 * Returns handlers that open and select rows by mouse and keyboard. `choose` and `click` are the same functions in
 * every render.
 */
export function useRowActions<Row>(options: {
  readonly keys: readonly string[];
  readonly rowAt: (index: number) => Row;
  readonly focus: (index: number) => string | undefined;
  readonly onOpen: ((row: Row) => void) | undefined;
  readonly chosen: ReadonlySet<string> | undefined;
  readonly onChoose: ((chosen: ReadonlySet<string>) => void) | undefined;
}) {
  const latest = useRef(options);
  latest.current = options;
  /** The last toggled row. A range starts here. */
  const anchor = useRef<string | null>(null);
  const choose = useCallback((key: string, range: boolean) => {
    const { keys, chosen, onChoose } = latest.current;
    if (chosen === undefined || onChoose === undefined) return;
    onChoose(range ? rangeChosen(keys, chosen, anchor.current, key) : toggled(chosen, key));
    if (!range) anchor.current = key;
  }, []);
  const click = useCallback(
    (event: MouseEvent<HTMLElement>, key: string, row: unknown) => {
      const target = event.target as HTMLElement;
      if (target.closest('a,button,input,label,[role=menu],[data-details]') !== null) return;
      const { chosen, onOpen } = latest.current;
      if (chosen !== undefined && (event.shiftKey || event.metaKey || event.ctrlKey)) choose(key, event.shiftKey);
      else if (!hasSelection()) onOpen?.(row as Row);
    },
    [choose],
  );

  const { keys, rowAt, focus, onOpen, chosen, onChoose } = options;
  const move = (from: number, to: number, extend: boolean) => {
    const key = focus(to);
    if (!extend || key === undefined || chosen === undefined || onChoose === undefined) return;
    if (anchor.current === null || !chosen.has(anchor.current)) {
      anchor.current = keys[from] as string;
      onChoose(rangeChosen(keys, new Set([...chosen, anchor.current]), anchor.current, key));
    } else choose(key, true);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const element = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
    if (element === null || event.target !== element) return;
    const index = Number(element.dataset.index);
    const hasModifier = event.ctrlKey || event.metaKey;
    const to = hasModifier || event.altKey ? undefined : targetOf(event.key, index, keys.length);
    if (to !== undefined) {
      event.preventDefault();
      move(index, to, event.shiftKey);
    } else if (event.key === 'Enter') onOpen?.(rowAt(index));
    else if (chosen === undefined || onChoose === undefined) return;
    else if (event.key === ' ') {
      event.preventDefault();
      choose(keys[index] as string, event.shiftKey);
    } else if (event.key === 'a' && hasModifier) {
      event.preventDefault();
      onChoose(new Set([...chosen, ...keys]));
    } else if (event.key === 'Escape' && chosen.size > 0) {
      event.preventDefault();
      onChoose(new Set());
    }
  };
  return { choose, click, onKeyDown };
}

/**
 * Returns the index to which a key moves the focus, possibly out of range, or undefined if the key does not move it.
 */
function targetOf(key: string, index: number, count: number): number | undefined {
  const targets: Record<string, number | undefined> = {
    ArrowDown: index + 1,
    j: index + 1,
    // Up on the first row leaves the table (app/shortcuts.ts).
    ArrowUp: index === 0 ? undefined : index - 1,
    k: index - 1,
    PageDown: index + pageRows,
    PageUp: index - pageRows,
    Home: 0,
    End: count - 1,
  };
  return targets[key];
}

/** Reports whether text is selected. Selecting text with the mouse must not open the row. */
const hasSelection = (): boolean => (window.getSelection()?.toString() ?? '') !== '';
