import { type Fault, MusterError } from '@muster/protocol';
import { agentIdOf } from '../../domain/audit/audit-filter.ts';
import type { LiveEvents } from '../../domain/live/events.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, Stream } from '../server/handlers.ts';

export function eventHandlers(context: Context, live: LiveEvents) {
  return {
    followEvents: async ({ query, session, request }) => {
      const header = request.header('last-event-id');
      const after = readPosition(header, '/last-event-id') ?? readPosition(query.last_event_id, '/last_event_id');
      const categories = query.category === undefined ? undefined : new Set(query.category.split(','));
      const node_id = query.node_id === undefined ? undefined : await agentIdOf(context.db, query.node_id);
      const stream = await live.follow({ session, filter: { categories, node_id }, after });
      return new Stream(stream, { until: AbortSignal.any([stream.ended, request.signal]) });
    },
  } satisfies Partial<Handlers>;
}

function readPosition(text: string | undefined, path: string): number | null {
  if (text === undefined || text === '') return null;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const faults: Fault[] = [{ path, message: 'must be the id of a received event' }];
  throw new MusterError('invalid_input', `${path.slice(1)} must be the id of a received event`, faults);
}
