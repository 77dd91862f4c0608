import { actorOf } from '../../domain/sign-in.ts';
import type { TerminalAsker, Terminals } from '../../domain/terminals.ts';
import { type Handlers, type Session, Stream } from '../handlers.ts';
import { paged } from '../page.ts';

const askerOf = (session: Session): TerminalAsker => ({ actor: actorOf(session), role: session.role });

export function terminalHandlers(terminals: Terminals) {
  return {
    openTerminal: ({ params, query, session }) => terminals.open(askerOf(session), params.node_id, query),
    listTerminals: async ({ query }) => paged(await terminals.list(query), query),
    getTerminal: ({ params }) => terminals.get(params.session_id),
    closeTerminal: ({ params, session }) => terminals.close(askerOf(session), params.session_id),
    attachTerminal: ({ params, body, session }) => terminals.attach(askerOf(session), params.session_id, body.mode),
    getTranscript: async ({ params, query, session }) => {
      const format = query.format ?? 'raw';
      return new Stream(await terminals.transcript(askerOf(session), params.session_id, format), {
        type: format === 'raw' ? 'application/octet-stream' : 'application/x-asciicast',
      });
    },
  } satisfies Partial<Handlers>;
}
