import { X } from 'lucide-react';
import { Dialog as Radix, AlertDialog as RadixAlert } from 'radix-ui';
import { type ReactNode, useRef, useState } from 'react';
import { Button, IconButton } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Problem } from '../states.tsx';
import { lineText } from '../text.tsx';
import { useReturnedFocus } from './use-returned-focus.ts';

// The z-index equals that of dialogs, so that the overlay of a second dialog covers the first dialog.
const overlay = 'fixed inset-0 z-50 bg-[oklch(0.15_0.02_260/45%)]';
const sheet =
  'fixed z-50 flex max-h-[92dvh] flex-col border bg-surface shadow-float outline-none inset-x-0 bottom-0 rounded-t-xl sm:inset-auto sm:top-[8vh] sm:left-1/2 sm:max-h-[84vh] sm:-translate-x-1/2 sm:rounded-xl';

// On a phone, the buttons share the width, above the line with which phones go to their home screen.
const footerClasses =
  'flex flex-wrap justify-end gap-2 border-t px-5 py-3 max-sm:px-4 max-sm:pb-[max(0.75rem,env(safe-area-inset-bottom))] max-sm:*:flex-1';

/** A dialog over the page; on phones, a sheet at the bottom. Escape closes it. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  wide = false,
  persistent = false,
  footer,
  children,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly description?: ReactNode;
  readonly wide?: boolean;
  /** Whether Escape and clicks outside the dialog are ignored. */
  readonly persistent?: boolean;
  readonly footer?: ReactNode;
  readonly children?: ReactNode;
}) {
  const typed = useRef(false);
  const returnFocus = useReturnedFocus(open);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className={overlay} />
        <Radix.Content
          className={classNames(sheet, wide ? 'sm:w-[min(60rem,94vw)]' : 'sm:w-[min(32rem,94vw)]')}
          {...(description === undefined ? { 'aria-describedby': undefined } : {})}
          onCloseAutoFocus={returnFocus}
          onOpenAutoFocus={(event) => {
            typed.current = false;
            // Prevents a key that is held down from pressing the first button, which would close the dialog.
            event.preventDefault();
            (event.currentTarget as HTMLElement).focus();
          }}
          onInput={() => {
            typed.current = true;
          }}
          // An accidental click must not discard input.
          onInteractOutside={(event) => (persistent || typed.current) && event.preventDefault()}
          onEscapeKeyDown={(event) => (persistent || hasOpenList(event.target)) && event.preventDefault()}
        >
          <header className="flex items-start gap-3 border-b px-5 py-3 max-sm:px-4 max-sm:py-2">
            <div className="min-w-0 flex-1 max-sm:py-2">
              <Radix.Title className="break-words font-semibold text-base">
                {lineText(title, maxTitleLength)}
              </Radix.Title>
              {description !== undefined && (
                <Radix.Description asChild>
                  <div className="text-muted text-sm">{description}</div>
                </Radix.Description>
              )}
            </div>
            {!persistent && (
              <Radix.Close asChild>
                <IconButton label="Close" small className="sm:-mt-0.5 sm:-mr-1.5" icon={<X className="size-4" />} />
              </Radix.Close>
            )}
          </header>
          {children !== undefined && (
            <div className="min-h-0 flex-1 overflow-y-auto px-5 py-4 max-sm:px-4">{children}</div>
          )}
          {footer !== undefined && <footer className={footerClasses}>{footer}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Maximum number of characters. Titles contain names, which may be long. */
const maxTitleLength = 160;

/** Reports whether the target is a combobox with an open list. Escape closes the list first. */
const hasOpenList = (target: EventTarget | null): boolean =>
  target instanceof Element && target.matches('[role=combobox][aria-expanded=true]');

/** Asks the operator to confirm an action. Stays open and shows the error if the action fails. */
export function Confirm({
  open,
  onOpenChange,
  title,
  children,
  action,
  danger = true,
  ready = true,
  onConfirm,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly children?: ReactNode;
  /** The confirmation button's label: a verb, not “OK”. */
  readonly action: string;
  readonly danger?: boolean;
  /** Whether the action is possible; true by default. If not, `children` explain why. */
  readonly ready?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const returnFocus = useReturnedFocus(open);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onOpenChange(false);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <RadixAlert.Root
      open={open}
      onOpenChange={(next) => {
        // The dialog stays open until the result is known.
        if (busy) return;
        if (!next) setError(null);
        onOpenChange(next);
      }}
    >
      <RadixAlert.Portal>
        <RadixAlert.Overlay className={overlay} />
        <RadixAlert.Content className={classNames(sheet, 'sm:w-[min(32rem,94vw)]')} onCloseAutoFocus={returnFocus}>
          <header className="border-b px-5 py-3 max-sm:px-4">
            <RadixAlert.Title className="break-words font-semibold text-base">
              {lineText(title, maxTitleLength)}
            </RadixAlert.Title>
          </header>
          <div className="min-h-0 flex-1 space-y-3 overflow-y-auto px-5 py-4 max-sm:px-4">
            <RadixAlert.Description asChild>
              <div className="text-sm">{children}</div>
            </RadixAlert.Description>
            <Problem error={error} />
          </div>
          <footer className={footerClasses}>
            <RadixAlert.Cancel asChild>
              <Button>Cancel</Button>
            </RadixAlert.Cancel>
            <Button look={danger ? 'remove' : 'primary'} busy={busy} disabled={!ready} onClick={confirm}>
              {action}
            </Button>
          </footer>
        </RadixAlert.Content>
      </RadixAlert.Portal>
    </RadixAlert.Root>
  );
}
