import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { prune, retentionQuery, setRetention } from '../../api/audit.ts';
import { settingsQuery } from '../../api/settings.ts';
import { Button } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Confirm, Dialog } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';

/** Sets how long audit events are retained, and removes old events immediately. */
export function Retention({ onClose }: { readonly onClose: () => void }) {
  const { data } = useQuery(retentionQuery);
  const { data: configured } = useQuery(settingsQuery);
  const [days, setDays] = useState<string | null>(null);
  const configuredDays = (configured?.settings.audit as { retention_days?: number } | undefined)?.retention_days;
  const shown = days ?? data?.retention_days?.toString() ?? '';
  const save = useMutation({
    mutationFn: () => setRetention(shown === '' ? null : Number(shown)),
    onSuccess: ({ retention_days }) => {
      notify(
        retention_days === null
          ? 'Retention reset to the configured value'
          : `Events are kept for ${retention_days} days`,
      );
      onClose();
    },
  });
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Retention of the audit log"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form="retention" busy={save.isPending} disabled={data === undefined}>
            Save
          </Button>
        </>
      }
    >
      {data === undefined ? (
        <Skeleton className="h-24" />
      ) : (
        <div className="space-y-6">
          <form
            id="retention"
            className="space-y-3"
            onSubmit={(event) => {
              event.preventDefault();
              save.mutate();
            }}
          >
            <Problem error={save.error} />
            <Input
              label="Keep events for (days)"
              type="number"
              min={1}
              value={shown}
              placeholder={
                configuredDays === undefined ? '' : configuredDays === 0 ? 'forever' : String(configuredDays)
              }
              onChange={(event) => setDays(event.target.value)}
              hint={`If empty, the configuration applies${configuredDays === undefined ? '' : configuredDays === 0 ? ': events are kept forever' : `: ${configuredDays} days`}.`}
            />
          </form>
          <RemoveEvents />
        </div>
      )}
    </Dialog>
  );
}

/** Removes the events before a time, after it has shown their number. */
function RemoveEvents() {
  const [before, setBefore] = useState('');
  const [count, setCount] = useState<number | null>(null);
  const ask = useMutation({
    mutationFn: () => prune(new Date(before).toISOString(), 'count'),
    onSuccess: ({ deleted }) => setCount(deleted),
  });
  return (
    <>
      <form
        className="space-y-3 border-t pt-6"
        onSubmit={(event) => {
          event.preventDefault();
          ask.mutate();
        }}
      >
        <Problem error={ask.error} />
        <Input
          label="Remove events before"
          type="datetime-local"
          required
          value={before}
          onChange={(event) => {
            setBefore(event.target.value);
            setCount(null);
          }}
          hint="Keeps the hash of the last removed event, so that the rest can still be verified."
        />
        <Button type="submit" look="danger" busy={ask.isPending}>
          Count and remove…
        </Button>
        <p role="status" className="text-sm empty:hidden">
          {count === 0 && 'No events are older than this time.'}
        </p>
      </form>
      <Confirm
        open={count !== null && count > 0}
        onOpenChange={() => setCount(null)}
        title={`Remove ${countedText(count ?? 0, 'event')}?`}
        action="Remove events"
        onConfirm={async () => {
          const { deleted } = await prune(new Date(before).toISOString(), 'remove');
          notify(`Removed ${countedText(deleted, 'event')}`);
        }}
      >
        You can restore them only from an export or a backup.
      </Confirm>
    </>
  );
}
