import {
  type ChannelRule,
  createChannel,
  getChannel,
  listChannels,
  removeChannel,
  testChannel,
  updateChannel,
} from '../../domain/channels.ts';
import type { Context } from '../../domain/context.ts';
import type { Deliver } from '../../domain/delivery.ts';
import { listNotifications, readAllNotifications, readNotification } from '../../domain/notifications.ts';
import { actorIn } from '../../domain/sign-in.ts';
import type { Handlers } from '../handlers.ts';

export function notificationHandlers(context: Context, deliver: Deliver, rule: ChannelRule) {
  return {
    listChannels: () => listChannels(context),
    getChannel: ({ params }) => getChannel(context, params.id),
    createChannel: ({ body, session }) => createChannel(context, actorIn(session), rule, body),
    updateChannel: ({ params, body, session }) => updateChannel(context, actorIn(session), rule, params.id, body),
    removeChannel: ({ params, session }) => removeChannel(context, actorIn(session), params.id),
    testChannel: ({ params, session }) => testChannel(context, actorIn(session), deliver, params.id),
    listNotifications: ({ query, session }) =>
      listNotifications(context, session.operator_id, { ...query, unread: query.unread === 'true' }),
    readNotification: ({ params, session }) => readNotification(context, actorIn(session), params.id),
    readAllNotifications: ({ session }) => readAllNotifications(context, actorIn(session)),
  } satisfies Partial<Handlers>;
}
