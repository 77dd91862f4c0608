import { useMemo, useState } from 'react';
import { useFields } from '../parts/form/use-fields.ts';
import { isLike } from './draft-shape.ts';
import { useStoredDraft } from './use-stored-draft.ts';

interface DraftForm<T> {
  /** Identifies this draft among the operator's drafts. */
  readonly name: string;
  readonly initial: () => T;
  /** Returns the input to store, without secret values; by default, all input. */
  readonly keep?: (fields: T) => Partial<T>;
  /** Returns the fields after merging a stored draft; by default, the draft's fields replace those of the form. */
  readonly merge?: (fields: T, stored: Partial<T>) => T;
  /** Whether the input is saved, so that no draft is needed. */
  readonly isSaved?: boolean;
}

const all = <T>(fields: T): Partial<T> => fields;

/**
 * Returns the fields of a form and a function that changes some of them. After a reload or a crash of the tab, the form
 * continues with the unsaved input. Closing the form discards it.
 */
export function useDraftFields<T extends object>({
  name,
  initial,
  keep = all,
  merge = (fields, stored) => ({ ...fields, ...stored }),
  isSaved = false,
}: DraftForm<T>): [T, (part: Partial<T>) => void] {
  const [start] = useState(initial);
  const [fields, change] = useFields<T>(start);
  // As text, so that the draft changes only if the input to store changes.
  const text = JSON.stringify(keep(fields));
  const draft = useMemo(() => JSON.parse(text) as Partial<T>, [text]);
  useStoredDraft<Partial<T>>({
    name,
    draft: isSaved || text === JSON.stringify(keep(start)) ? null : draft,
    isDraft: (stored): stored is Partial<T> => isLike(keep(start), stored),
    restore: (stored) => change(merge(start, stored)),
  });
  return [fields, change];
}
