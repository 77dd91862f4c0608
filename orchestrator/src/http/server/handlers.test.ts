import type { Agent, Operation } from '@muster/protocol/http';
import * as table from '@muster/protocol/http';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { Chunked, type Handlers, Reply, type RouteId } from './handlers.ts';

declare const operation: Operation;
declare const agents: Agent[];

describe('handlers', () => {
  test('exports every route under its ID', () => {
    const exported = Object.entries(table).filter(([, value]) => table.routes.includes(value as table.Route));
    expect(exported).toHaveLength(table.routes.length);
    for (const [name, route] of exported) expect((route as table.Route).id).toBe(name);
  });

  test('derives handler types from the route table', () => {
    expectTypeOf<'routes'>().not.toExtend<RouteId>();
    expectTypeOf<Parameters<Handlers['applyAgent']>[0]['body']['ttl']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Parameters<Handlers['getStatus']>[0]['session']>().toEqualTypeOf<null>();
    expectTypeOf<Parameters<Handlers['listAgents']>[0]['query']['limit']>().toEqualTypeOf<number | undefined>();
    type Part = Partial<Handlers>;
    const good = () =>
      ({
        applyAgent: async () => new Reply(202, operation, { location: '/api/v1/state/operations/1' }),
        planAgent: () => operation,
        listAgents: () => new Chunked([agents]),
        logout: async () => {},
        putTags: () => undefined,
        latestDrift: () => null,
      }) satisfies Part;
    // @ts-expect-error: the route does not answer 201
    const status = (): Part => ({ applyAgent: () => new Reply(201, operation) });
    // @ts-expect-error: not the route's body
    const body = (): Part => ({ getAgent: () => operation });
    // @ts-expect-error: the body is missing
    const nothing = (): Part => ({ getAgent: () => {} });
    // @ts-expect-error: only arrays can be chunked
    const pieces = (): Part => ({ getAgent: () => new Chunked(agents) });
    expect([good, status, body, nothing, pieces]).toHaveLength(5);
  });
});
