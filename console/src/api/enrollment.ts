import {
  type AnswerOf,
  createEnrolmentToken,
  discover,
  listAudit,
  listEnrolmentTokens,
  revokeEnrolmentToken,
} from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export type EnrolmentToken = AnswerOf<typeof listEnrolmentTokens>[number];

export const enrolmentTokensQuery = routeQuery(keys.enrolmentTokens, listEnrolmentTokens, {
  query: { include_ended: 'true' },
  all: true,
});

export interface TokenRequest {
  /** Seconds. */
  readonly expires_in: number;
  readonly uses: number;
  readonly name?: string;
  readonly tags?: Record<string, string>;
  readonly approve: boolean;
}

export const makeEnrolmentToken = (request: TokenRequest) => call(createEnrolmentToken, { body: request });

export const revokeToken = (id: string) => call(revokeEnrolmentToken, { params: { id } });

/** @param target `host:port`; if absent, all of the orchestrator's networks */
export const discoverAgents = (target?: string) => call(discover, { body: target === undefined ? {} : { target } });

/**
 * The node ids of the agents that enrolled with a token, earliest first. Reads them from the agents' events, because
 * agent records do not identify the token.
 */
export const arrivalsQuery = ({ id, created_at }: Pick<EnrolmentToken, 'id' | 'created_at'>) =>
  queryOptions({
    queryKey: [...keys.audit, 'arrivals', id],
    queryFn: async ({ signal }) => {
      const after = new Date((created_at - 1) * 1_000).toISOString();
      const { events } = await call(listAudit, { query: { category: 'agent', after, limit: '500' }, signal });
      const arrived = events
        .filter(({ metadata }) => metadata.enrolment_token_id === id)
        .map(({ target }) => target.id);
      return [...new Set(arrived.reverse())];
    },
  });
