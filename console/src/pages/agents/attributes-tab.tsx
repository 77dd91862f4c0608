import type { Agent } from '@muster/protocol/http';
import { useMemo } from 'react';
import { CopyButton } from '../../parts/copy.tsx';
import { SearchInput } from '../../parts/form/search-input.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { attributeGroups } from './attribute-groups.ts';

/** Attributes as the agent reports them. They are untrusted, so they are rendered as plain text. */
export function AttributesTab({ agent }: { readonly agent: Agent }) {
  const [search, setSearch] = useUrlState('find', '');
  const groups = useMemo(() => attributeGroups(agent.attributes, search), [agent.attributes, search]);
  const count = Object.keys(agent.attributes).length;
  return (
    <div className="space-y-3">
      <div className="max-w-sm">
        <SearchInput
          label="Search attributes"
          data-search
          placeholder={`Search ${count} attributes`}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </div>
      {groups.length === 0 && (
        <Empty title={count === 0 ? 'No attributes yet' : 'No matching attributes'}>
          {count === 0 && 'An agent reports attributes of its machine when it connects.'}
        </Empty>
      )}
      <div className="grid items-start gap-4 xl:grid-cols-2">
        {groups.map(({ name, entries }) => (
          <Panel key={name} flush title={<Line text={name} maxLength={60} />}>
            <dl className="divide-y">
              {entries.map(([key, value]) => (
                <div key={key} className="group flex items-start gap-3 px-4 py-1.5 text-sm">
                  <dt className="w-2/5 max-w-56 shrink-0 break-words font-mono text-muted text-xs leading-5">
                    <Text text={key} maxLength={80} />
                  </dt>
                  <dd className="min-w-0 flex-1">
                    <Text text={value} maxLength={160} />
                  </dd>
                  <dd className="-my-1 opacity-0 focus-within:opacity-100 group-hover:opacity-100">
                    <CopyButton text={value} label={`Copy the value of ${key.slice(0, 60)}`} />
                  </dd>
                </div>
              ))}
            </dl>
          </Panel>
        ))}
      </div>
    </div>
  );
}
