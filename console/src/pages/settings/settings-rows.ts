import type { Settings } from '@muster/protocol/http';

export interface Setting {
  /** The setting's path, with dots between the parts. */
  readonly key: string;
  readonly value: string;
  readonly source: Settings['sources'][string];
}

/** Flattens nested settings to rows sorted by key. A list is one value. */
export function settingsOf({ settings, sources }: Settings): Setting[] {
  const rows: Setting[] = [];
  const walk = (value: unknown, key: string) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const entries = Object.entries(value);
      if (entries.length > 0) {
        for (const [name, inner] of entries) walk(inner, key === '' ? name : `${key}.${name}`);
        return;
      }
    }
    rows.push({
      key,
      value: typeof value === 'string' ? value : JSON.stringify(value),
      source: sources[key] ?? 'default',
    });
  };
  walk(settings, '');
  return rows.toSorted((a, b) => a.key.localeCompare(b.key));
}

/** Formats a number of bytes, for example `12.3 GiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
