import type { Operation } from '@muster/protocol/http';

/** Maximum characters of a diff that is certainly complete. The agent may have truncated a longer diff. */
const maxCompleteDiff = 60_000;

/** Drops the content hash if a complete diff shows the content, because the hash differs with every agent name in it. */
const comparedChanges = ({ changes, diff }: Operation['resources'][number]) =>
  diff === null || diff === '' || diff.length > maxCompleteDiff
    ? changes
    : changes.filter(({ field }) => field !== 'content');

/** Replacement for the agent's name in compared texts. */
export const ownName = '\u241fagent\u241f';

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * The text by which operations of several agents are compared: changed resources without durations, with the agent's
 * name replaced by {@link ownName}. Files that differ only in the name of their machine compare as equal.
 * @param name null if the agent has none
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
