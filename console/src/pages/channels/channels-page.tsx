import type { Channel } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Megaphone, Plus } from 'lucide-react';
import { useCallback, useMemo, useState } from 'react';
import { channelsQuery, deleteChannel, tryChannel } from '../../api/channels.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button, type ButtonLook } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { Empty } from '../../parts/states.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { useOpenRows } from '../../parts/table/row-toggle.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { channelColumns, channelStates, stateOfChannel, stateWords, targetOf } from './channel-columns.tsx';
import { ChannelDetails, deliveredText, type TestOutcome } from './channel-details.tsx';
import { ChannelForm } from './channel-form.tsx';

const filters = [
  { name: 'q', label: 'Search channels', placeholder: 'Search channels' },
  {
    ...{ name: 'state', label: 'Status', any: 'Any status' },
    options: channelStates.map((each) => ({ value: each, label: stateWords[each] })),
  },
] as const;
const matches = (channel: Channel, { q, state }: FilterTexts) =>
  containsText(q, channel.name, channel.channel_type, targetOf(channel)) &&
  (state === '' || stateOfChannel(channel) === state);

export function ChannelsPage() {
  const query = useQuery(channelsQuery);
  const isAdmin = useIsAdmin();
  const isPhone = useIsPhone();
  /** Id of the channel that the dialog edits. */
  const [edited, setEdited] = useUrlState('edit', '');
  const editing = query.data?.find(({ id }) => id === edited) ?? null;
  const [removing, setRemoving] = useState<Channel | null>(null);
  const { open, toggle, show } = useOpenRows();
  const { testing, outcomes, onTest } = useChannelTests(show);
  const add = (look: ButtonLook) =>
    isAdmin && (
      <Button look={look} icon={<Plus className="size-4" />} onClick={() => setEdited(newItem, true)}>
        Add channel
      </Button>
    );
  const columns = useMemo(
    () =>
      channelColumns({
        ...{ open, onToggle: toggle, testing, isPhone },
        actions: isAdmin ? { onTest, onEdit: (id: string) => setEdited(id, true), onRemove: setRemoving } : null,
      }),
    [open, toggle, testing, isPhone, isAdmin, onTest, setEdited],
  );
  return (
    <ListPage
      title="Channels"
      description={`Each notification is delivered to every channel at least once, with retries.${isAdmin ? '' : ' Only admins can change them.'}`}
      actions={add('primary')}
      query={query}
      rows={query.data}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={columns}
      rowKey={({ id }) => id}
      rowLabel={({ name }) => name}
      onOpen={({ id }) => toggle(id)}
      details={(channel) =>
        open.has(channel.id) ? <ChannelDetails channel={channel} test={outcomes.get(channel.id) ?? null} /> : null
      }
      noMatch="No matching channels"
      empty={
        <Empty title="No channels yet" icon={<Megaphone />} action={add('plain')}>
          {isAdmin
            ? 'Add a webhook or a Discord, Slack, or ntfy channel to be notified of offline agents, drift, and failed runs.'
            : 'An admin can add a webhook or a Discord, Slack, or ntfy channel.'}
        </Empty>
      }
    >
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
    </ListPage>
  );
}

/** Sends test notifications, one at a time. Announces the outcome, and opens the channel's row to show it. */
function useChannelTests(show: (id: string) => void) {
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, TestOutcome>>(new Map());
  const { mutate, isPending, variables } = useMutation({ mutationFn: ({ id }: Channel) => tryChannel(id) });
  const onTest = useCallback(
    (channel: Channel) => {
      const end = (outcome: TestOutcome) => {
        setOutcomes((before) => new Map([...before, [channel.id, outcome]]));
        show(channel.id);
      };
      mutate(channel, {
        onSuccess: ({ status }) => {
          notify(deliveredText(status));
          end({ status });
        },
        onError: (error) => {
          notifyError(error);
          end({ error });
        },
      });
    },
    [mutate, show],
  );
  return { testing: isPending ? variables.id : null, outcomes, onTest };
}
