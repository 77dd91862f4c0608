import { useState } from 'react';
import { type Draft, draftOf, draftStatus, fastForward, rebase, type Stored } from './draft.ts';

/** Returns a stored module's draft. Follows newer revisions as long as no changes are lost. */
export function useModuleDraft(latest: Stored) {
  const [stored, setDraft] = useState<Draft>(() => draftOf(latest));
  const draft = fastForward(stored, latest);
  if (draft !== stored) setDraft(draft);
  const status = draftStatus(draft, latest);
  return {
    draft,
    hasConflict: status === 'conflict',
    isEdited: status === 'edited' || status === 'conflict',
    edit: (text: string) => setDraft((before) => ({ ...before, text })),
    /** Replaces the draft with a stored revision. */
    reset: (to: Stored) => setDraft(draftOf(to)),
    /** Resolves a conflict in favor of the draft. */
    keep: () => setDraft(rebase(draft, latest)),
  };
}

export type ModuleDraft = ReturnType<typeof useModuleDraft>;
