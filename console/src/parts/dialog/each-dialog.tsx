import { type ReactNode, useRef, useState } from 'react';
import { Badge } from '../badge.tsx';
import { Button } from '../button.tsx';
import { ProgressBar } from '../progress-bar.tsx';
import { messageOf } from '../states.tsx';
import { Line, Text } from '../text.tsx';
import { Dialog } from './dialog.tsx';
import { eachOf } from './each-of.ts';

export interface Each {
  readonly id: string;
  readonly name: string;
}

const atOnce = 6;

interface Failed<Item> {
  readonly item: Item;
  readonly error: unknown;
}

/**
 * Calls the action for each item and tracks the progress.
 * @param onEnd called with the ids that have succeeded so far, and with the failures
 */
function useEach<Item extends Each>(
  act: (item: Item) => Promise<unknown>,
  onEnd: (ids: readonly string[], failed: readonly Failed<Item>[]) => void,
) {
  const [progress, setProgress] = useState<{ count: number; of: number } | null>(null);
  const [failures, setFailures] = useState<readonly Failed<Item>[]>([]);
  const succeeded = useRef<string[]>([]);
  const start = async (items: readonly Item[]) => {
    setFailures([]);
    setProgress({ count: 0, of: items.length });
    const failed = await eachOf(
      items,
      atOnce,
      async (item) => {
        await act(item);
        succeeded.current.push(item.id);
      },
      (count) => setProgress({ count, of: items.length }),
    );
    setProgress(null);
    setFailures(failed);
    onEnd(succeeded.current, failed);
  };
  return { progress, failures, succeeded: succeeded.current, start };
}

/** Applies one action to many items, shows the progress, and lists the failures. */
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
  /** The confirmation button's label, such as `Approve 50`. The button is disabled if there are no items. */
  readonly action: string;
  /** Past participle of the action, such as `approved`. */
  readonly done: string;
  readonly items: readonly Item[];
  readonly act: (item: Item) => Promise<unknown>;
  /** Whether the input in `children` is complete; true by default. */
  readonly ready?: boolean;
  readonly danger?: boolean;
  readonly wide?: boolean;
  readonly children?: ReactNode;
  /** Called with the ids that succeeded, after all items have been tried. */
  readonly onDone?: (ids: readonly string[]) => void;
}) {
  const { progress, failures, succeeded, start } = useEach(act, (ids, failed) => {
    onDone?.(ids);
    if (failed.length === 0) onOpenChange(false);
  });
  const busy = progress !== null;
  const close = () => onOpenChange(false);
  return (
    <Dialog
      open={open}
      // The dialog stays open until the result is known.
      onOpenChange={(next) => !busy && onOpenChange(next)}
      title={title}
      wide={wide}
      {...(description === undefined ? {} : { description })}
      footer={
        failures.length > 0 ? (
          <>
            <Button onClick={() => void start(failures.map(({ item }) => item))}>Try again</Button>
            <Button look="primary" onClick={close}>
              Close
            </Button>
          </>
        ) : (
          <>
            <Button disabled={busy} onClick={close}>
              Cancel
            </Button>
            <Button
              look={danger ? 'remove' : 'primary'}
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
        {progress !== null && <Progress {...{ title, done, progress }} />}
      </div>
      {failures.length > 0 ? (
        <Failures {...{ failures, done }} succeeded={succeeded.length} />
      ) : (
        (children ?? (progress === null && <Targets items={items} />))
      )}
    </Dialog>
  );
}

const maxTargets = 20;

/** Names the items of a dialog that has no fields. */
function Targets({ items }: { readonly items: readonly Each[] }) {
  return (
    <ul aria-label="Included" className="flex flex-wrap gap-1.5">
      {items.slice(0, maxTargets).map(({ id, name }) => (
        <li key={id} className="flex min-w-0">
          <Badge>
            <Line text={name} maxLength={64} />
          </Badge>
        </li>
      ))}
      {items.length > maxTargets && <li className="text-muted text-sm">and {items.length - maxTargets} more</li>}
    </ul>
  );
}

function Progress({
  title,
  done,
  progress: { count, of },
}: {
  readonly title: string;
  readonly done: string;
  readonly progress: { readonly count: number; readonly of: number };
}) {
  return (
    <div className="space-y-1.5 pb-4">
      <div className="tabular text-sm">
        {count} of {of} {done}
      </div>
      <ProgressBar label={title} max={of} value={count} />
    </div>
  );
}

function Failures({
  failures,
  done,
  succeeded,
}: {
  readonly failures: readonly Failed<Each>[];
  readonly done: string;
  readonly succeeded: number;
}) {
  return (
    <div role="alert" className="space-y-2 text-sm">
      <p>
        {succeeded} {done}. {failures.length} {failures.length === 1 ? 'was' : 'were'} not:
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
  );
}
