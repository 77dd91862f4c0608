import type { AnswerOf, getModule } from '@muster/protocol/http';

/** What becomes of a text that somebody writes while others may store revisions of the same module. Pure. */

export type Stored = AnswerOf<typeof getModule>;

export interface Draft {
  /** What it began from; null: a module that is not there yet. */
  readonly base: Stored | null;
  readonly text: string;
}

/**
 * - `unchanged`: as it is stored;
 * - `edited`: there is something to save;
 * - `behind`: nothing was typed, and there is a newer revision: it can be taken without asking;
 * - `conflict`: something was typed, and somebody else has stored something else meanwhile.
 */
export type Standing = 'unchanged' | 'edited' | 'behind' | 'conflict';

/** @param latest what is stored now; null: nothing, or not known */
export function standing({ base, text }: Draft, latest: Stored | null): Standing {
  const isNewer = latest !== null && (base === null || latest.revision > base.revision);
  if (base === null && !isNewer) return text.trim() === '' ? 'unchanged' : 'edited';
  const isTyped = base === null ? text.trim() !== '' : text !== base.content;
  if (!isNewer) return isTyped ? 'edited' : 'unchanged';
  // Whoever else stored the very same has done it already.
  return !isTyped || text === latest.content ? 'behind' : 'conflict';
}

/** The draft, brought to what is stored where that loses nothing. */
export const followed = (draft: Draft, latest: Stored | null): Draft =>
  latest !== null && standing(draft, latest) === 'behind' ? { base: latest, text: latest.content } : draft;

/** Of a conflict: what was typed is kept, as a change of what is stored now. */
export const keptMine = (draft: Draft, latest: Stored): Draft => ({ base: latest, text: draft.text });

/** Of a conflict, or of a change that is given up: what is stored now. */
export const takenStored = (latest: Stored): Draft => ({ base: latest, text: latest.content });
