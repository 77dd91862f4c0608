import { hash } from 'node:crypto';
import type { ResourceResult } from '@muster/protocol';

/** Fingerprints by resource key. A later check recognizes known drift by its fingerprint. */
export type Fingerprints = Readonly<Record<string, string>>;

const digestOf = (said: string): string => hash('sha256', said).slice(0, 32);

/**
 * Computes the fingerprint of one result. A hidden value is hashed in its masked form, so a change to that value is not
 * detected.
 */
export function fingerprintOf({ module, type, identity, action, status, changes, diff }: ResourceResult): string {
  const fields = changes
    .map(({ field, from, to }) => [field, from, to])
    .sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1));
  return digestOf(JSON.stringify(['', module, type, identity, action, status, fields, diff]));
}

/** Computes the fingerprints of results by key. Several results for one resource are hashed together, in order. */
export function fingerprintsOf(
  deviations: readonly { readonly key: string; readonly fingerprint: string }[],
): Fingerprints {
  const prints: Record<string, string> = {};
  for (const { key, fingerprint } of deviations) {
    const before = prints[key];
    prints[key] = before === undefined ? fingerprint : digestOf(before + fingerprint);
  }
  return prints;
}

/** Returns the keys of resources with new or changed drift. */
export const otherThan = (before: Fingerprints, now: Fingerprints): string[] =>
  Object.keys(now).filter((key) => before[key] !== now[key]);
