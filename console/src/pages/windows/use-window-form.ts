import type { Window } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { changeWindow, planWindow } from '../../api/windows.ts';
import { notify } from '../../parts/dialog/toast.tsx';
import { useDraftFields } from '../use-draft-fields.ts';
import { changeOf, fieldTime } from './month.ts';

/** The window to change, or null and an optional day for a new window. */
export interface WindowFormTarget {
  readonly window: Window | null;
  readonly from: Date | null;
}

const hour = 3_600_000;

/**
 * A new window starts at 22:00 on the chosen day, or at the next full hour if that time has passed or no day was
 * chosen. It lasts two hours.
 */
function newWindow(from: Date | null, now: number) {
  const next = Math.ceil(now / hour) * hour;
  const evening = from === null ? next : new Date(from).setHours(22, 0, 0, 0);
  const starts = evening > now ? evening : next;
  return { starts: fieldTime(starts), ends: fieldTime(starts + 2 * hour), reason: '', everyAgent: true, selector: '' };
}

const storedWindow = ({ starts_at, ends_at, reason }: Window) => ({
  ...{ starts: fieldTime(starts_at * 1000), ends: fieldTime(ends_at * 1000), reason, everyAgent: true, selector: '' },
});

const seconds = (fieldText: string) => Math.floor(Date.parse(fieldText) / 1000);

/** Returns a maintenance window's fields, their errors, and the mutation that creates or changes it. */
export function useWindowForm({ window, from }: WindowFormTarget, now: number, onSaved: () => void) {
  const [fields, change] = useDraftFields({
    name: window === null ? 'new window' : `window ${window.id}`,
    initial: () => (window === null ? newWindow(from, now) : storedWindow(window)),
  });
  const { starts, ends, reason, everyAgent, selector } = fields;
  const changes = window && changeOf(window, fields);
  const save = useMutation({
    mutationFn: async () => {
      if (window === null)
        await planWindow({
          ...{ starts_at: seconds(starts), ends_at: seconds(ends), reason },
          ...(everyAgent ? {} : { selector }),
        });
      else if (changes !== null && Object.keys(changes).length > 0) await changeWindow(window.id, changes);
    },
    onSuccess: () => {
      notify(window === null ? 'Maintenance window created' : 'Maintenance window changed');
      onSaved();
    },
  });
  return {
    ...{ fields, change, save },
    endsTooEarly: (changes === null || changes.ends_at !== undefined) && Date.parse(ends) <= Date.parse(starts),
    lacksSelector: window === null && !everyAgent && selector.trim() === '',
  };
}
