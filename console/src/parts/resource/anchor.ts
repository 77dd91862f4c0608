/**
 * A URL fragment that identifies a resource in an operation's results, or a line in its diff or output. Examples:
 * `r=motd//etc/motd`, `r=motd//etc/motd&L12`, `r=site/deploy&stdout&L3`.
 */

export type AnchorPart = 'diff' | 'stdout' | 'stderr';

export interface Anchor {
  /** `module/identity`. */
  readonly resource: string;
  readonly part: AnchorPart;
  /** A line number such as `L12`, or `B12` for a removed line's old number. */
  readonly line: string | null;
}

/** Escapes separators and characters that URLs cannot contain. Other characters stay readable. */
const escaped = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(/%2F|%3A|%40|%2C|%24/g, decodeURIComponent);

export function anchorText({ resource, part, line }: Anchor): string {
  const where = part === 'diff' ? '' : `&${part}`;
  return `r=${escaped(resource)}${where}${line === null ? '' : `&${line}`}`;
}

/**
 * @param text the fragment without `#`, not decoded
 * @returns null if the fragment names no resource
 */
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
