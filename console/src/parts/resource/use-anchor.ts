import { useLocation, useNavigate } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { type Anchor, anchorText, readAnchor } from './anchor.ts';

/**
 * The place in the results of an operation that the address names.
 * @returns it, and what goes to another one, or to none
 */
export function useAnchor(): [Anchor | null, (anchor: Anchor | null) => void] {
  // As it stands in the address: the router's own is decoded already, and cannot be taken apart any more.
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
