import { useState } from 'react';
import { fileChanges } from '../../../../client/src/file-changes.ts';
import { useStoredDraft } from '../use-stored-draft.ts';
import { type Draft, draftOf, draftStatus, fastForward, isDraft, rebase, type Stored } from './draft.ts';

/**
 * Returns a stored module's draft, which survives a reload. Follows newer revisions as long as no changes are lost.
 */
export function useModuleDraft(latest: Stored) {
  const [stored, setDraft] = useState<Draft>(() => draftOf(latest));
  const draft = fastForward(stored, latest);
  if (draft !== stored) setDraft(draft);
  const status = draftStatus(draft, latest);
  const isEdited = status === 'edited' || status === 'conflict';
  useStoredDraft({ name: `module ${latest.name}`, draft: isEdited ? draft : null, isDraft, restore: setDraft });
  return {
    ...{ draft, isEdited },
    hasConflict: status === 'conflict',
    edit: (text: string) => setDraft((before) => ({ ...before, text })),
    /** Replaces the text and the files with those of an earlier revision. */
    restore: ({ content, revision, files = [] }: Stored) => {
      const differ = fileChanges(files, latest.files ?? []).length > 0;
      setDraft((before) => ({ base: before.base, text: content, ...(differ ? { filesOf: revision } : {}) }));
    },
    /** Replaces the draft with a stored revision. */
    reset: (to: Stored) => setDraft(draftOf(to)),
    /** Resolves a conflict in favor of the draft. */
    keep: () => setDraft(rebase(draft, latest)),
  };
}

export type ModuleDraft = ReturnType<typeof useModuleDraft>;
