import { eventTypes } from '@muster/protocol/http';
import { useMemo } from 'react';
import type { AuditFilter } from '../../api/audit.ts';
import { Input, Select } from '../../parts/form/field.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { useUrlState } from '../../parts/url-state.ts';
import { auditFilterOf } from './audit-filter.ts';

const categories = [...new Set(Object.keys(eventTypes).map((type) => type.split('.')[0] as string))].toSorted();

/** Returns the filter in the URL parameters. */
export function useAuditFilter(): AuditFilter {
  const [category] = useUrlState('category', '');
  const [operator] = useUrlState('operator', '');
  const [agent] = useUrlState('agent', '');
  const [after] = useUrlState('after', '');
  const [before] = useUrlState('before', '');
  return useMemo(
    () => auditFilterOf({ category, operator, agent, after, before }),
    [category, operator, agent, after, before],
  );
}

export function AuditFilters() {
  const [category, setCategory] = useUrlState('category', '');
  const typedOperator = useDebouncedText(...useUrlState('operator', ''));
  const typedAgent = useDebouncedText(...useUrlState('agent', ''));
  const [after, setAfter] = useUrlState('after', '');
  const [before, setBefore] = useUrlState('before', '');
  return (
    <search className="mb-3 grid grid-cols-2 gap-2 sm:grid-cols-3 lg:grid-cols-5">
      <Select label="Event type" value={category} onChange={(event) => setCategory(event.target.value)}>
        <option value="">All types</option>
        {categories.map((name) => (
          <optgroup key={name} label={name}>
            <option value={name}>All {name} events</option>
            {Object.keys(eventTypes)
              .filter((type) => type.startsWith(`${name}.`))
              .map((type) => (
                <option key={type} value={type}>
                  {type}
                </option>
              ))}
          </optgroup>
        ))}
      </Select>
      <Input
        label="Operator"
        data-search=""
        placeholder="name or id"
        value={typedOperator.text}
        onChange={(event) => typedOperator.set(event.target.value)}
      />
      <Input
        label="Agent"
        placeholder="name or id"
        value={typedAgent.text}
        onChange={(event) => typedAgent.set(event.target.value)}
      />
      <Input label="From" type="datetime-local" value={after} onChange={(event) => setAfter(event.target.value)} />
      <Input label="Until" type="datetime-local" value={before} onChange={(event) => setBefore(event.target.value)} />
    </search>
  );
}
