import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { destinations } from './navigation.ts';

/** Milliseconds in which the second key of `g a` is waited for. */
const sequenceMs = 1_200;

/** Keys belong to what is typed in, to the editor and to the terminal before they are ours. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest('input,textarea,select,[role=textbox],.xterm,.cm-editor') !== null;
}

const isDialogOpen = (): boolean => document.querySelector('[role=dialog],[role=alertdialog],[role=menu]') !== null;

/** The first field for searching on the page: `/` goes there. */
const searchField = '[data-search]';

export interface ShortcutActions {
  readonly openPalette: () => void;
  readonly openHelp: () => void;
}

/** The keys that hold on every page. */
export function useShortcuts({ openPalette, openHelp }: ShortcutActions): void {
  const navigate = useNavigate();
  useEffect(() => {
    let went = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k' && !event.altKey && !event.shiftKey) {
        const inTerminal = event.target instanceof HTMLElement && event.target.closest('.xterm') !== null;
        // Over a dialog it would lead away from what is typed there.
        if (inTerminal || isDialogOpen()) return;
        event.preventDefault();
        openPalette();
        return;
      }
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      if (isDialogOpen()) return;
      if (event.timeStamp - went < sequenceMs) {
        went = Number.NEGATIVE_INFINITY;
        const destination = destinations.find(({ key }) => key === event.key);
        if (destination !== undefined) {
          event.preventDefault();
          void navigate({ to: destination.path as '/' });
        }
        return;
      }
      if (event.key === 'g') went = event.timeStamp;
      else if (event.key === '?') {
        event.preventDefault();
        openHelp();
      } else if (event.key === '/') {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>(searchField);
        if (field === null) openPalette();
        else {
          field.focus();
          field.select?.();
        }
      }
    };
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  }, [navigate, openPalette, openHelp]);
}
