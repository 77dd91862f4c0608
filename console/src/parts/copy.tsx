import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';
import { IconButton } from './button.tsx';
import { visibleText } from './text.tsx';

export function CopyButton({
  text,
  label = 'Copy',
  className,
  onCopy,
}: {
  readonly text: string;
  readonly label?: string;
  readonly className?: string;
  readonly onCopy?: (() => void) | undefined;
}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    onCopy?.();
    window.setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <IconButton
      small
      {...(className === undefined ? {} : { className })}
      label={copied ? 'Copied' : label}
      onClick={() => void copy()}
      icon={copied ? <Check className="size-3.5 text-good" /> : <CopyIcon className="size-3.5" />}
    />
  );
}

/** The last characters of an id, with the whole id as tooltip and a copy button. */
export function Id({ id, length = 8 }: { readonly id: string; readonly length?: number }) {
  return (
    <span className="inline-flex items-center">
      <code className="font-mono text-xs" title={id}>
        {visibleText(id.length > length ? `…${id.slice(-length)}` : id)}
      </code>
      {/* The margins keep the button from making the line taller, which would move the id below its neighbors. */}
      <CopyButton text={id} label={`Copy ${id}`} className="-my-1.5" />
    </span>
  );
}

/** A command or a line of code with a copy button. */
export function Code({ text, onCopy }: { readonly text: string; readonly onCopy?: () => void }) {
  return (
    <div className="flex items-start gap-2 rounded-md border bg-raised py-1.5 pr-1.5 pl-3">
      <code className="min-w-0 flex-1 self-center overflow-x-auto whitespace-pre-wrap font-mono [overflow-wrap:anywhere] text-xs">
        {visibleText(text)}
      </code>
      <CopyButton text={text} onCopy={onCopy} />
    </div>
  );
}
