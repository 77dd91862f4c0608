import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { destinations } from './navigation.ts';

/** Time limit in milliseconds for the second key of a sequence such as `g a`. */
const sequenceMs = 1_200;

/** Reports whether the target handles keys itself, as form fields, the editor, and the terminal do. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest('input,textarea,select,[role=textbox],.xterm,.cm-editor') !== null;
}

const isDialogOpen = (): boolean => document.querySelector('[role=dialog],[role=alertdialog],[role=menu]') !== null;

/** The `/` key focuses the first matching element on the page. */
const searchFieldSelector = '[data-search]';

/**
 * Moves the focus between a search field and the rows of the page's table: Down and Enter go to the first row, and Up
 * on the first row returns to the field. Enter does not open the row, because the rows may not be filtered yet.
 * @returns whether the key moved the focus
 */
function moveBetweenSearchAndRows({ key, target }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isSearch = target.matches(searchFieldSelector);
  let next: HTMLElement | null = null;
  if (isSearch && (key === 'ArrowDown' || key === 'Enter'))
    next = document.querySelector<HTMLElement>('#content [role=grid] [data-index="0"]') ?? tabStopRow();
  else if (!isSearch && key === 'ArrowUp' && target.dataset.index === '0')
    next = document.querySelector<HTMLElement>(searchFieldSelector);
  next?.focus();
  return next !== null;
}

/** Returns the row that Tab focuses. The first row may not be in the page, because it may be scrolled out of view. */
const tabStopRow = () => document.querySelector<HTMLElement>('#content [role=grid] [data-index][tabindex="0"]');

export interface ShortcutActions {
  readonly openPalette: () => void;
  readonly openHelp: () => void;
}

/** Handles the keyboard shortcuts that work on every page. */
export function useShortcuts({ openPalette, openHelp }: ShortcutActions): void {
  const navigate = useNavigate();
  useEffect(() => {
    let sequenceStartedAt = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k' && !event.altKey && !event.shiftKey) {
        const inTerminal = event.target instanceof HTMLElement && event.target.closest('.xterm') !== null;
        // Navigating away would discard the input in an open dialog.
        if (inTerminal || isDialogOpen()) return;
        event.preventDefault();
        openPalette();
        return;
      }
      const hasModifier = event.metaKey || event.ctrlKey || event.altKey;
      if (hasModifier || isDialogOpen()) return;
      if (!event.shiftKey && !event.defaultPrevented && moveBetweenSearchAndRows(event)) return event.preventDefault();
      if (event.defaultPrevented || isTyping(event.target)) return;
      if (event.timeStamp - sequenceStartedAt < sequenceMs) {
        sequenceStartedAt = Number.NEGATIVE_INFINITY;
        const destination = destinations.find(({ key }) => key === event.key);
        if (destination !== undefined) {
          event.preventDefault();
          void navigate({ to: destination.path as '/' });
        }
        return;
      }
      if (event.key === 'g') sequenceStartedAt = event.timeStamp;
      else if (event.key === '?') {
        event.preventDefault();
        openHelp();
      } else if (event.key === '/') {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>(searchFieldSelector);
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
