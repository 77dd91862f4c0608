import { createHash } from 'node:crypto';
import type { ResourceResult } from '@muster/protocol';
import { keyOf } from './believed-state.ts';

/** Of each resource that deviates, by key, what tells this deviation from another one. */
export type Fingerprints = Readonly<Record<string, string>>;

/** A value that is hidden counts as it is shown: that it has changed once more cannot be told. */
function fingerprintOf(
  { module, type, identity, action, status, changes, diff }: ResourceResult,
  before: string,
): string {
  const fields = changes
    .map(({ field, from, to }) => [field, from, to])
    .sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1));
  const said = JSON.stringify([before, module, type, identity, action, status, fields, diff]);
  return createHash('sha256').update(said).digest('hex').slice(0, 32);
}

export function fingerprintsOf(results: readonly ResourceResult[]): Fingerprints {
  const prints: Record<string, string> = {};
  for (const result of results) {
    const key = keyOf(result.type, result.identity);
    prints[key] = fingerprintOf(result, prints[key] ?? '');
  }
  return prints;
}

/** The keys of what deviates otherwise than it did before, or did not. */
export const otherThan = (before: Fingerprints, now: Fingerprints): string[] =>
  Object.keys(now).filter((key) => before[key] !== now[key]);
