import { eventTypes } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';
import type { AuditFilter } from '../../api/audit.ts';
import { Button } from '../../parts/button.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { SearchInput } from '../../parts/form/search-input.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { FilterButton } from '../../parts/table/phone-tools.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { momentNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { categoryLabel, eventLabel } from '../notifications/event-labels.ts';
import { auditFilterOf, isPeriod, periods, startOfPeriod } from './audit-filter.ts';

const types = Object.keys(eventTypes);
const categories = [...new Set(types.map((type) => type.split('.')[0] as string))].toSorted();

/** The value of the time filter that shows fields for its start and end. */
const custom = 'custom';
const names = ['category', 'operator', 'agent', 'since', 'after', 'before'] as const;

/** Returns the values of the filters by URL parameter. */
function useFields(): Readonly<Record<(typeof names)[number], string>> {
  const [category] = useUrlState('category', '');
  const [operator] = useUrlState('operator', '');
  const [agent] = useUrlState('agent', '');
  const [since] = useUrlState('since', '');
  const [after] = useUrlState('after', '');
  const [before] = useUrlState('before', '');
  // A link may contain times without the value that selects their fields.
  return { category, operator, agent, since: since === '' && after + before !== '' ? custom : since, after, before };
}

/** Returns the filter in the URL parameters. */
export function useAuditFilter(): AuditFilter {
  const { category, operator, agent, since, after, before } = useFields();
  return useMemo(() => {
    const filter = auditFilterOf({
      ...{ category, operator, agent },
      ...(since === custom ? { after, before } : { after: '', before: '' }),
    });
    return isPeriod(since) ? { ...filter, after: startOfPeriod(since, momentNow()) } : filter;
  }, [category, operator, agent, since, after, before]);
}

/** Returns a function that removes the filters, or undefined if none is set. */
export function useClearAuditFilters(): (() => void) | undefined {
  const fields = useFields();
  const navigate = useNavigate();
  if (names.every((name) => fields[name] === '')) return undefined;
  const others = (search: object) =>
    Object.fromEntries(Object.entries(search).filter(([name]) => !names.includes(name as (typeof names)[number])));
  return () => void navigate({ to: '.', search: others as never });
}

export function AuditFilters() {
  const isPhone = useIsPhone();
  const clear = useClearAuditFilters();
  const { category, operator, since } = useFields();
  if (isPhone)
    return (
      <search className="mb-2 flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <AgentField isForm={false} />
        </div>
        <FilterButton active={[category, operator, since].filter((value) => value !== '').length} onClear={clear}>
          <OtherFields isForm />
        </FilterButton>
      </search>
    );
  return (
    <search className="mb-3 flex flex-wrap items-end gap-2">
      <div className="w-44">
        <AgentField isForm={false} />
      </div>
      <OtherFields isForm={false} />
      {clear !== undefined && (
        <Button look="quiet" onClick={clear}>
          Clear filters
        </Button>
      )}
    </search>
  );
}

interface FieldProps {
  /** Whether the field has a visible label and takes the whole width. */
  readonly isForm: boolean;
}

function AgentField({ isForm }: FieldProps) {
  const typed = useDebouncedText(...useUrlState('agent', ''));
  const Field = isForm ? Input : SearchInput;
  return (
    <Field
      label="Agent"
      type="search"
      data-search=""
      placeholder="Filter by agent"
      value={typed.text}
      onChange={(event) => typed.set(event.target.value)}
    />
  );
}

function OtherFields({ isForm }: FieldProps) {
  const [category, setCategory] = useUrlState('category', '');
  const typed = useDebouncedText(...useUrlState('operator', ''));
  const Field = isForm ? Input : SearchInput;
  const { since } = useFields();
  const [, setSince] = useUrlState('since', '');
  const [after, setAfter] = useUrlState('after', '');
  const [before, setBefore] = useUrlState('before', '');
  const time = (label: string, value: string, onChange: (value: string) => void): ReactNode => (
    <div className={isForm ? undefined : 'w-44'}>
      <Input
        label={label}
        hideLabel={!isForm}
        title={label}
        type="datetime-local"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
  return (
    <>
      <div className={isForm ? undefined : 'w-44'}>
        <Field
          label="Operator"
          type="search"
          placeholder="Filter by operator"
          value={typed.text}
          onChange={(event) => typed.set(event.target.value)}
        />
      </div>
      <div className={isForm ? undefined : 'w-44'}>
        <Select
          label="Event type"
          hideLabel={!isForm}
          value={category}
          onChange={(event) => setCategory(event.target.value)}
        >
          <option value="">Any event</option>
          {categories.map((name) => (
            <optgroup key={name} label={categoryLabel(name)}>
              <option value={name}>{`${categoryLabel(name)}: all`}</option>
              {types
                .filter((type) => type.startsWith(`${name}.`))
                .map((type) => (
                  <option key={type} value={type}>
                    {eventLabel(type)}
                  </option>
                ))}
            </optgroup>
          ))}
        </Select>
      </div>
      <div className={isForm ? undefined : 'w-40'}>
        <Select label="Time" hideLabel={!isForm} value={since} onChange={(event) => setSince(event.target.value)}>
          <option value="">Any time</option>
          {Object.entries(periods).map(([value, { label }]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          <option value={custom}>Custom…</option>
        </Select>
      </div>
      {since === custom && (
        <>
          {time('From', after, setAfter)}
          {time('Until', before, setBefore)}
        </>
      )}
    </>
  );
}
