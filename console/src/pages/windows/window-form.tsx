import type { Window } from '@muster/protocol/http';
import { attributesOf, parseSelector } from '@muster/protocol/selector';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useSelectorVocabulary } from '../../api/agents.ts';
import { matchesQuery } from '../../api/matches.ts';
import { changeWindow, planWindow } from '../../api/windows.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Checkbox, Input } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { messageOf, Problem } from '../../parts/states.tsx';
import { changeOf, fieldTime } from './month.ts';

/** A window to change, or null for a new one, with the chosen day if any. */
export interface WindowFormTarget {
  readonly window: Window | null;
  readonly from: Date | null;
}

const hour = 3_600_000;
const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();

/** Initial times of a new window: 22:00 of the chosen day, or the next full hour, for two hours. */
function initialTimes(from: Date | null, now: number): { starts: string; ends: string } {
  const next = Math.ceil(now / hour) * hour;
  const evening = from === null ? next : new Date(from).setHours(22, 0, 0, 0);
  const starts = evening > now ? evening : next;
  return { starts: fieldTime(starts), ends: fieldTime(starts + 2 * hour) };
}

export function WindowForm({
  target: { window, from },
  now,
  onClose,
}: {
  readonly target: WindowFormTarget;
  readonly now: number;
  readonly onClose: () => void;
}) {
  const [initial] = useState(() => initialTimes(from, now));
  const [starts, setStarts] = useState(window === null ? initial.starts : fieldTime(window.starts_at * 1000));
  const [ends, setEnds] = useState(window === null ? initial.ends : fieldTime(window.ends_at * 1000));
  const [reason, setReason] = useState(window?.reason ?? '');
  const [everyAgent, setEveryAgent] = useState(true);
  const [selector, setSelector] = useState('');
  const change = window && changeOf(window, { ends, reason });
  const endsTooEarly = (window === null || change?.ends_at !== undefined) && Date.parse(ends) <= Date.parse(starts);
  const lacksSelector = window === null && !everyAgent && selector.trim() === '';
  const save = useMutation({
    mutationFn: () => {
      if (window !== null) {
        const changes = changeOf(window, { ends, reason });
        return Object.keys(changes).length === 0 ? Promise.resolve(window) : changeWindow(window.id, changes);
      }
      const ends_at = Math.floor(Date.parse(ends) / 1000);
      const starts_at = Math.floor(Date.parse(starts) / 1000);
      return planWindow({ starts_at, ends_at, reason, ...(everyAgent ? {} : { selector }) });
    },
    onSuccess: () => {
      notify(window === null ? 'Maintenance window created' : 'Maintenance window changed');
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
          <Button
            look="primary"
            type="submit"
            form="window"
            busy={save.isPending}
            disabled={endsTooEarly || lacksSelector}
          >
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
          hint="Visible to all operators."
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <Input
            label="Starts"
            type="datetime-local"
            required
            disabled={window !== null}
            value={starts}
            onChange={(event) => setStarts(event.target.value)}
            hint={`Time zone: ${timeZone}`}
          />
          <Input
            label="Ends"
            type="datetime-local"
            required
            value={ends}
            onChange={(event) => setEnds(event.target.value)}
            error={endsTooEarly ? 'Must be after the start' : null}
          />
        </div>
        {window === null ? (
          <>
            <Checkbox
              label="For every agent"
              checked={everyAgent}
              onChange={(event) => setEveryAgent(event.target.checked)}
            />
            {!everyAgent && <SelectorField selector={selector} onChange={setSelector} />}
          </>
        ) : (
          <p className="text-muted text-sm">
            You cannot change the start and the agents. End this window and create another instead.
          </p>
        )}
      </form>
    </Dialog>
  );
}

/** The selector of a window, with the number of agents that match now. A window applies to agents that match while it is open. */
function SelectorField({
  selector,
  onChange,
}: {
  readonly selector: string;
  readonly onChange: (selector: string) => void;
}) {
  const [settled, setSettled] = useState(selector);
  const typed = useDebouncedText(settled, setSettled);
  const vocabulary = useSelectorVocabulary();
  const matches = useQuery({ ...matchesQuery(settled), enabled: settled.trim() !== '' });
  const count = matches.data?.length;
  const parsed = parseSelector(settled);
  const attributes = parsed.ok ? attributesOf(parsed.selector) : [];
  return (
    <>
      <SelectorInput
        label="Selector"
        value={typed.text}
        onChange={(text) => {
          typed.set(text);
          onChange(text);
        }}
        vocabulary={vocabulary}
        hint={
          settled.trim() === ''
            ? 'An empty selector matches no agent.'
            : matches.isError
              ? messageOf(matches.error)
              : count === undefined
                ? 'Looking for agents…'
                : `Matches ${count} ${count === 1 ? 'agent' : 'agents'} now, and any that match while it is open.`
        }
      />
      {attributes.length > 0 && (
        <p role="alert" className="text-sm text-warn">
          Agents report their own attributes. A compromised agent can match this window to mute its notifications.
          Select by tags instead.
        </p>
      )}
    </>
  );
}
