import { listNotifications } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';

/** How many there are that this operator has not read, with the newest of them. */
export const unreadQuery = queryOptions({
  queryKey: [...keys.notifications, 'unread'],
  queryFn: ({ signal }) => call(listNotifications, { query: { unread: 'true', limit: '20' }, signal }),
});
