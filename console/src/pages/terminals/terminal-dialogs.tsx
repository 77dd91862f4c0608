import { closeTerminal } from '../../api/terminals/terminals.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { cutText, visibleText } from '../../parts/text.tsx';
import type { Screen } from '../../terminal/screen.ts';
import type { TerminalQuestion } from './use-live-screen.ts';

/** Asks for confirmation before pasting several lines, or opening a link that the machine printed. */
export function QuestionDialogs({
  question,
  screen,
  onClose,
}: {
  readonly question: TerminalQuestion | null;
  readonly screen: () => Screen | undefined;
  readonly onClose: () => void;
}) {
  const text = question?.text ?? '';
  return (
    <>
      <Confirm
        open={question?.kind === 'paste'}
        onOpenChange={(open) => !open && onClose()}
        title="Paste several lines?"
        action="Paste"
        danger={false}
        onConfirm={async () => {
          screen()?.paste(text);
          window.setTimeout(() => screen()?.focus());
        }}
      >
        <p>A shell may run each line immediately.</p>
        <Preview text={text} />
      </Confirm>
      <Confirm
        open={question?.kind === 'link'}
        onOpenChange={(open) => !open && onClose()}
        title="Open this link?"
        action="Open in a new tab"
        danger={false}
        onConfirm={async () => {
          window.open(text, '_blank', 'noopener,noreferrer');
        }}
      >
        <p>The machine printed this link. It may be unsafe.</p>
        <Preview text={text} />
      </Confirm>
    </>
  );
}

const Preview = ({ text }: { readonly text: string }) => (
  <pre className="mt-2 max-h-48 overflow-auto whitespace-pre-wrap break-all rounded-md border bg-raised p-2 font-mono text-text text-xs">
    {visibleText(cutText(text, 4_000))}
    {text.length > 4_000 && '…'}
  </pre>
);

export function EndDialog({
  session_id,
  open,
  onOpenChange,
}: {
  readonly session_id: string;
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}) {
  return (
    <Confirm
      open={open}
      onOpenChange={onOpenChange}
      title="End this session?"
      action="End session"
      onConfirm={() => closeTerminal(session_id)}
    >
      This ends its shell and all programs in it. The recording is kept.
    </Confirm>
  );
}
