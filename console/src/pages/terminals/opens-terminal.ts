import { useLocation } from '@tanstack/react-router';

/**
 * Navigation state with which the page of a new terminal opens it at once, in the default shell. Not a URL parameter, so
 * that a link from elsewhere cannot open a terminal.
 */
export const opensTerminal = { opensTerminal: true } as object;

/** Reports whether the operator came to this page to open a terminal at once. */
export const useOpensTerminal = (): boolean =>
  useLocation({ select: ({ state }) => (state as { opensTerminal?: true }).opensTerminal === true });
