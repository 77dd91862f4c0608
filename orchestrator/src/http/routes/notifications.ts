import { listNotifications, readAllNotifications, readNotification } from '../../domain/notifications/notifications.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';

export function notificationHandlers(context: Context) {
  return {
    listNotifications: ({ query, session }) =>
      listNotifications(context, session.operator_id, { ...query, unread: query.unread === 'true' }),
    readNotification: ({ params, session }) => readNotification(context, actorIn(session), params.id),
    readAllNotifications: ({ session }) => readAllNotifications(context, actorIn(session)),
  } satisfies Partial<Handlers>;
}
