import {
  acceptDrift,
  checkDrift,
  type DriftRecord,
  getDrift,
  latestDrift,
  listDrift,
  listLatestDrift,
  unacceptDrift,
} from '@muster/protocol/http';
import { infiniteQueryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { cacheAnswer, queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

const pageSize = 100;

/**
 * The newest drift record of each agent, in pages.
 * @param filter a selector; empty for all agents
 */
export const latestDriftQuery = ({
  status = '',
  filter = '',
}: {
  readonly status?: string;
  readonly filter?: string;
}) =>
  infiniteQueryOptions({
    queryKey: [...keys.drift, 'latest', status, filter],
    queryFn: ({ pageParam, signal }) =>
      call(listLatestDrift, {
        query: {
          limit: pageSize,
          offset: pageParam,
          ...(status === '' ? {} : { status }),
          ...(filter === '' ? {} : { filter }),
        } as never,
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.length < pageSize ? undefined : all.length * pageSize),
  });

export const agentDriftQuery = (node_id: string) =>
  routeQuery([...keys.drift, 'agent', node_id], listDrift, { params: { node_id }, query: { limit: '50' } as never });

/** An agent's newest drift check; null if there is none. */
export const latestCheckQuery = (node_id: string) =>
  routeQuery([...keys.drift, 'newest', node_id], latestDrift, { params: { node_id } });

export const driftRecordQuery = (id: string) =>
  routeQuery(keys.driftRecord(id), getDrift, { params: { drift_id: id } });

/** Checks an agent for drift and waits for the result. */
export async function checkNow(node_id: string): Promise<DriftRecord> {
  const record = await call(checkDrift, { params: { node_id } });
  cacheAnswer(keys.driftRecord(record.drift_id), record);
  void queryClient.invalidateQueries({ queryKey: keys.drift });
  return record;
}

/** Caches the returned record and marks dependent queries as stale. */
async function cached(answer: Promise<DriftRecord>): Promise<void> {
  const record = await answer;
  cacheAnswer(keys.driftRecord(record.drift_id), record);
  for (const key of [keys.drift, keys.reconcile, keys.overview]) void queryClient.invalidateQueries({ queryKey: key });
}

export const accept = (drift_id: string, reason: string) =>
  cached(call(acceptDrift, { params: { drift_id }, body: { reason } }));

export const withdrawAcceptance = (drift_id: string) => cached(call(unacceptDrift, { params: { drift_id } }));
