import type { ReactNode } from 'react';
import { Button } from '../button.tsx';
import { Dialog } from '../dialog/dialog.tsx';

/** The filters of a list on a phone, in a sheet over the list. The list updates with each choice. */
export const FilterSheet = ({
  onClear,
  onClose,
  children,
}: {
  /** Removes the filters. Undefined if none is set. */
  readonly onClear: (() => void) | undefined;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) => (
  <Dialog
    open
    onOpenChange={(open) => !open && onClose()}
    title="Filters"
    footer={
      <>
        <Button disabled={onClear === undefined} onClick={onClear}>
          Clear filters
        </Button>
        <Button look="primary" onClick={onClose}>
          Show list
        </Button>
      </>
    }
  >
    <div className="space-y-3">{children}</div>
  </Dialog>
);
