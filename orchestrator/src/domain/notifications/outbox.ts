import { MusterError } from '@muster/protocol';
import type { ChannelTarget } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import { channelById } from '../../store/queries/channels.ts';
import {
  countAttempt,
  deleteDeliveries,
  deliveriesBefore,
  dueChannels,
  oldestDeliveries,
  setChannelDelivered,
  setChannelHealth,
} from '../../store/queries/deliveries.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited, type Happening } from '../audit/audit.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';
import { targetOf } from './channels.ts';
import { type Attempt, describeAttempt, type Message } from './delivery.ts';
import { afterFailure, isBackingOff, longestPauseMs } from './delivery-outcome.ts';

/**
 * The outbox for channel messages. The caller ensures that only one process sends. Writes of outcomes contain the fence
 * of the lease under which the messages were read, so that a process that lost the lease records nothing.
 */

/** A channel with its next messages to send. */
export interface Sending {
  readonly channelId: string;
  readonly name: string;
  /** Null if the channel's config cannot be decrypted. */
  readonly target: ChannelTarget | null;
  /** The encrypted config when it was read. An outcome counts only if the config has not changed since. */
  readonly sealed: string;
  readonly failures: number;
  readonly failing_since: number | null;
  /** Oldest first. */
  readonly messages: readonly { readonly message: Message; readonly attempts: number }[];
}

/** Returns the ids of channels that have messages to send now. */
export async function channelsToSend({ db, now }: Context): Promise<string[]> {
  return (await db.all(dueChannels, { now_ms: now(), beyond_ms: now() + longestPauseMs })).map(
    ({ channel_id }) => channel_id,
  );
}

/** Returns a channel's next messages; null if the channel was deleted, has no messages, or is backing off. */
export async function nextToSend(context: Context, channelId: string, limit: number): Promise<Sending | null> {
  const row = await context.db.get(channelById, { channel_id: channelId });
  if (!row) return null;
  if (isBackingOff(row.retry_at_ms, context.now())) return null;
  const waiting = await context.db.all(oldestDeliveries, { channel_id: channelId, limit });
  if (waiting.length === 0) return null;
  const { name, sealed, failures, failing_since } = row;
  const channel = { id: channelId, name };
  return {
    channelId,
    name,
    target: targetOf(context, row),
    sealed,
    failures,
    failing_since,
    messages: waiting.map(({ delivery_id, event, attempts }) => ({
      message: { delivery_id, channel, event: fromJson(event) },
      attempts,
    })),
  };
}

const about = ({ channelId, name }: Pick<Sending, 'channelId' | 'name'>, happening: Omit<Happening, 'actor'>) => ({
  ...happening,
  actor: systemActor,
  target: { type: 'channel', id: channelId, name },
});

export async function recordDelivered(
  { db, now }: Context,
  fence: Fence,
  { channelId, sealed }: Sending,
  deliveryIds: readonly string[],
): Promise<void> {
  const statements = [
    ...fence,
    statement(deleteDeliveries, { delivery_ids: deliveryIds }),
    statement(setChannelDelivered, { channel_id: channelId, sealed, delivered_at: seconds(now()) }),
  ];
  await db.write({ name: 'deliveries/delivered', statements });
}

/**
 * Records that a channel works again. Does nothing if the channel has not failed.
 * @param fence empty for an operator's test of the channel, which requires no lease
 */
export async function recordRecovered(
  context: Context,
  fence: Fence,
  sending: Omit<Sending, 'target' | 'messages'>,
): Promise<void> {
  const { channelId, sealed, failures, failing_since } = sending;
  if (failures === 0 && failing_since === null) return;
  const now = seconds(context.now());
  await writeWhileUnchanged(context, 'channels/recovered', [
    ...fence,
    healthOf({ channelId, sealed, failures: 0, retryAtMs: 0, failingSince: null, lastError: null }),
    ...(failing_since === null
      ? []
      : [
          audited(
            context,
            about(sending, {
              type: 'channel.recovered',
              summary: `channel ${sending.name} accepts messages again`,
              metadata: { failing_since, seconds: now - failing_since },
            }),
          ),
        ]),
  ]);
}

