import { useEffect, useEffectEvent } from 'react';
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
 * Returns a function that saves a module, and calls it on Ctrl-S. If the module cannot be saved, it shows why.
 * @param refusal why the module cannot be saved; null if it can
 */
export function useSave(refusal: string | null, save: () => void): () => void {
  const attempt = () => (refusal === null ? save() : notify(refusal));
  useSaveKey(attempt);
  return attempt;
}
