import { useEffect, useEffectEvent, useState } from 'react';
import { notify } from '../../parts/dialog/toast.tsx';

/** Handles Ctrl-S anywhere on the page. */
function useSaveKey(save: () => void): void {
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's' || event.shiftKey || event.altKey) return;
    // The editor handles Ctrl-S itself and prevents the default action.
    if (!event.defaultPrevented && document.querySelector('[role=dialog],[role=alertdialog]') === null) save();
    event.preventDefault();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKeyDown(event);
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, []);
}

/**
 * Returns the save dialog's state. A button or Ctrl-S opens the dialog, or shows why the module cannot be saved.
 * @param refusal why the module cannot be saved; null if it can
 */
export function useSaveDialog(refusal: string | null, onRefused: () => void = () => {}) {
  const [saving, setSaving] = useState<{ readonly afterSave: (() => void) | undefined } | null>(null);
  /** @param afterSave called after the module is saved */
  const save = (afterSave?: () => void) => {
    if (refusal === null) {
      setSaving({ afterSave });
      return;
    }
    onRefused();
    notify(refusal);
  };
  useSaveKey(save);
  return {
    save,
    isOpen: saving !== null,
    afterSave: saving?.afterSave,
    onOpenChange: (open: boolean) => {
      if (!open) setSaving(null);
    },
  };
}
