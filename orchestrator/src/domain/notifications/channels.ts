import { MusterError } from '@muster/protocol';
import type { Channel, ChannelConfigs, ChannelTarget, ChannelType } from '@muster/protocol/http';
import {
  channelById,
  channelNumber,
  channels,
  deleteChannel,
  insertChannel,
  setChannel,
} from '../../store/queries/channels.ts';
import { statement } from '../../store/transaction.ts';
import { audited, type Happening } from '../audit/audit.ts';
import { opened, sealing } from '../secrets/channel-seal.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { readConfig, showConfig } from './channel-config.ts';
import { isBackingOff } from './delivery-outcome.ts';

/** Maximum number of channels. Limited because each notification goes to all of them. */
const maxChannels = 100;
/** Timeout of a delivery attempt, in milliseconds. */
export const attemptMs = 10_000;

export interface ChannelRule {
  /** Whether loopback and private addresses are refused. */
  readonly denyPrivate: boolean;
}

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
/** Returns a channel's row, or undefined if it was removed. */
export const findRow = ({ db }: Context, id: string) => db.get(channelById, { channel_id: id });

/** @throws MusterError channel_not_found */
export async function requireRow(context: Context, id: string): Promise<Row> {
  const row = await findRow(context, id);
  if (!row) throw new MusterError('channel_not_found', `there is no channel ${JSON.stringify(id.slice(0, 64))}`);
  return row;
}

/** Returns a channel's decrypted target; null if its config cannot be decrypted. */
export function targetOf(
  context: Context,
  row: { channel_id: string; channel_type: ChannelType; key_id: string; sealed: string },
): ChannelTarget | null {
  const text = opened(context, row);
  if (text === null) return null;
  return { channel_type: row.channel_type, config: JSON.parse(text) as ChannelConfigs[ChannelType] } as ChannelTarget;
}

function toChannel(context: Context, row: Row): Channel {
  const target = targetOf(context, row);
  return {
    id: row.channel_id,
    name: row.name,
    channel_type: row.channel_type,
    config: target === null ? {} : showConfig(target),
    created_at: row.created_at,
    created_by: row.created_by,
    delivery: {
      last_delivered_at: row.delivered_at,
      last_error: row.last_error,
      failures: row.failures,
      failing_since: row.failing_since,
      next_attempt_at: isBackingOff(row.retry_at_ms, context.now()) ? Math.ceil(row.retry_at_ms / 1000) : null,
    },
  };
}

/** Lists channels, oldest first. */
export async function listChannels(context: Context): Promise<Channel[]> {
  return (await context.db.all(channels, { limit: maxChannels })).map((row) => toChannel(context, row));
}

export async function getChannel(context: Context, id: string): Promise<Channel> {
  return toChannel(context, await requireRow(context, id));
}

/** Describes an audit event about a channel. */
export const channelEvent = (
  type: 'channel.created' | 'channel.updated' | 'channel.removed' | 'channel.tested',
  actor: Actor,
  { id, name }: { id: string; name: string },
  metadata: Record<string, unknown>,
): Happening => ({
  type,
  actor,
  target: { type: 'channel', id, name },
  summary: `channel ${name} ${type.slice('channel.'.length)}`,
  metadata,
});

/**
 * Creates a channel.
 * @throws MusterError invalid_input, too_many_channels
 */
export async function createChannel(
  context: Context,
  actor: Actor,
  rule: ChannelRule,
  requested: { name: string; channel_type: ChannelType; config: unknown },
): Promise<Channel> {
  const { name, channel_type } = requested;
  const target = readConfig(channel_type, requested.config, null, rule);
  const id = context.newId();
  await sealing(context, id, JSON.stringify(target.config), (sealed) =>
    context.db.write({
      name: 'channels/create',
      statements: [
        statement(
          channelNumber,
          { number: maxChannels - 1 },
          {
            expect: 'no_row',
            else: 'too_many_channels',
            detail: `there are already ${maxChannels} channels, the maximum`,
          },
        ),
        statement(insertChannel, {
          channel_id: id,
          name,
          channel_type,
          ...sealed,
          created_at: seconds(context.now()),
          created_by: actor.id,
        }),
        audited(
          context,
          channelEvent('channel.created', actor, { id, name }, { channel_type, config: showConfig(target) }),
        ),
      ],
    }),
  );
  return getChannel(context, id);
}

/**
 * Changes a channel. Undefined fields do not change.
 * @throws MusterError channel_not_found, invalid_input
 */
export async function updateChannel(
  context: Context,
  actor: Actor,
  rule: ChannelRule,
  id: string,
  requested: { name?: string | undefined; config?: unknown },
): Promise<Channel> {
  const row = await requireRow(context, id);
  const target =
    requested.config === undefined
      ? null
      : readConfig(row.channel_type, requested.config, targetOf(context, row), rule);
  const renamed = requested.name !== undefined && requested.name !== row.name;
  if (target === null && !renamed) return toChannel(context, row);
  const name = requested.name ?? row.name;
  const metadata = {
    ...(renamed ? { former_name: row.name } : {}),
    ...(target === null ? {} : { config: showConfig(target) }),
  };
  const write = (sealed: { key_id: string; sealed: string } | null) =>
    context.db.write({
      name: 'channels/update',
      statements: [
        statement(
          // Writes only the requested fields, because other fields may change concurrently.
          setChannel({ name: renamed, config: sealed !== null }),
          { channel_id: id, name, ...sealed },
          { expect: 'changed', else: 'channel_not_found' },
        ),
        audited(context, channelEvent('channel.updated', actor, { id, name }, metadata)),
      ],
    });
  if (target === null) await write(null);
  else await sealing(context, id, JSON.stringify(target.config), write);
  context.bus.publish({ type: 'deliveries_due' });
  return getChannel(context, id);
}

/**
 * Removes a channel.
 * @throws MusterError channel_not_found
 */
export async function removeChannel(context: Context, actor: Actor, id: string): Promise<void> {
  const { name, channel_type } = await requireRow(context, id);
  await context.db.write({
    name: 'channels/remove',
    statements: [
      statement(deleteChannel, { channel_id: id }, { expect: 'changed', else: 'channel_not_found' }),
      audited(context, channelEvent('channel.removed', actor, { id, name }, { channel_type })),
    ],
  });
}

/** Error text for a channel whose encryption key is missing. */
export const undecipherable = 'the channel config is encrypted with a key that this orchestrator does not have';
