import { useCallback, useState } from 'react';

/** A table's hidden, kept, and resized columns, stored in this browser and not in the URL. */
export interface ColumnPreference {
  readonly hidden: readonly string[];
  /** Columns that are shown even if the screen is too narrow for them. The table then scrolls sideways. */
  readonly kept: readonly string[];
  /** Widths in pixels, by column. */
  readonly widths: Readonly<Record<string, number>>;
}

const nothing: ColumnPreference = { hidden: [], kept: [], widths: {} };

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

/** Parses a stored preference, which may come from another version or a manual edit. */
export function readPreference(text: string | null): ColumnPreference | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const { hidden, kept, widths } = value as Record<string, unknown>;
    return {
      hidden: textsOf(hidden),
      kept: textsOf(kept),
      widths: Object.fromEntries(
        Object.entries(typeof widths === 'object' && widths !== null ? widths : {}).filter(
          ([, width]) => typeof width === 'number' && width >= 40 && width <= 2_000,
        ),
      ),
    };
  } catch {
    return null;
  }
}

/**
 * @param name key in the browser's storage
 * @param hidden columns to hide by default
 */
export function useColumnPreference(
  name: string,
  hidden: readonly string[] = [],
): [ColumnPreference, (next: ColumnPreference) => void] {
  const key = `muster.columns.${name}`;
  const [preference, setPreference] = useState<ColumnPreference>(
    () => readPreference(window.localStorage.getItem(key)) ?? { ...nothing, hidden },
  );
  const set = useCallback(
    (next: ColumnPreference) => {
      setPreference(next);
      window.localStorage.setItem(key, JSON.stringify(next));
    },
    [key],
  );
  return [preference, set];
}
