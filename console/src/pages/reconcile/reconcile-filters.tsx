import { type OffReason, offReasons } from '@muster/protocol/http';
import type { ReactNode } from 'react';
import { reasonWords } from '../../../../client/src/reason-words.ts';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { useUrlState } from '../../parts/url-state.ts';

/** Returns the filters in the page's URL, and functions to change them. */
export function useReconcileFilters() {
  const [reason, setReason] = useUrlState<OffReason | ''>('reason', '');
  const [filter, setFilter] = useUrlState<string>('filter', '');
  const [accepted, setAccepted] = useUrlState<'' | 'yes'>('accepted', '');
  return { reason, setReason, filter, setFilter, accepted, setAccepted };
}

export function ReconcileFilters({ children }: { readonly children: ReactNode }) {
  const { reason, setReason, filter, setFilter, accepted, setAccepted } = useReconcileFilters();
  const typed = useDebouncedText(filter, setFilter);
  return (
    <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
      <div className="w-64 max-sm:w-full">
        <Input
          label="Selector"
          hideLabel
          placeholder="Selector: role=web"
          data-search
          value={typed.text}
          onChange={(event) => typed.set(event.target.value)}
        />
      </div>
      <div className="w-40">
        <Select
          label="Reason"
          hideLabel
          value={reason}
          onChange={(event) => setReason(event.target.value as OffReason | '')}
        >
          <option value="">Any reason</option>
          {offReasons.map((each) => (
            <option key={each} value={each}>
              {reasonWords[each]}
            </option>
          ))}
        </Select>
      </div>
      <Checkbox
        label="Show accepted"
        checked={accepted === 'yes' && reason === ''}
        disabled={reason !== ''}
        title={reason === '' ? undefined : 'Accepted drift has no reason. To show it, choose “Any reason”.'}
        onChange={(event) => setAccepted(event.target.checked ? 'yes' : '')}
      />
      {children}
    </div>
  );
}
