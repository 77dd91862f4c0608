import type { Operation } from '@muster/protocol/http';

/** Maximum diff length that guarantees a complete diff, in characters. The agent may have truncated a longer one. */
const maxCompleteDiff = 60_000;

/**
 * Omits the content hash if a complete diff shows the content, because the agent name in the content changes the hash.
 */
const comparedChanges = ({ changes, diff }: Operation['resources'][number]) =>
  diff === null || diff === '' || diff.length > maxCompleteDiff
    ? changes
    : changes.filter(({ field }) => field !== 'content');

/** Placeholder for the agent's name in compared values. */
export const ownName = '\u241fagent\u241f';

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * Returns a string to group agents whose operations made the same changes: the changed resources without durations,
 * with {@link ownName} in place of the agent's name. Files that differ only in the machine name are equal.
 * @param name null if the agent has no name
 */
export function likenessOf({ status, error, resources }: Operation, name: string | null): string {
  const reported = resources.filter((result) => result.status !== 'unchanged' || result.message !== null);
  const text = JSON.stringify([
    status,
    reported.length === 0 ? error : null,
    reported.map((result) => ({ ...result, duration_ms: 0, changes: comparedChanges(result) })),
  ]);
  return name === null ? text : text.replace(new RegExp(`(?<![\\w-])${escaped(name)}(?![\\w-])`, 'gu'), ownName);
}
