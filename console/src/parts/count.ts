let format: Intl.NumberFormat | undefined;

/** Formats a count with grouped digits, such as `10,000`, in the browser's locale. */
export function countText(count: number): string {
  if (Math.abs(count) < 1_000) return String(count);
  // Created on first use, because this makes the browser load the locale's data.
  format ??= new Intl.NumberFormat();
  return format.format(count);
}

/** Formats a count with its noun, such as `1 agent` or `10,000 agents`. */
export const countedText = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;
