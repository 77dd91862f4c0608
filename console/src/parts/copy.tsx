import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';
import { Button, type ButtonLook, IconButton } from './button.tsx';
import { classNames } from './class-names.ts';
import { visibleText } from './text.tsx';

/**
 * Copies a text that a request returns. Call it in the handler of a click, because Safari allows a copy only if it starts
 * there.
 * @returns whether the text was copied; false if the request failed or the browser does not allow it
 */
export async function copyPromised(text: Promise<string>): Promise<boolean> {
  try {
    if (typeof ClipboardItem === 'undefined') await navigator.clipboard.writeText(await text);
    else {
      const blob = text.then((given) => new Blob([given], { type: 'text/plain' }));
      await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })]);
    }
    return true;
  } catch {
    return false;
  }
}

export function CopyButton({
  text,
  label = 'Copy',
  isLabeled = false,
  look,
  className,
}: {
  readonly text: string;
  readonly label?: string;
  /** Whether the button shows its label. */
  readonly isLabeled?: boolean;
  readonly look?: ButtonLook | undefined;
  readonly className?: string;
}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1_500);
  };
  const shared = {
    small: true,
    ...(look === undefined ? {} : { look }),
    ...(className === undefined ? {} : { className }),
    onClick: () => void copy(),
    icon: copied ? (
      <Check aria-hidden="true" className={classNames('size-3.5', look !== 'primary' && 'text-good')} />
    ) : (
      <CopyIcon aria-hidden="true" className="size-3.5" />
    ),
  } as const;
  const shown = copied ? 'Copied' : label;
  return isLabeled ? <Button {...shared}>{shown}</Button> : <IconButton {...shared} label={shown} />;
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

/** Matches option names, because a browser would break a line after their hyphens. */
const optionNames = /(?<=\s)(--?[a-z-]{1,30})(?=\s|$)/;

/** A command or a line of code with a copy button. */
export function Code({
  text,
  look,
}: {
  readonly text: string;
  /** The look of the button; `primary` if copying is the main action. */
  readonly look?: ButtonLook;
}) {
  return (
    <div className="flex items-start gap-2 rounded-md border bg-raised py-1.5 pr-1.5 pl-3 max-sm:flex-col max-sm:items-stretch max-sm:px-3 max-sm:py-2.5">
      <code className="min-w-0 flex-1 overflow-x-auto whitespace-pre-wrap font-mono [overflow-wrap:anywhere] text-xs sm:self-center">
        {visibleText(text)
          .split(optionNames)
          .map((part, at) =>
            at % 2 === 0 ? (
              part
            ) : (
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text
              <span key={at} className="whitespace-nowrap">
                {part}
              </span>
            ),
          )}
      </code>
      <CopyButton isLabeled {...{ text, look }} />
    </div>
  );
}
