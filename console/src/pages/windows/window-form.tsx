import type { Window } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { changeWindow, planWindow } from '../../api/windows.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Checkbox, Input } from '../../parts/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { told } from '../../parts/toast.tsx';
import { fieldTime } from './month.ts';

/** A window to change, or a new one, on the day that it was asked for. */
export interface WindowWish {
  readonly window: Window | null;
  readonly from: Date | null;
}

const hour = 3_600_000;

/** A new window that begins with the next hour, or late in the evening of its day. */
function firstTimes(from: Date | null, now: number): { starts: string; ends: string } {
  const next = Math.ceil(now / hour) * hour;
  const evening = from === null ? next : new Date(from).setHours(22, 0, 0, 0);
  const starts = evening > now ? evening : next;
  return { starts: fieldTime(starts), ends: fieldTime(starts + 2 * hour) };
}

export function WindowForm({
  wish: { window, from },
  now,
  onClose,
}: {
  readonly wish: WindowWish;
  readonly now: number;
  readonly onClose: () => void;
}) {
  const [first] = useState(() => firstTimes(from, now));
  const [starts, setStarts] = useState(window === null ? first.starts : fieldTime(window.starts_at * 1000));
  const [ends, setEnds] = useState(window === null ? first.ends : fieldTime(window.ends_at * 1000));
  const [reason, setReason] = useState(window?.reason ?? '');
  const [everyAgent, setEveryAgent] = useState(true);
  const [selector, setSelector] = useState('');
  const tooEarly = Date.parse(ends) <= Date.parse(starts);
  const save = useMutation({
    mutationFn: () => {
      const ends_at = Math.floor(Date.parse(ends) / 1000);
      if (window !== null) return changeWindow(window.id, { ends_at, reason });
      const starts_at = Math.floor(Date.parse(starts) / 1000);
      return planWindow({ starts_at, ends_at, reason, ...(everyAgent ? {} : { selector }) });
    },
    onSuccess: () => {
      told(window === null ? 'The window is planned' : 'The window was changed');
      onClose();
    },
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={window === null ? 'Plan a maintenance window' : 'Change the maintenance window'}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form="window" busy={save.isPending} disabled={tooEarly}>
            {window === null ? 'Plan window' : 'Save'}
          </Button>
        </>
      }
    >
      <form
        id="window"
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <Problem error={save.error} />
        <Input
          label="Reason"
          required
          autoFocus
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          hint="What is done, as others should read it."
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <Input
            label="Begins"
            type="datetime-local"
            required
            disabled={window !== null}
            value={starts}
            onChange={(event) => setStarts(event.target.value)}
          />
          <Input
            label="Ends"
            type="datetime-local"
            required
            value={ends}
            onChange={(event) => setEnds(event.target.value)}
            error={tooEarly ? 'Must be after it begins' : null}
          />
        </div>
        {window === null ? (
          <>
            <Checkbox
              label="For every agent"
              checked={everyAgent}
              onChange={(event) => setEveryAgent(event.target.checked)}
            />
            {!everyAgent && (
              <Input
                label="For the agents that match"
                required
                className="font-mono"
                placeholder="site=paris role in (web,db)"
                value={selector}
                onChange={(event) => setSelector(event.target.value)}
              />
            )}
          </>
        ) : (
          <p className="text-muted text-sm">
            When it begins and whom it is for stay as they were. For others, end this one and plan another.
          </p>
        )}
      </form>
    </Dialog>
  );
}
