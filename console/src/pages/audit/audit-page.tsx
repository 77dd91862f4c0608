import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { Download, FileClock, History, SearchX } from 'lucide-react';
import { useMemo, useState } from 'react';
import { auditQuery, exportEvents, reloadNewest } from '../../api/audit.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button } from '../../parts/button.tsx';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { Empty } from '../../parts/states.tsx';
import { PagedList } from '../../parts/table/paged-list.tsx';
import { useNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AuditFilters, useAuditFilter, useClearAuditFilters } from './audit-filters.tsx';
import { DayRow, EventHeader, RelatedRows } from './event-row.tsx';
import { groupRelated, withDays } from './related-events.ts';
import { Retention } from './retention.tsx';
import { useVerification } from './use-verification.tsx';

export function AuditPage() {
  const [open, setOpen] = useUrlState('event', '');
  const [pruning, setPruning] = useState(false);
  const isAdmin = useIsAdmin();
  const filter = useAuditFilter();
  const clear = useClearAuditFilters();
  const query = useInfiniteQuery(auditQuery(filter));
  const save = useMutation({
    mutationFn: async () => saveFile(await exportEvents(filter), 'muster-audit.jsonl'),
    onError: notifyError,
  });
  const verification = useVerification();
  const day = new Date(useNow()).setHours(0, 0, 0, 0);
  const entries = useMemo(
    () => query.data && withDays(groupRelated(query.data.pages.flatMap(({ events }) => events)), day),
    [query.data, day],
  );
  const hasNewer = query.data !== undefined && query.data.pages.length > 1 && query.isStale;
  return (
    <Page
      title="Audit log"
      description="Who did what, to what, and when. Each event contains the hash of the previous one."
      actions={
        <MoreActions
          actions={[
            verification.action,
            {
              ...{ label: 'Export', icon: <Download aria-hidden="true" className="size-4" /> },
              ...{ busy: save.isPending, onSelect: () => save.mutate() },
            },
            ...(isAdmin
              ? [
                  {
                    ...{ label: 'Retention…', icon: <History aria-hidden="true" className="size-4" /> },
                    onSelect: () => setPruning(true),
                  },
                ]
              : []),
          ]}
        />
      }
    >
      <AuditFilters />
      <PagedList
        label="Events"
        header={<EventHeader />}
        rowSize="line"
        query={query}
        items={entries}
        onShowNewer={hasNewer ? () => void reloadNewest(filter) : undefined}
        empty={
          Object.keys(filter).length > 0 ? (
            <Empty
              title="No matching events"
              icon={<SearchX />}
              action={clear && <Button onClick={clear}>Clear filters</Button>}
            >
              Try removing a filter, or choose an earlier time.
            </Empty>
          ) : (
            <Empty title="No events yet" icon={<FileClock />}>
              Changes, sign-ins, and the results of operations appear here.
            </Empty>
          )
        }
      >
        {(entry) =>
          'day' in entry ? (
            <DayRow key={entry.day} day={entry.day} />
          ) : (
            // The oldest event identifies the action, because newer ones may still join it.
            <RelatedRows key={entry.events.at(-1)?.id} group={entry} openId={open} onOpen={setOpen} />
          )
        }
      </PagedList>
      {verification.dialog}
      {pruning && <Retention onClose={() => setPruning(false)} />}
    </Page>
  );
}
