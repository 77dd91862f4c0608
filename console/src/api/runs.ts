import {
  applyAssignment,
  cancelRun,
  getRun,
  listAudit,
  listRuns,
  planAssignment,
  type Run,
  startRun,
} from '@muster/protocol/http';
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { cacheAnswer, queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export interface RunFilter {
  readonly status?: string;
  readonly kind?: string;
  readonly assignment?: string;
}

const pageSize = 100;

/** Runs without their results, in newest-first order, in pages. */
export const runsQuery = ({ status, kind, assignment }: RunFilter = {}) =>
  infiniteQueryOptions({
    queryKey: [...keys.runs, status ?? '', kind ?? '', assignment ?? ''],
    queryFn: ({ pageParam, signal }) =>
      call(listRuns, {
        query: {
          limit: pageSize,
          offset: pageParam,
          ...(status ? { status } : {}),
          ...(kind ? { kind } : {}),
          ...(assignment ? { assignment } : {}),
        } as never,
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.length < pageSize ? undefined : all.length * pageSize),
  });

/** The newest apply of each assignment, without its results. */
export const lastAppliesQuery = routeQuery(keys.lastApplies, listRuns, {
  query: { kind: 'apply', latest: 'true', limit: '500' },
  all: true,
});

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: keys.run(id),
    queryFn: ({ signal }) => call(getRun, { params: { run_id: id }, signal }),
    // A run may have ten thousand results, and comparing them costs more than rendering them again.
    structuralSharing: false,
  });

/** The options that a run was started with. They are in the audit log, but not in the run. */
export interface RunTerms {
  readonly batch: number | null;
  readonly max_failures: number | null;
  readonly canary: number;
  readonly offline: 'report' | 'queue';
  readonly plan_run_id: string | null;
  /** Empty unless the run was started on named agents. */
  readonly modules: readonly string[];
}

/** Returns null if the event was removed from the audit log. */
export const runTermsQuery = ({ run_id, started_at }: Pick<Run, 'run_id' | 'started_at'>) =>
  queryOptions({
    queryKey: ['run-terms', run_id],
    queryFn: async ({ signal }): Promise<RunTerms | null> => {
      const at = (seconds: number) => new Date((started_at + seconds) * 1000).toISOString();
      const { events } = await call(listAudit, {
        query: { event_type: 'run.started', after: at(-2), before: at(5), limit: 500 } as never,
        signal,
      });
      const metadata = events.find(({ target }) => target.id === run_id)?.metadata;
      if (metadata === undefined) return null;
      const number = (value: unknown) => (typeof value === 'number' ? value : null);
      return {
        batch: number(metadata.batch),
        max_failures: number(metadata.max_failures),
        canary: number(metadata.canary) ?? 0,
        offline: metadata.offline === 'queue' ? 'queue' : 'report',
        plan_run_id: typeof metadata.plan_run_id === 'string' ? metadata.plan_run_id : null,
        modules: Array.isArray(metadata.modules) ? metadata.modules.filter((name) => typeof name === 'string') : [],
      };
    },
  });

export interface FanOutOptions {
  readonly canary?: number;
  readonly batch?: number | string;
  readonly max_failures?: number;
  readonly offline?: 'report' | 'queue' | undefined;
  readonly ttl?: number | undefined;
}

/** Stores the returned run in the cache. */
async function started(answer: Promise<Run>): Promise<Run> {
  const run = await answer;
  cacheAnswer(keys.run(run.run_id), run);
  void queryClient.invalidateQueries({ queryKey: keys.runs });
  return run;
}

/** Starts a run on all agents that match the assignment. */
export const runAssignment = (
  name: string,
  kind: 'apply' | 'plan',
  options: FanOutOptions & { readonly plan_run_id?: string } = {},
) =>
  started(
    kind === 'apply'
      ? call(applyAssignment, { params: { name }, body: options, respondAsync: true })
      : call(planAssignment, { params: { name }, body: options, respondAsync: true }),
  );

/** Starts a run on named agents. They apply the modules from their assignments, then `modules`. */
export const runOnAgents = (
  request: {
    readonly kind: 'apply' | 'plan';
    readonly node_ids: readonly string[];
    readonly modules?: readonly string[];
    readonly plan_run_id?: string;
  } & FanOutOptions,
) => {
  const { node_ids, modules = [], ...rest } = request;
  return started(
    call(startRun, { body: { ...rest, node_ids: [...node_ids], modules: [...modules] }, respondAsync: true }),
  );
};

export const cancelWholeRun = (run_id: string) => started(call(cancelRun, { params: { run_id } }));
