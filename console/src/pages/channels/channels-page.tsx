import type { Channel } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Megaphone, Plus } from 'lucide-react';
import { useState } from 'react';
import { channelsQuery, deleteChannel, tryChannel } from '../../api/channels.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, Problem, SkeletonRows } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { ChannelForm } from './channel-form.tsx';

export function ChannelsPage() {
  const { data, error, refetch } = useQuery(channelsQuery);
  const isAdmin = useIsAdmin();
  const [editing, setEditing] = useState<Channel | 'new' | null>(null);
  const [removing, setRemoving] = useState<Channel | null>(null);
  const add = isAdmin && (
    <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setEditing('new')}>
      Add channel
    </Button>
  );
  return (
    <Page
      title="Channels"
      subtitle={`Each notification is delivered to every channel at least once, with retries.${isAdmin ? '' : ' Only admins can change them.'}`}
      actions={data !== undefined && data.length > 0 && add}
    >
      {error ? (
        <Panel>
          <Failure error={error} retry={() => void refetch()} />
        </Panel>
      ) : data === undefined ? (
        <Panel flush>
          <SkeletonRows />
        </Panel>
      ) : data.length === 0 ? (
        <Panel>
          <Empty title="No channels yet" icon={<Megaphone className="size-7" strokeWidth={1.4} />} action={add}>
            {isAdmin
              ? 'Add a webhook or a Discord, Slack, or ntfy channel to be notified of lost agents, drift, and failed runs.'
              : 'An admin can add a webhook or a Discord, Slack, or ntfy channel.'}
          </Empty>
        </Panel>
      ) : (
        <ul className="grid gap-4 lg:grid-cols-2" aria-label="Channels">
          {data.map((channel) => (
            <li key={channel.id}>
              <ChannelCard
                channel={channel}
                isAdmin={isAdmin}
                onEdit={() => setEditing(channel)}
                onRemove={() => setRemoving(channel)}
              />
            </li>
          ))}
        </ul>
      )}
      {editing !== null && (
        <ChannelForm channel={editing === 'new' ? null : editing} onClose={() => setEditing(null)} />
      )}
      <Confirm
        open={removing !== null}
        onOpenChange={() => setRemoving(null)}
        title={`Remove the channel ${removing?.name ?? ''}?`}
        action="Remove channel"
        onConfirm={async () => {
          await deleteChannel(removing?.id ?? '');
          notify(`Removed the channel ${removing?.name}`);
        }}
      >
        Pending notifications for this channel are deleted.
      </Confirm>
    </Page>
  );
}

function ChannelCard({
  channel,
  isAdmin,
  onEdit,
  onRemove,
}: {
  readonly channel: Channel;
  readonly isAdmin: boolean;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}) {
  const names = useOperatorNames();
  const attempt = useMutation({ mutationFn: () => tryChannel(channel.id) });
  return (
    <Panel
      title={
        <span className="flex min-w-0 items-center gap-2">
          <Line text={channel.name} />
          <Badge>{channel.channel_type}</Badge>
        </span>
      }
      actions={
        isAdmin && (
          <>
            <Button small busy={attempt.isPending} onClick={() => attempt.mutate()}>
              Send a test
            </Button>
            <Button small onClick={onEdit}>
              Edit
            </Button>
            <Button small look="danger" onClick={onRemove}>
              Remove
            </Button>
          </>
        )
      }
    >
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm">
        {Object.entries(channel.config).map(([key, value]) => (
          <div key={key} className="contents">
            <dt className="text-muted">{key === 'url' ? 'address' : key}</dt>
            <dd className="font-mono text-xs leading-5">
              <Text text={value} />
            </dd>
          </div>
        ))}
        <dt className="text-muted">added</dt>
        <dd>
          <Time at={channel.created_at} /> by {names.get(channel.created_by) ?? channel.created_by}
        </dd>
      </dl>
      <div className="mt-3 empty:hidden" role="status">
        {attempt.data && <Badge tone="good">Delivered: the server responded with {attempt.data.status}</Badge>}
      </div>
      <Problem error={attempt.error} />
    </Panel>
  );
}
