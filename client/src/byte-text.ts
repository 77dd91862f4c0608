const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/**
 * Formats an amount in bytes with binary prefixes (IEC 80000-13), such as `512 B` or `3.4 GiB`. The number has at most
 * three digits before the decimal point.
 */
export function bytesText(amount: number): string {
  let unit = 0;
  let value = Math.max(0, amount);
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
