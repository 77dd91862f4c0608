import { MusterError } from '@muster/protocol';
import { setChannelDelivered, setChannelError } from '../../store/queries/deliveries.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { attemptMs, channelEvent, findRow, requireRow, targetOf, undecipherable } from './channels.ts';
import { type Deliver, delivered, describeAttempt, type Message } from './delivery.ts';
import { recordRecovered } from './outbox.ts';

/**
 * Sends a test message immediately, without retries. If it is delivered, waiting messages are sent immediately.
 * @throws MusterError channel_not_found; channel_failed with the receiver's response
 */
export async function testChannel(
  context: Context,
  asker: Actor,
  deliver: Deliver,
  id: string,
): Promise<{ delivered: true; status: number }> {
  const row = await requireRow(context, id);
  const target = targetOf(context, row);
  const channel = { id, name: row.name };
  const actor = await stillSignedIn(context, asker);
  const message: Message = {
    delivery_id: context.newId(),
    channel,
    event: {
      id: context.newId(),
      event_type: 'channel.test',
      severity: 'info',
      timestamp: new Date(context.now()).toISOString(),
      actor,
      target: { type: 'channel', ...channel },
      summary: `a test of channel ${row.name}, requested by ${actor.name}`,
      metadata: {},
    },
  };
  const attempt =
    target === null
      ? ({ status: null, reason: undecipherable } as const)
      : await deliver(target, message, { timeoutMs: attemptMs });
  const well = delivered(attempt);
  const result = describeAttempt(attempt);
  const { name, sealed } = row;
  // The outbox may have delivered a message or failed since the test began.
  const { failures, failing_since } = (well ? await findRow(context, id) : undefined) ?? row;
  if (well) await recordRecovered(context, [], { channelId: id, name, sealed, failures, failing_since });
  await context.db.write({
    name: 'channels/test',
    statements: [
      well
        ? statement(setChannelDelivered, { channel_id: id, sealed, delivered_at: seconds(context.now()) })
        : statement(setChannelError, { channel_id: id, sealed, last_error: result }),
      audited(context, {
        ...channelEvent('channel.tested', actor, channel, { delivered: well, status: attempt.status }),
        severity: well ? 'info' : 'warning',
        summary: `channel ${row.name} tested: ${result}`,
      }),
    ],
  });
  if (!well) throw new MusterError('channel_failed', result);
  context.bus.publish({ type: 'deliveries_due' });
  return { delivered: true, status: attempt.status };
}
