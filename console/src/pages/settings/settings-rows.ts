import type { Settings } from '@muster/protocol/http';
import { settingAmount } from '../../../../client/src/setting-amount.ts';

export interface Setting {
  /** The setting's path, with dots between the parts. */
  readonly key: string;
  /** Null if the setting has no value. */
  readonly value: string | null;
  /** The value with its unit, such as `256 MiB` or `12 h`; null if the key names the unit. */
  readonly amount: string | null;
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
      value: value === null || typeof value === 'string' ? value : JSON.stringify(value),
      amount: settingAmount(key, value),
      source: sources[key] ?? 'default',
    });
  };
  walk(settings, '');
  return rows.toSorted((a, b) => a.key.localeCompare(b.key));
}
