import { type AnswerOf, endSession, endSessions, listSessions } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call, session } from '../client.ts';
import { keys } from '../query-keys.ts';

export type SignInSession = AnswerOf<typeof listSessions>[number];

/** The operator's own sign-in sessions. */
export const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: ({ signal }) => call(listSessions, { all: true, signal }),
  // Polled, because no event reports that a session was used or has expired.
  staleTime: 0,
});

/** Ends a session. Signs out if it is this browser's session. */
export const endOneSession = ({ id, current }: SignInSession): Promise<void> =>
  current ? session.leave() : call(endSession, { params: { id } });

/** Ends all sessions, including this browser's. */
export async function signOutEverywhere(): Promise<void> {
  await call(endSessions, {});
  await session.leave(true);
}
