import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { deleteDraft, readDraft, writeDraft } from '../api/drafts/draft-store.ts';
import { usePerson } from '../api/sign-in/use-session.ts';
import { notify } from '../parts/dialog/toast.tsx';

/** Keys of the drafts that this page wrote. They are restored only after a reload, not when a form opens again. */
const written = new Set<string>();

/** Delay between the last change and storing the draft. */
const settleMs = 200;

interface StoredDraft<T> {
  /** Identifies this draft among the operator's drafts. */
  readonly name: string;
  /** The unsaved input; null if there is none, which deletes the stored draft. Must not contain secret values. */
  readonly draft: T | null;
  /** Reports whether a stored value is a draft that this version can use. */
  readonly isDraft: (stored: unknown) => stored is T;
  /** Called with a draft that was stored before a reload. */
  readonly restore: (stored: T) => void;
}

/**
 * Keeps unsaved input across a reload or a crash of the tab. Deletes it when the operator leaves the page, which asks
 * for confirmation first.
 */
export function useStoredDraft<T>({ name, draft, isDraft, restore }: StoredDraft<T>): void {
  const { operator_id } = usePerson();
  const key = `${operator_id} ${name}`;
  const [readKey, setReadKey] = useState<string | null>(null);
  const isRead = readKey === key;
  const wasRead = useRef(false);
  const onRead = useEffectEvent((stored: unknown) => {
    wasRead.current = true;
    setReadKey(key);
    if (draft !== null || written.has(key) || !isDraft(stored)) return;
    restore(stored);
    notify('Restored your unsaved changes.');
  });
  useEffect(() => {
    let isGone = false;
    void readDraft(key).then((stored) => {
      if (!isGone) onRead(stored);
    });
    return () => {
      isGone = true;
      if (wasRead.current) void deleteDraft(key);
      wasRead.current = false;
    };
  }, [key]);
  useEffect(() => {
    if (!isRead) return;
    const timer = window.setTimeout(() => {
      written.add(key);
      void (draft === null ? deleteDraft(key) : writeDraft(key, draft));
    }, settleMs);
    return () => window.clearTimeout(timer);
  }, [key, draft, isRead]);
}
