import { useLocation } from '@tanstack/react-router';

/**
 * Returns the navigation state with which the page of an agent opens the dialog to apply. Each one differs, because the
 * router ignores a navigation that changes nothing. Not a URL parameter, so that a link from elsewhere cannot start a plan.
 */
export const opensApply = (): object => ({ opensApply: Date.now() });

/** Returns the time of the navigation that asks for the dialog, in Unix milliseconds; null if the last one did not. */
export const useOpensApply = (): number | null =>
  useLocation({ select: ({ state }) => (state as { opensApply?: number }).opensApply ?? null });
