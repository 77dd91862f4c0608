import type { AnswerOf, getModule } from '@muster/protocol/http';

/** Tracks a module's draft while other operators may save revisions. */

export type Stored = AnswerOf<typeof getModule>;

export interface Draft {
  /** The revision that the draft is based on. */
  readonly base: Stored;
  readonly text: string;
  /** The revision whose files are restored with the text; absent for those of `base`. */
  readonly filesOf?: number;
}

/** Returns the revision that provides the draft's files. */
export const filesOf = ({ base, filesOf }: Draft): number => filesOf ?? base.revision;

/**
 * - `unchanged`: The draft equals the stored text.
 * - `edited`: The draft has unsaved changes.
 * - `behind`: A newer revision exists and can replace the draft without losing changes.
 * - `conflict`: The draft has unsaved changes, and a newer revision has a different text.
 */
export type DraftStatus = 'unchanged' | 'edited' | 'behind' | 'conflict';

/** @param latest the stored revision; null if none exists or it is not loaded */
export function draftStatus({ base, text, filesOf }: Draft, latest: Stored | null): DraftStatus {
  const isNewer = latest !== null && latest.revision > base.revision;
  const isTyped = filesOf !== undefined || text !== base.content;
  if (!isNewer) return isTyped ? 'edited' : 'unchanged';
  // If another operator saved the same text, there is no conflict.
  return !isTyped || (text === latest.content && filesOf === undefined) ? 'behind' : 'conflict';
}

/** Replaces the draft with the stored revision if that loses no changes. */
export const fastForward = (draft: Draft, latest: Stored | null): Draft =>
  latest !== null && draftStatus(draft, latest) === 'behind' ? { base: latest, text: latest.content } : draft;

/** Bases the draft on the stored revision and keeps its text. */
export const rebase = (draft: Draft, latest: Stored): Draft => ({ ...draft, base: latest });

/** Reports whether a value from the browser's storage is a draft of a stored module. */
export function isDraft(value: unknown): value is Draft {
  const { base, text } = (value ?? {}) as Partial<Draft>;
  return typeof text === 'string' && typeof base?.content === 'string' && typeof base.revision === 'number';
}

export const draftOf = (latest: Stored): Draft => ({ base: latest, text: latest.content });
