import { useLocation } from '@tanstack/react-router';

/**
 * Returns the navigation state that makes the page of an agent or an assignment open the apply dialog. Each returned state is different,
 * because the router ignores a navigation that changes nothing. The state is not a URL parameter, so that a link on
 * another site cannot start a plan.
 */
export const opensApply = (): object => ({ opensApply: Date.now() });

/**
 * Returns the time of the navigation that requested the dialog, in Unix milliseconds; null if the last navigation did
 * not request it.
 */
export const useOpensApply = (): number | null =>
  useLocation({ select: ({ state }) => (state as { opensApply?: number }).opensApply ?? null });
