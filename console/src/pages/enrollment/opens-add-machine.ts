import { useLocation } from '@tanstack/react-router';

/**
 * Returns the navigation state that makes the agents page open the dialog that adds a machine. Each returned state is
 * different, because the router ignores a navigation that changes nothing. The state is not a URL parameter, so that a link
 * on another site cannot create a token.
 */
export const opensAddMachine = (): object => ({ opensAddMachine: Date.now() });

/**
 * Returns the time of the navigation that requested the dialog, in Unix milliseconds; null if the last navigation did
 * not request it.
 */
export const useOpensAddMachine = (): number | null =>
  useLocation({ select: ({ state }) => (state as { opensAddMachine?: number }).opensAddMachine ?? null });
