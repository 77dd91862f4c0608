import { actorIn } from '../../domain/operators/sessions.ts';
import type { TerminalAsker } from '../../domain/terminals/own-terminals.ts';
import type { Terminals } from '../../domain/terminals/terminals.ts';
import { type Handlers, Reply, type Session, Stream } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

const askerOf = (session: Session): TerminalAsker => ({
  actor: actorIn(session),
  role: session.role,
  token_hash: session.token_hash,
});

export function terminalHandlers(terminals: Terminals) {
  return {
    openTerminal: ({ params, query, session }) => terminals.open(askerOf(session), params.node_id, query),
    listTerminals: async ({ query }) => paged(await terminals.list(query), query),
    getTerminal: ({ params }) => terminals.get(params.session_id),
    closeTerminal: ({ params, session }) => terminals.close(askerOf(session), params.session_id),
    attachTerminal: ({ params, body, session }) => terminals.attach(askerOf(session), params.session_id, body.mode),
    getTranscript: async ({ params, query, session }) => {
      const format = query.format ?? 'raw';
      const shown = await terminals.transcript(askerOf(session), params.session_id, format);
      const [type, ending] =
        format === 'raw' ? ['application/octet-stream', 'raw'] : ['application/x-asciicast', 'cast'];
      return new Reply(200, new Stream(shown, { type }), {
        'content-disposition': `attachment; filename="${params.session_id}.${ending}"`,
      });
    },
  } satisfies Partial<Handlers>;
}