/**
 * Records a failed attempt.
 * @param random number in [0, 1)
 */
export async function recordFailure(
  context: Context,
  fence: Fence,
  sending: Sending,
  { message, attempts }: Sending['messages'][number],
  attempt: Attempt,
  random: number,
): Promise<void> {
  const { channelId, name, sealed, failures, failing_since } = sending;
  const { delivery_id } = message;
  const after = afterFailure({ failures, failing_since, attempts }, attempt, context.now(), random);
  const what = describeAttempt(attempt);
  const statements: Statement[] = [
    ...fence,
    healthOf({
      channelId,
      sealed,
      failures: after.failures,
      retryAtMs: after.retryAtMs,
      failingSince: after.reportFailing ? seconds(context.now()) : failing_since,
      lastError: what,
    }),
    after.drop
      ? statement(deleteDeliveries, { delivery_ids: [delivery_id] })
      : statement(countAttempt, { delivery_id }),
  ];
  if (after.drop)
    statements.push(
      audited(context, dropped(sending, 1, `${what} ${attempts + 1} times`, { event_id: message.event.id })),
    );
  if (after.reportFailing)
    statements.push(
      audited(
        context,
        about(sending, {
          type: 'channel.failing',
          summary: `channel ${name} keeps failing: ${what}`,
          metadata: { failures: after.failures, status: attempt.status },
        }),
      ),
    );
  context.log.warn(
    {
      channel_id: channelId,
      channel: name,
      delivery_id,
      status: attempt.status,
      failures: after.failures,
      reason: what,
    },
    'failed to deliver message',
  );
  await writeWhileUnchanged(context, 'channels/failed', statements);
}

const dropped = (
  channel: Pick<Sending, 'channelId' | 'name'>,
  count: number,
  why: string,
  metadata: Record<string, unknown> = {},
): Happening =>
  about(channel, {
    type: 'channel.dropped',
    summary: `${count} ${count === 1 ? 'message' : 'messages'} to channel ${channel.name} dropped: ${why}`,
    metadata: { count, ...metadata },
  });

const giveUpAtOnce = 500;

export async function giveUpOld(context: Context, fence: Fence, afterSecs: number): Promise<void> {
  const created_before = context.now() - afterSecs * 1000;
  for (;;) {
    const old = await context.db.all(deliveriesBefore, { created_before, limit: giveUpAtOnce });
    if (old.length === 0) return;
    const byChannel = Map.groupBy(old, ({ channel_id }) => channel_id);
    const statements: Statement[] = [
      ...fence,
      statement(deleteDeliveries, { delivery_ids: old.map(({ delivery_id }) => delivery_id) }),
    ];
    for (const [channelId, of] of byChannel) {
      const name = (await context.db.get(channelById, { channel_id: channelId }))?.name ?? '';
      statements.push(audited(context, dropped({ channelId, name }, of.length, 'queued for too long')));
    }
    await context.db.write({ name: 'deliveries/give up', statements });
    if (old.length < giveUpAtOnce) return;
  }
}

interface Health {
  channelId: string;
  sealed: string;
  failures: number;
  retryAtMs: number;
  failingSince: number | null;
  lastError: string | null;
}

/**
 * Returns the statement that records a channel's health. The statement has no effect if the config changed after the
 * send.
 */
const healthOf = ({ channelId, sealed, failures, retryAtMs, failingSince, lastError }: Health) =>
  statement(
    setChannelHealth,
    {
      ...{ channel_id: channelId, sealed, failures },
      ...{ retry_at_ms: retryAtMs, failing_since: failingSince, last_error: lastError },
    },
    { expect: 'changed', else: 'channel_not_found' },
  );

async function writeWhileUnchanged({ db }: Context, name: string, statements: Statement[]): Promise<void> {
  try {
    await db.write({ name, statements });
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'channel_not_found') throw error;
  }
}
