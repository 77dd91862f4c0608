/** Formats a count with its noun, such as `1 row` or `2 rows`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Formats a number of bytes in the largest unit in which the value is at least 1. */
export function sized(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024;
  return mebibytes >= 1 ? `${mebibytes.toFixed(1)} MiB` : `${Math.ceil(bytes / 1024)} KiB`;
}
