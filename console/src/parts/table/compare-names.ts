let collator: Intl.Collator | undefined;

/** Compares names in natural order: `web-9` before `web-10`. */
export function compareNames(a: string, b: string): number {
  // Created on first use, because this makes the browser load the locale's data.
  collator ??= new Intl.Collator(undefined, { numeric: true });
  return collator.compare(a, b);
}
