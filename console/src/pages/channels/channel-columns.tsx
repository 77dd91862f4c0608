import type { Channel } from '@muster/protocol/http';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { RowToggle } from '../../parts/table/row-toggle.tsx';
import { Line, lineText, Text } from '../../parts/text.tsx';
import { Elapsed, Time } from '../../parts/time.tsx';
import { channelTypeNames } from './channel-types.ts';

/** Whether deliveries succeed, worst first. */
export const channelStates = ['failing', 'unused', 'working'] as const;
export type ChannelState = (typeof channelStates)[number];

export const stateWords: Readonly<Record<ChannelState, string>> = {
  failing: 'failing',
  unused: 'not used yet',
  working: 'working',
};
const tones: Readonly<Record<ChannelState, Tone>> = { failing: 'bad', unused: 'neutral', working: 'good' };

export const stateOfChannel = ({ delivery }: Pick<Channel, 'delivery'>): ChannelState =>
  delivery.last_error !== null ? 'failing' : delivery.last_delivered_at === null ? 'unused' : 'working';

/** Returns where a channel sends notifications: an address, or a topic. */
export const targetOf = ({ config }: Pick<Channel, 'config'>): string =>
  config.topic ?? config.url ?? config.webhook_url ?? '';

export interface ChannelActions {
  readonly onTest: (channel: Channel) => void;
  readonly onEdit: (id: string) => void;
  readonly onRemove: (channel: Channel) => void;
}

/** @param actions null for operators who are not admins */
export function channelColumns({
  open,
  onToggle,
  testing,
  isPhone,
  actions,
}: {
  /** IDs of the open rows. */
  readonly open: ReadonlySet<string>;
  readonly onToggle: (id: string) => void;
  /** ID of the channel to which a test is being sent; null if there is none. */
  readonly testing: string | null;
  readonly isPhone: boolean;
  readonly actions: ChannelActions | null;
}): readonly Column<Channel>[] {
  return [
    {
      id: 'name',
      header: 'Name',
      width: 'minmax(8rem,4fr)',
      sort: ({ name }) => name,
      cell: ({ id, name }) => <RowToggle name={name} isOpen={open.has(id)} onToggle={() => onToggle(id)} />,
    },
    {
      id: 'type',
      header: 'Type',
      width: '6rem',
      phone: 'line',
      sort: ({ channel_type }) => channel_type,
      cell: ({ channel_type }) => (
        <span className="flex min-h-6 items-center text-muted max-sm:min-h-0">{channelTypeNames[channel_type]}</span>
      ),
    },
    {
      id: 'state',
      header: 'Status',
      width: 'minmax(11rem,5fr)',
      phone: 'line',
      sort: (channel) => channelStates.indexOf(stateOfChannel(channel)),
      cell: (channel) => <Status channel={channel} />,
    },
    {
      id: 'target',
      header: 'Sends to',
      width: 'minmax(10rem,7fr)',
      from: 'lg',
      cell: (channel) => (
        <code className="flex min-h-6 min-w-0 items-center font-mono text-muted text-xs">
          <Line text={targetOf(channel)} />
        </code>
      ),
    },
    {
      id: 'delivered',
      header: 'Last delivery',
      width: '7rem',
      align: 'right',
      from: 'sm',
      sort: ({ delivery }) => delivery.last_delivered_at,
      cell: ({ delivery }) => (
        <span className="flex min-h-6 items-center text-muted">
          {delivery.last_delivered_at === null ? 'never' : <Time at={delivery.last_delivered_at} />}
        </span>
      ),
    },
    ...(actions === null ? [] : [actionColumn(actions, testing, isPhone)]),
  ];
}

function Status({ channel }: { readonly channel: Channel }) {
  const state = stateOfChannel(channel);
  const { failing_since, last_error } = channel.delivery;
  return (
    <span className="min-w-0">
      <span className="flex min-h-6 items-center gap-1 max-sm:min-h-0">
        <Dot tone={tones[state]}>{stateWords[state]}</Dot>
        {failing_since !== null && (
          <span className="text-muted">
            for <Elapsed at={failing_since} />
          </span>
        )}
      </span>
      {last_error !== null && (
        <span className="line-clamp-2 text-bad text-xs sm:line-clamp-1" title={lineText(last_error, 1_000)}>
          <Text text={last_error} maxLength={300} />
        </span>
      )}
    </span>
  );
}

const actionColumn = (
  { onTest, onEdit, onRemove }: ChannelActions,
  testing: string | null,
  isPhone: boolean,
): Column<Channel> => ({
  id: 'actions',
  header: 'Actions',
  width: '9rem',
  phone: 'end',
  align: 'right',
  cell: (channel) => (
    <span className="-my-0.5 flex items-center gap-1">
      {!isPhone && (
        <Button small busy={testing === channel.id} disabled={testing !== null} onClick={() => onTest(channel)}>
          Send test<span className="sr-only"> to {channel.name}</span>
        </Button>
      )}
      <RowActions on={channel.name}>
        {isPhone && (
          <MenuItem disabled={testing !== null} onSelect={() => onTest(channel)}>
            Send test
          </MenuItem>
        )}
        <MenuItem onSelect={() => onEdit(channel.id)}>Edit…</MenuItem>
        <MenuItem danger onSelect={() => onRemove(channel)}>
          Remove…
        </MenuItem>
      </RowActions>
    </span>
  ),
});
