import { bytesText } from './byte-text.ts';

const spans = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/**
 * Returns the value of a setting with its unit, such as `256 MiB` or `12 h`. The key determines the unit. Returns null if
 * the value has no unit, or if the key names the unit and the value is not a whole number of a larger one.
 * @param key the setting's path, with dots between the parts
 */
export function settingAmount(key: string, value: unknown): string | null {
  if (typeof value !== 'number') return null;
  if (/_bytes$/.test(key)) return value < 1000 ? null : bytesText(value);
  if (value === 0 || !/(_secs|_timeout|interval|\.retention)$/.test(key)) return null;
  const span = spans.find(([seconds]) => value % seconds === 0);
  // A key that ends with `_secs` already names the unit.
  return span === undefined || (span[1] === 's' && key.endsWith('_secs')) ? null : `${value / span[0]} ${span[1]}`;
}
