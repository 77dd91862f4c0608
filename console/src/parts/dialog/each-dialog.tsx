import { type ReactNode, useRef, useState } from 'react';
import { Button } from '../button.tsx';
import { messageOf } from '../states.tsx';
import { Text } from '../text.tsx';
import { Dialog } from './dialog.tsx';
import { eachOf } from './each-of.ts';

export interface Each {
  readonly id: string;
  readonly name: string;
}

/** So many requests are under way at one time. */
const atOnce = 6;

/** Does the same with each of many, shows how far it is, and tells every failure by its name. */
export function EachDialog<Item extends Each>({
  open,
  onOpenChange,
  title,
  description,
  action,
  done,
  items,
  act,
  ready = true,
  danger = false,
  wide = false,
  children,
  onDone,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly description?: ReactNode;
  /** What the button says: `Approve 50`. */
  readonly action: string;
  /** What became of those with which it went well: `approved`. */
  readonly done: string;
  readonly items: readonly Item[];
  readonly act: (item: Item) => Promise<unknown>;
  /** False while what `children` ask for is not enough. */
  readonly ready?: boolean;
  readonly danger?: boolean;
  readonly wide?: boolean;
  readonly children?: ReactNode;
  /** Ids of those with which it went well, when all have been tried. */
  readonly onDone?: (ids: readonly string[]) => void;
}) {
  const [at, setAt] = useState<{ count: number; of: number } | null>(null);
  const [failures, setFailures] = useState<readonly { item: Item; error: unknown }[] | null>(null);
  const succeeded = useRef<string[]>([]);
  const start = async (those: readonly Item[]) => {
    setFailures(null);
    setAt({ count: 0, of: those.length });
    const failed = await eachOf(
      those,
      atOnce,
      async (item) => {
        await act(item);
        succeeded.current.push(item.id);
      },
      (count) => setAt({ count, of: those.length }),
    );
    setAt(null);
    setFailures(failed);
    onDone?.(succeeded.current);
    if (failed.length === 0) onOpenChange(false);
  };
  const busy = at !== null;
  const failed = failures !== null && failures.length > 0;
  return (
    <Dialog
      open={open}
      // What was begun goes on; the dialog stays until it is known how it ended.
      onOpenChange={(next) => !busy && onOpenChange(next)}
      title={title}
      wide={wide}
      {...(description === undefined ? {} : { description })}
      footer={
        failed ? (
          <>
            <Button onClick={() => void start(failures.map(({ item }) => item))}>Try these again</Button>
            <Button look="primary" onClick={() => onOpenChange(false)}>
              Close
            </Button>
          </>
        ) : (
          <>
            <Button disabled={busy} onClick={() => onOpenChange(false)}>
              Cancel
            </Button>
            <Button
              look={danger ? 'danger' : 'primary'}
              busy={busy}
              disabled={!ready || items.length === 0}
              onClick={() => void start(items)}
            >
              {action}
            </Button>
          </>
        )
      }
    >
      <div role="status" className="empty:hidden">
        {busy && (
          <div className="space-y-1.5 pb-4">
            <div className="tabular text-sm">
              {at.count} of {at.of} {done}
            </div>
            <progress
              aria-label={title}
              max={at.of}
              value={at.count}
              className="block h-1.5 w-full overflow-hidden rounded-full accent-[var(--accent)]"
            />
          </div>
        )}
      </div>
      {failed ? (
        <div role="alert" className="space-y-2 text-sm">
          <p>
            {succeeded.current.length} {done}. {failures.length} {failures.length === 1 ? 'was' : 'were'} not:
          </p>
          <ul className="divide-y rounded-md border">
            {failures.map(({ item, error }) => (
              <li key={item.id} className="px-3 py-2">
                <div className="font-medium">
                  <Text text={item.name} maxLength={100} />
                </div>
                <div className="text-bad text-xs">
                  <Text text={messageOf(error)} />
                </div>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        children
      )}
    </Dialog>
  );
}
