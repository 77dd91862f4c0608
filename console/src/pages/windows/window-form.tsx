import type { Window } from '@muster/protocol/http';
import { attributesOf, parseSelector } from '@muster/protocol/selector';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSelectorVocabulary } from '../../api/agents.ts';
import { matchesQuery } from '../../api/matches.ts';
import { changeWindow, planWindow } from '../../api/windows.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { told } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { useTyped } from '../../parts/form/use-debounced.ts';
import { messageOf, Problem } from '../../parts/states.tsx';
import { changeOf, fieldTime } from './month.ts';

/** A window to change, or a new one, on the day that it was asked for. */
export interface WindowWish {
  readonly window: Window | null;
  readonly from: Date | null;
}

const hour = 3_600_000;
const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();

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
  const change = window && changeOf(window, { ends, reason });
  const tooEarly = (window === null || change?.ends_at !== undefined) && Date.parse(ends) <= Date.parse(starts);
  const noWhom = window === null && !everyAgent && selector.trim() === '';
  const save = useMutation({
    mutationFn: () => {
      if (window !== null) {
        const wish = changeOf(window, { ends, reason });
        return Object.keys(wish).length === 0 ? Promise.resolve(window) : changeWindow(window.id, wish);
      }
      const ends_at = Math.floor(Date.parse(ends) / 1000);
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
      title={window === null ? 'New maintenance window' : 'Change the maintenance window'}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form="window" busy={save.isPending} disabled={tooEarly || noWhom}>
            {window === null ? 'Create window' : 'Save'}
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
          maxLength={1024}
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
            hint={`In your time: ${timeZone}`}
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
            {!everyAgent && <Whom selector={selector} onChange={setSelector} />}
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

/** A selector, and whom it matches now: a window is for who matches while it is open. */
function Whom({ selector, onChange }: { readonly selector: string; readonly onChange: (selector: string) => void }) {
  const [rested, setRested] = useState(selector);
  const typed = useTyped(rested, setRested);
  const vocabulary = useSelectorVocabulary();
  const matches = useQuery({ ...matchesQuery(rested), enabled: rested.trim() !== '' });
  const count = matches.data?.length;
  const parsed = parseSelector(rested);
  const attributes = parsed.ok ? attributesOf(parsed.selector) : [];
  return (
    <>
      <SelectorInput
        label="For the agents that match"
        value={typed.text}
        onChange={(text) => {
          typed.set(text);
          onChange(text);
        }}
        vocabulary={vocabulary}
        hint={
          rested.trim() === ''
            ? 'An empty selector matches no agent.'
            : matches.isError
              ? messageOf(matches.error)
              : count === undefined
                ? 'Looking for agents…'
                : `Matches ${count} ${count === 1 ? 'agent' : 'agents'} now, and whichever match while it is open.`
        }
      />
      {attributes.length > 0 && (
        <p role="alert" className="text-sm text-warn">
          Agents say their attributes of themselves: an agent that was taken over can choose to be in this window, and
          mute what is told of it. Select by tags instead.
        </p>
      )}
    </>
  );
}
