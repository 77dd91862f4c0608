import { useRef } from 'react';

/**
 * Returns the element to focus after a dialog closes; null if there is none. If a menu item opened the dialog, the menu
 * is already closed, so this is the menu's trigger.
 */
function openerOf(focused: Element | null): HTMLElement | null {
  const trigger = focused?.closest('[role=menu]')?.getAttribute('aria-labelledby');
  const opener = trigger ? document.getElementById(trigger) : focused;
  return opener instanceof HTMLElement && opener !== document.body ? opener : null;
}

/** Reports whether an element can take the focus: it is in the page, visible, and enabled. */
const canFocus = (element: HTMLElement | null): element is HTMLElement =>
  element?.isConnected === true && element.getClientRects().length > 0 && !element.matches(':disabled');

/**
 * Records which element opened a dialog and returns the focus to it when the dialog closes, or to the page's content if
 * the element was removed. Radix does this only for its own triggers, which these dialogs do not use.
 * @returns the handler for the dialog's content
 */
export function useReturnedFocus(open: boolean): (event: Event) => void {
  const opener = useRef<HTMLElement | null>(null);
  const wasOpen = useRef(false);
  // Read during the render, because a field with `autoFocus` takes the focus before any effect runs.
  if (open && !wasOpen.current) opener.current = openerOf(document.activeElement);
  wasOpen.current = open;
  return (event) => {
    event.preventDefault();
    // Another element has taken the focus, such as the page after a navigation.
    const { activeElement } = document;
    if (activeElement !== null && activeElement !== document.body) return;
    const target = canFocus(opener.current) ? opener.current : document.getElementById('content');
    target?.focus({ preventScroll: true });
  };
}
