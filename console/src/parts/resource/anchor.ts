/**
 * The part of an address after `#` that names a place in the results of an operation: a resource, or a line in its diff or
 * in what it printed. As `r=motd//etc/motd`, `r=motd//etc/motd&L12`, `r=site/deploy&stdout&L3`. Pure.
 */

export type AnchorPart = 'diff' | 'stdout' | 'stderr';

export interface Anchor {
  /** `module/identity`. */
  readonly resource: string;
  readonly part: AnchorPart;
  /** A line as it is numbered there; in a diff a number before (`B12`) where the line is gone, else the one after (`L12`). */
  readonly line: string | null;
}

/** What separates, and what would not survive in an address, is escaped; the rest stays readable. */
const escaped = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(/%2F|%3A|%40|%2C|%24/g, decodeURIComponent);

export function anchorText({ resource, part, line }: Anchor): string {
  const where = part === 'diff' ? '' : `&${part}`;
  return `r=${escaped(resource)}${where}${line === null ? '' : `&${line}`}`;
}

/** @param text as it stands in the address, without `#`. @returns null when it names no such place */
export function readAnchor(text: string): Anchor | null {
  const [first = '', ...rest] = text.split('&');
  if (!first.startsWith('r=')) return null;
  let resource: string;
  try {
    resource = decodeURIComponent(first.slice(2));
  } catch {
    return null;
  }
  const part = rest.find((word): word is AnchorPart => word === 'stdout' || word === 'stderr') ?? 'diff';
  return { resource, part, line: rest.find((word) => /^[LB]\d{1,9}$/.test(word)) ?? null };
}
