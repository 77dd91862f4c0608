import type { AnswerOf, getModule } from '@muster/protocol/http';

/** The draft of a module, while other operators may save revisions of it. Pure. */

export type Stored = AnswerOf<typeof getModule>;

export interface Draft {
  /** The revision that the draft is based on; null for a new module. */
  readonly base: Stored | null;
  readonly text: string;
}

/**
 * - `unchanged`: equals the stored text;
 * - `edited`: has changes to save;
 * - `behind`: a newer revision exists and can be taken without losing changes;
 * - `conflict`: has changes, and a newer revision has another text.
 */
export type DraftStatus = 'unchanged' | 'edited' | 'behind' | 'conflict';

/** @param latest the stored revision; null if there is none or it is unknown */
export function draftStatus({ base, text }: Draft, latest: Stored | null): DraftStatus {
  const isNewer = latest !== null && (base === null || latest.revision > base.revision);
  if (base === null && !isNewer) return text.trim() === '' ? 'unchanged' : 'edited';
  const isTyped = base === null ? text.trim() !== '' : text !== base.content;
  if (!isNewer) return isTyped ? 'edited' : 'unchanged';
  // Another operator may have saved the same text.
  return !isTyped || text === latest.content ? 'behind' : 'conflict';
}

/** Moves the draft to the stored revision if that loses no changes. */
export const fastForward = (draft: Draft, latest: Stored | null): Draft =>
  latest !== null && draftStatus(draft, latest) === 'behind' ? { base: latest, text: latest.content } : draft;

/** Keeps the text of the draft as a change of the stored revision. */
export const rebase = (draft: Draft, latest: Stored): Draft => ({ base: latest, text: draft.text });

/** A draft without changes. */
export const draftOf = (latest: Stored): Draft => ({ base: latest, text: latest.content });
