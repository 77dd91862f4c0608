import { type FormEvent, type ReactNode, useId } from 'react';
import { Button } from '../button.tsx';
import { Problem } from '../states.tsx';
import { Dialog } from './dialog.tsx';

/** A dialog with one form. Shows the error of the last attempt in the form. */
export function FormDialog({
  action,
  cancel = 'Cancel',
  request = { isPending: false, error: null },
  invalid = false,
  onSubmit,
  onClose,
  children,
  ...dialog
}: {
  readonly title: string;
  readonly description?: ReactNode;
  readonly wide?: boolean;
  /** Whether Escape and clicks outside the dialog are ignored. */
  readonly persistent?: boolean;
  /** The submit button's label: a verb, not “OK”. */
  readonly action: string;
  readonly cancel?: string;
  /** State of the mutation that is started when the form is submitted. */
  readonly request?: { readonly isPending: boolean; readonly error: unknown };
  /** Whether the input is invalid. Disables the submit button. */
  readonly invalid?: boolean;
  readonly onSubmit: (event: FormEvent<HTMLFormElement>) => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const form = useId();
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      {...dialog}
      footer={
        <>
          <Button onClick={onClose}>{cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={request.isPending} disabled={invalid}>
            {action}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="space-y-4"
        autoComplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          if (!invalid) onSubmit(event);
        }}
      >
        <Problem error={request.error} />
        {children}
      </form>
    </Dialog>
  );
}
