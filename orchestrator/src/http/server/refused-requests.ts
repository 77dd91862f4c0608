import type { MusterError } from '@muster/protocol';
import type { Route } from '@muster/protocol/http';
import type { Refusals } from '../../domain/audit/refusals.ts';
import { actorOf } from '../../domain/operators/sessions.ts';
import type { Session } from './handlers.ts';

export interface RefusedCall {
  readonly error: MusterError;
  readonly route: Pick<Route, 'id' | 'method' | 'path' | 'tag'>;
  readonly session: Session | null;
  readonly ip: string;
}

/**
 * Returns a function that records refused requests in the audit log if the reason is a missing role or a rate limit.
 */
export const recordRefused =
  (refusals: Refusals) =>
  async ({ error: { code, kind, message }, route, session, ip }: RefusedCall): Promise<void> => {
    const address = `${route.method} ${route.path}`;
    if (session === null) {
      if (code !== 'rate_limited' || route.tag !== 'Sign-in') return;
      const summary = 'sign-in refused: too many requests';
      return refusals.record({
        type: 'auth.refused',
        who: 'stranger',
        summary,
        code,
        ip,
        same: { of: '', anywhere: false },
      });
    }
    if (kind.status !== 403) return;
    const plaintext = code === 'plaintext_refused';
    return refusals.record({
      type: plaintext ? 'auth.plaintext_refused' : 'auth.forbidden',
      who: 'signed_in',
      actor: actorOf(session),
      target: { type: 'route', id: route.id, name: address },
      summary: `${address} by ${session.username} was refused: ${message}`,
      code,
      ip,
      same: { of: `${session.operator_id} ${route.id}`, anywhere: true },
    });
  };
