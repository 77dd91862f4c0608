import { useLocation, useNavigate } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { type Anchor, anchorText, readAnchor } from './anchor.ts';

/** Returns the anchor in the URL fragment, or null, and a function that sets it. */
export function useAnchor(): [Anchor | null, (anchor: Anchor | null) => void] {
  // Reads `href`, because the router's `hash` is already decoded and its separators are ambiguous.
  const text = useLocation({ select: ({ href }) => href.split('#')[1] ?? '' });
  const anchor = useMemo(() => readAnchor(text), [text]);
  const navigate = useNavigate();
  const go = useCallback(
    (to: Anchor | null) =>
      void navigate({
        to: '.',
        search: ((search: unknown) => search) as never,
        ...(to === null ? {} : { hash: anchorText(to) }),
        hashScrollIntoView: false,
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  return [anchor, go];
}
