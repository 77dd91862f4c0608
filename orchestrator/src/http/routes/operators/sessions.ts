import { MusterError } from '@muster/protocol';
import { actorIn } from '../../../domain/operators/sessions.ts';
import type { SignIn } from '../../../domain/operators/sign-in.ts';
import { type PageRequest, readPage } from '../../../domain/shared/page.ts';
import { isFromConsole, type SessionCookie } from '../../server/authentication.ts';
import { type Handlers, Reply, type RequestFacts } from '../../server/handlers.ts';
import { paged } from '../../server/page.ts';

export function sessionHandlers(signIn: SignIn, cookie: SessionCookie) {
  /**
   * Returns the headers that delete the cookie. Returns none if the request has an `Authorization` token, because the
   * cookie then belongs to a different session.
   */
  const clearing = (request: RequestFacts): Record<string, string> =>
    request.header('authorization') === undefined ? { 'set-cookie': cookie.cleared } : {};
  return {
    openConsoleSession: async ({ session, request }) => {
      // A browser that does not send these headers could not use the cookie, so it keeps its token.
      if (!isFromConsole('POST', request.header('sec-fetch-site'), request.header('origin')))
        throw new MusterError('origin_refused', 'The browser did not confirm that the request comes from the console.');
      const { cookie: value, life_secs, ...answer } = await signIn.openConsole(session.token_hash);
      return new Reply(200, answer, { 'set-cookie': cookie.set(value, life_secs) });
    },
    logout: async ({ session, request }) => {
      await signIn.logout(session.token_hash);
      return new Reply(204, undefined, clearing(request));
    },
    listSessions: async ({ session, query }) => {
      const all = await signIn.list(session);
      const read = async ({ offset, limit }: PageRequest) => all.slice(offset, offset + limit);
      return paged(await readPage(query, read), query);
    },
    endSession: ({ session, params }) => signIn.end(actorIn(session), params.id),
    endSessions: async ({ session, request }) =>
      new Reply(200, { ended: await signIn.endAll(actorIn(session)) }, clearing(request)),
  } satisfies Partial<Handlers>;
}
