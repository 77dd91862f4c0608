import {
  type AnswerOf,
  createEnrolmentToken,
  discover,
  listEnrolmentTokens,
  revokeEnrolmentToken,
} from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export type EnrolmentToken = AnswerOf<typeof listEnrolmentTokens>[number];

export const enrolmentTokensQuery = queryOptions({
  queryKey: keys.enrolmentTokens,
  queryFn: ({ signal }) => call(listEnrolmentTokens, { query: { include_ended: 'true' }, all: true, signal }),
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
