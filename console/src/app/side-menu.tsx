import { Dialog as Radix } from 'radix-ui';
import type { ReactNode } from 'react';
import { useReturnedFocus } from '../parts/dialog/use-returned-focus.ts';

/** The navigation in a narrow window, shown over the page. */
export default function SideMenu({
  onClose,
  children,
}: {
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const returnFocus = useReturnedFocus(true);
  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[oklch(0.15_0.02_260/45%)]" />
        <Radix.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="fixed inset-y-0 left-0 z-50 flex w-64 flex-col border-r bg-surface shadow-float outline-none"
        >
          <Radix.Title className="sr-only">Menu</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
