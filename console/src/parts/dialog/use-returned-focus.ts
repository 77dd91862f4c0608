import { useRef } from 'react';

/**
 * Returns the element to focus after a dialog closes. A menu has closed already, so its trigger takes the place of
 * its items.
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
 * Remembers which element opened a dialog, and returns the focus to it when the dialog closes; to the page's content if
 * the element was removed. The dialogs of Radix do this only for their own trigger, which dialogs here do not have.
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
    // Something else has taken the focus, such as the page after a navigation.
    const { activeElement } = document;
    if (activeElement !== null && activeElement !== document.body) return;
    const target = canFocus(opener.current) ? opener.current : document.getElementById('content');
    target?.focus({ preventScroll: true });
  };
}
