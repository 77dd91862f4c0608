import type { Channel } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Ellipsis, Megaphone, Plus } from 'lucide-react';
import { useState } from 'react';
import { channelsQuery, deleteChannel, tryChannel } from '../../api/channels.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { Button, IconButton } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, Problem, SkeletonRows } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { ChannelForm } from './channel-form.tsx';

export function ChannelsPage() {
  const { data, error, refetch } = useQuery(channelsQuery);
  const isAdmin = useIsAdmin();
  /** Id of the channel that the dialog edits. */
  const [edited, setEdited] = useUrlState('edit', '');
  const editing = data?.find(({ id }) => id === edited) ?? null;
  const [removing, setRemoving] = useState<Channel | null>(null);
  const add = isAdmin && (
    <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setEdited(newItem, true)}>
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
              ? 'Add a webhook or a Discord, Slack, or ntfy channel to be notified of offline agents, drift, and failed runs.'
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
                onEdit={() => setEdited(channel.id, true)}
                onRemove={() => setRemoving(channel)}
              />
            </li>
          ))}
        </ul>
      )}
      {isAdmin && (edited === newItem || editing !== null) && (
        <ChannelForm key={edited} channel={editing} onClose={() => setEdited('')} />
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

interface ChannelActions {
  readonly isAdmin: boolean;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}

function ChannelCard({ channel, isAdmin, onEdit, onRemove }: ChannelActions & { readonly channel: Channel }) {
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
            <Menu trigger={<IconButton small label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}>
              <MenuItem onSelect={onEdit}>Edit…</MenuItem>
              <MenuItem danger onSelect={onRemove}>
                Remove…
              </MenuItem>
            </Menu>
          </>
        )
      }
    >
      <Delivery delivery={channel.delivery} />
      <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-x-2 gap-y-1 text-sm">
        {Object.entries(channel.config).map(([key, value]) => (
          <div key={key} className="contents">
            <dt className="text-muted">{configLabels[key] ?? key}</dt>
            <dd className="font-mono text-xs leading-5">
              <Text text={value} />
            </dd>
          </div>
        ))}
        <dt className="text-muted">Added</dt>
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

const configLabels: Readonly<Record<string, string>> = {
  url: 'Address',
  webhook_url: 'Address',
  topic: 'Topic',
  secret: 'Signing secret',
  token: 'Access token',
};

/** The health of a channel's deliveries: the last one, and why attempts fail. */
function Delivery({
  delivery: { last_delivered_at, last_error, failures, failing_since, next_attempt_at },
}: Pick<Channel, 'delivery'>) {
  const isFailing = last_error !== null;
  const tone = isFailing ? 'bad' : last_delivered_at === null ? 'neutral' : 'good';
  return (
    <div className="mb-3 text-sm">
      <p className="flex flex-wrap items-center gap-x-1.5">
        <Dot tone={tone} />
        <span className="font-medium">
          {isFailing ? 'Failing' : last_delivered_at === null ? 'Nothing delivered yet' : 'Working'}
        </span>
        {isFailing && failing_since !== null && (
          <span className="text-muted">
            since <Time at={failing_since} />
          </span>
        )}
        <span className="text-muted">
          {last_delivered_at === null ? (
            isFailing && '· nothing delivered yet'
          ) : (
            <>
              · last delivery <Time at={last_delivered_at} />
            </>
          )}
        </span>
      </p>
      {isFailing && (
        <p className="text-bad">
          <Text text={last_error} />
          {failures > 0 && (
            <span className="text-muted">
              {' '}
              ({countedText(failures, 'failed attempt')}
              {next_attempt_at !== null && (
                <>
                  , next <Time at={next_attempt_at} />
                </>
              )}
              )
            </span>
          )}
        </p>
      )}
    </div>
  );
}
