import {
  type ChannelRule,
  createChannel,
  getChannel,
  listChannels,
  removeChannel,
  updateChannel,
} from '../../domain/notifications/channels.ts';
import type { Deliver } from '../../domain/notifications/delivery.ts';
import { testChannel } from '../../domain/notifications/test-channel.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';

export function channelHandlers(context: Context, deliver: Deliver, rule: ChannelRule) {
  return {
    listChannels: () => listChannels(context),
    getChannel: ({ params }) => getChannel(context, params.id),
    createChannel: ({ body, session }) => createChannel(context, actorIn(session), rule, body),
    updateChannel: ({ params, body, session }) => updateChannel(context, actorIn(session), rule, params.id, body),
    removeChannel: ({ params, session }) => removeChannel(context, actorIn(session), params.id),
    testChannel: ({ params, session }) => testChannel(context, actorIn(session), deliver, params.id),
  } satisfies Partial<Handlers>;
}
