import { useBlocker } from '@tanstack/react-router';
import { useRef } from 'react';
import { Confirm } from '../parts/dialog/dialog.tsx';

/**
 * Asks for confirmation before navigation discards unsaved changes. By default, switching tabs within the page needs no
 * confirmation.
 * @param what the dialog's text
 * @param withTab whether to ask when the operator switches tabs
 * @returns the dialog to render, and a function that allows the next navigation; call it after saving or removing
 */
export function useLeaveGuard(
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
        action="Discard and leave"
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
