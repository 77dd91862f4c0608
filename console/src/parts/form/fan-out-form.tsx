import { type ReactNode, useId, useState } from 'react';
import { Button } from '../button.tsx';
import { Dialog } from '../dialog/dialog.tsx';
import { Problem } from '../states.tsx';
import { ChoiceCards } from './choice-cards.tsx';
import {
  atOnce,
  careful,
  type FanOut,
  type FanOutDraft,
  type FanOutFaults,
  fanOutPreset,
  readFanOut,
  sentence,
} from './fan-out.ts';
import { Input, Select } from './field.tsx';

const paces = [
  { value: 'careful', label: 'Careful', detail: 'one first, then a quarter at a time', draft: careful },
  { value: 'at_once', label: 'All at once', detail: 'every agent, regardless of failures', draft: atOnce },
] as const;

/** Input fields for the rollout options: a preset, or individual options. */
function FanOutForm({
  draft,
  onChange,
  faults,
}: {
  readonly draft: FanOutDraft;
  readonly onChange: (draft: FanOutDraft) => void;
  readonly faults: FanOutFaults;
}) {
  const change = (part: Partial<FanOutDraft>) => onChange({ ...draft, ...part });
  return (
    <div className="space-y-4">
      <ChoiceCards
        legend="Pace"
        choices={paces}
        value={fanOutPreset(draft)}
        onChange={({ draft: { canary, batch, maxFailures } }) => change({ canary, batch, maxFailures })}
      />
      <div className="grid gap-3 sm:grid-cols-3">
        <Input
          label="Canary"
          inputMode="numeric"
          placeholder="none"
          hint="Number of agents to start with"
          value={draft.canary}
          error={faults.canary}
          onChange={(event) => change({ canary: event.target.value })}
        />
        <Input
          label="At a time"
          placeholder="all"
          hint="A number or a share such as 25%"
          value={draft.batch}
          error={faults.batch}
          onChange={(event) => change({ batch: event.target.value })}
        />
        <Input
          label="Failures allowed"
          inputMode="numeric"
          placeholder="any number"
          hint="Additional failures halt the run"
          value={draft.maxFailures}
          error={faults.maxFailures}
          onChange={(event) => change({ maxFailures: event.target.value })}
        />
      </div>
      <div className="grid gap-3 sm:grid-cols-3">
        <div className="sm:col-span-2">
          <Select
            label="Agents that are not connected"
            value={draft.offline}
            onChange={(event) => change({ offline: event.target.value as FanOutDraft['offline'] })}
          >
            <option value="report">count as failed</option>
            <option value="queue">run when they reconnect</option>
          </Select>
        </div>
        {draft.offline === 'queue' && (
          <Input
            label="Wait up to"
            hint="for example 30m, 24h, 7d"
            value={draft.wait}
            error={faults.wait}
            onChange={(event) => change({ wait: event.target.value })}
          />
        )}
      </div>
    </div>
  );
}

/**
 * Asks for rollout options, describes their effect, and starts the run. If the run is refused, stays open and shows the
 * error. `children` are additional fields above the form.
 */
export function FanOutDialog({
  open,
  onOpenChange,
  title,
  description,
  action,
  count,
  start = careful,
  ready = true,
  children,
  onStart,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly description?: ReactNode;
  /** The submit button's label, such as `Apply to 412 agents`. */
  readonly action: string;
  /** Number of agents; null while unknown. */
  readonly count: number | null;
  /** Initial values. */
  readonly start?: FanOutDraft;
  /** Whether the input in `children` is complete; true by default. */
  readonly ready?: boolean;
  readonly children?: ReactNode;
  readonly onStart: (options: FanOut) => Promise<unknown>;
}) {
  const form = useId();
  const [draft, setDraft] = useState(start);
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const read = readFanOut(draft);
  const submit = async () => {
    setTried(true);
    if ('faults' in read) return;
    setBusy(true);
    setError(null);
    try {
      await onStart(read.options);
      onOpenChange(false);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        if (!next) setError(null);
        onOpenChange(next);
      }}
      title={title}
      {...(description === undefined ? {} : { description })}
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Cancel</Button>
          <Button look="primary" type="submit" form={form} busy={busy} disabled={!ready}>
            {action}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) void submit();
        }}
      >
        {children}
        <FanOutForm draft={draft} onChange={setDraft} faults={'faults' in read && tried ? read.faults : {}} />
        <p aria-live="polite" className="rounded-md bg-raised px-3 py-2 text-sm">
          {'options' in read ? sentence(read.options, count) : 'Correct the options above.'}
        </p>
        <Problem error={error} />
      </form>
    </Dialog>
  );
}
