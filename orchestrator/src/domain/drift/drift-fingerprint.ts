import { createHash } from 'node:crypto';
import type { ResourceResult } from '@muster/protocol';

/** Of each resource that deviates, by key, what tells this deviation from another one. */
export type Fingerprints = Readonly<Record<string, string>>;

const digestOf = (said: string): string => createHash('sha256').update(said).digest('hex').slice(0, 32);

/** A value that is hidden counts as it is shown: that it has changed once more cannot be told. */
export function fingerprintOf({ module, type, identity, action, status, changes, diff }: ResourceResult): string {
  const fields = changes
    .map(({ field, from, to }) => [field, from, to])
    .sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1));
  return digestOf(JSON.stringify(['', module, type, identity, action, status, fields, diff]));
}

/** By key; several of one resource count together, in their order. */
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

/** The keys of what deviates otherwise than it did before, or did not. */
export const otherThan = (before: Fingerprints, now: Fingerprints): string[] =>
  Object.keys(now).filter((key) => before[key] !== now[key]);
