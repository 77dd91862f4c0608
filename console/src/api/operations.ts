import {
  applyAgent,
  cancelOperation,
  getOperation,
  getOperationOutput,
  listAgentOperations,
  listOperations,
  type Operation,
  planAgent,
} from '@muster/protocol/http';
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { cacheAnswer, queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export interface OperationFilter {
  readonly status?: string;
  readonly kind?: string;
  /** Node id or name. */
  readonly agent?: string;
}

const pageSize = 100;

/** Operations in newest-first order, in pages. If the filter names an agent, contains only its operations. */
export const operationsQuery = ({ status, kind, agent }: OperationFilter = {}) =>
  infiniteQueryOptions({
    queryKey: [...keys.operations, agent ?? '', status ?? '', kind ?? ''],
    queryFn: ({ pageParam, signal }) => {
      const query = {
        limit: pageSize,
        ...(pageParam === null ? {} : { cursor: pageParam }),
        ...(status ? { status } : {}),
        ...(kind ? { kind } : {}),
      } as never;
      return agent
        ? call(listAgentOperations, { params: { node_id: agent }, query, signal })
        : call(listOperations, { query, signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  });

/** An agent's newest apply, with any status or with the given status; null if there is none. */
export const lastApplyQuery = (node_id: string, status?: 'succeeded') =>
  queryOptions({
    queryKey: [...keys.operations, 'last-apply', node_id, status ?? null],
    queryFn: async ({ signal }) => {
      const query = { limit: 1, kind: 'apply', ...(status === undefined ? {} : { status }) } as never;
      const { operations } = await call(listAgentOperations, { params: { node_id }, query, signal });
      return operations[0] ?? null;
    },
  });

export const operationQuery = (id: string) =>
  routeQuery(keys.operation(id), getOperation, { params: { operation_id: id } });

export const outputQuery = ({ operation_id, node_id }: Pick<Operation, 'operation_id' | 'node_id'>) =>
  routeQuery(keys.output(operation_id), getOperationOutput, { params: { node_id, operation_id } });

export interface ApplyRequest {
  readonly node_id: string;
  readonly modules: readonly string[];
  /** Applies exactly this plan. The request is refused if the plan is stale. */
  readonly plan_id?: string;
  /** Whether to queue the apply until an offline agent reconnects. By default, the request is refused. */
  readonly queue?: boolean;
  /** Seconds to wait for a queued agent. */
  readonly ttl?: number;
}

/** Starts an apply and returns without waiting for it to finish. Events report its progress. */
export const startApply = ({ node_id, modules, queue = false, ...rest }: ApplyRequest) =>
  started(
    call(applyAgent, {
      params: { node_id },
      body: { ...rest, modules: [...modules], offline: queue ? 'queue' : 'report' },
      respondAsync: true,
    }),
  );

/** The text of a module that is not stored. */
export interface DraftText {
  readonly content: string;
  /** The revision that provides its files; undefined for the newest. */
  readonly filesOf?: number | undefined;
}

interface PlanRequest extends Pick<ApplyRequest, 'node_id' | 'modules'> {
  /** Planned instead of the stored module with the same name. */
  readonly draft?: DraftText;
}

export function startPlan({ node_id, modules, draft }: PlanRequest) {
  const body = {
    modules: [...modules],
    ...(draft === undefined ? {} : { draft: { content: draft.content, files_of: draft.filesOf } }),
  };
  return started(call(planAgent, { params: { node_id }, body, respondAsync: true }));
}

/** Stores the returned operation in the cache. */
async function started(answer: Promise<Operation>): Promise<Operation> {
  const operation = await answer;
  cacheAnswer(keys.operation(operation.operation_id), operation);
  void queryClient.invalidateQueries({ queryKey: keys.operations });
  return operation;
}

export const cancel = async (operation_id: string): Promise<Operation> =>
  await started(call(cancelOperation, { params: { operation_id } }));
