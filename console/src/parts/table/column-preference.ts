import { useCallback, useState } from 'react';

/** Hidden and resized columns of a table. This browser stores them; the page's address does not contain them. */
export interface ColumnPreference {
  readonly hidden: readonly string[];
  /** Pixels, by column. */
  readonly widths: Readonly<Record<string, number>>;
}

const nothing: ColumnPreference = { hidden: [], widths: {} };

/** Reads a stored preference, which may be of another version or edited by hand. */
export function readPreference(text: string | null): ColumnPreference | null {
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const { hidden, widths } = value as Record<string, unknown>;
    return {
      hidden: Array.isArray(hidden) ? hidden.filter((id) => typeof id === 'string') : [],
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
 * @param name identifies the table in the storage
 * @param hidden columns hidden by default
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
