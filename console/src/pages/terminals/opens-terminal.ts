import { useLocation } from '@tanstack/react-router';

/**
 * Navigation state that makes the page for a new terminal open it immediately, in the default shell. Not a URL
 * parameter, so that a link on another site cannot open a terminal.
 */
export const opensTerminal = { opensTerminal: true } as object;

/** Reports whether the operator came to this page to open a terminal immediately. */
export const useOpensTerminal = (): boolean =>
  useLocation({ select: ({ state }) => (state as { opensTerminal?: true }).opensTerminal === true });
