import { useBlocker } from '@tanstack/react-router';
import { useRef } from 'react';
import { Confirm } from '../parts/dialog/dialog.tsx';

/**
 * Asks before a page is left that holds something unsaved; another tab of the same page is no leaving.
 * @param withTab it is: what is unsaved goes with the tab
 * @returns what is drawn for it, and how to go without being asked: after saving, after removing
 */
export function useLeaving(
  unsaved: boolean,
  what: string,
  withTab = false,
): { guard: React.ReactNode; allow: () => void } {
  const allowed = useRef(false);
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      unsaved &&
      !allowed.current &&
      (current.pathname !== next.pathname || (withTab && tabOf(current.search) !== tabOf(next.search))),
    enableBeforeUnload: () => unsaved && !allowed.current,
    withResolver: true,
  });
  return {
    guard: (
      <Confirm
        open={blocker.status === 'blocked'}
        onOpenChange={(open) => {
          if (!open && blocker.status === 'blocked') blocker.reset();
        }}
        title="Leave without saving?"
        action="Leave, and drop it"
        onConfirm={async () => blocker.proceed?.()}
      >
        {what}
      </Confirm>
    ),
    allow: () => {
      allowed.current = true;
    },
  };
}

const tabOf = (search: unknown): unknown => (search as { tab?: unknown }).tab;
