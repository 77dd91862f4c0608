import { sql } from 'kysely';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { jsonRows } from './params.ts';
import { bind, defineQuery, defineVariants, type Query } from './query.ts';
import { statement } from './transaction.ts';

const asJson = (list: readonly unknown[]) => JSON.stringify(list);

const agentNamed = defineQuery('agents/named', (db, p: { name: string; status: 'approved' }) =>
  db
    .selectFrom('agents')
    .select(['node_id', 'last_seen_at'])
    .where('name', '=', p.name)
    .where('status', '=', p.status)
    .limit(1),
);

const insertTag = defineQuery('tags/insert', (db, p: { node_id: string; key: string; value: string }) =>
  db
    .insertInto('agent_tags')
    .values({ node_id: p.node_id, key: p.key, value: p.value })
    .onConflict((conflict) => conflict.columns(['node_id', 'key']).doUpdateSet({ value: p.value })),
);

const agentsIn = defineQuery('agents/in', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('agents').select('node_id').where(d.isIn('node_id', p.ids)),
);

const list = defineVariants(
  'agents/list',
  (db, p: { status: 'approved'; limit: number }, _d, v: { status: boolean }) => {
    const query = db.selectFrom('agents').select('node_id').limit(p.limit);
    return v.status ? query.where('status', '=', p.status) : query;
  },
);

describe('defineQuery', () => {
  test('infers parameter and row types', () => {
    expectTypeOf(agentNamed).toEqualTypeOf<
      Query<{ name: string; status: 'approved' }, { node_id: string; last_seen_at: number }>
    >();
    expectTypeOf(insertTag).toEqualTypeOf<Query<{ node_id: string; key: string; value: string }, never>>();
    const counted = defineQuery('agents/count', (db) =>
      db.selectFrom('agents').select((eb) => eb.fn.countAll<number>().as('count')),
    );
    expectTypeOf(counted).toEqualTypeOf<Query<Record<never, never>, { count: number }>>();
    const raw = defineQuery('raw', () => sql<{ one: number }>`select 1 as one`);
    expectTypeOf(raw).toEqualTypeOf<Query<Record<never, never>, { one: number }>>();
    // @ts-expect-error a parameter is missing
    statement(agentNamed, { name: 'x' });
    // @ts-expect-error an unknown parameter
    statement(agentsIn, { ids: [], other: 1 });
  });

  test('compiles a query once for each kind of database, and keeps parameter positions', () => {
    expect(agentNamed.compiled('sqlite')).toBe(agentNamed.compiled('sqlite'));
    expect(insertTag.compiled('sqlite').slots).toHaveLength(4);
    expect(bind(insertTag, 'sqlite', { node_id: 'n', key: 'k', value: 'v' }, asJson)).toEqual(['n', 'k', 'v', 'v']);
    expect(agentNamed.compiled('postgres').sql).toContain('$2');
    expect(bind(agentNamed, 'postgres', { name: 'a', status: 'approved' }, asJson)).toEqual(['a', 'approved']);
  });

  test('writes constants into the SQL text for the planner', () => {
    const open = defineQuery('operations/open', (db, p: { node_id: string }) =>
      db
        .selectFrom('operations')
        .select('operation_id')
        .where('status', 'in', ['queued', 'running'])
        .where('error', '=', "it's")
        .where('node_id', '=', p.node_id),
    );
    for (const kind of ['sqlite', 'postgres'] as const) {
      expect(open.compiled(kind).sql).toContain(`"status" in ('queued', 'running') and "error" = 'it''s'`);
      expect(open.compiled(kind).slots).toEqual([{ param: 'node_id', list: false }]);
    }
    const flags = defineQuery('tokens/insert', (db, p: { id: string }) =>
      db.updateTable('enrolment_tokens').set({ approve: true, revoked_at: null }).where('id', '=', p.id),
    );
    expect(flags.compiled('postgres').sql).toContain('set "approve" = 1, "revoked_at" = null');
  });

  test('hides parameter values from SQLite’s planner, which would otherwise replan on each execution', () => {
    expect(agentNamed.compiled('sqlite').sql).toContain('where "name" = +? and "status" = +? limit 1');
    expect(list({ status: false }).compiled('sqlite').sql).toContain('limit +?');
    expect(insertTag.compiled('sqlite').sql).toContain('values (+?, +?, +?)');
  });

  test('binds a list in each database’s format', () => {
    expect(agentsIn.compiled('sqlite').sql).toBe(
      'select "node_id" from "agents" where "node_id" in (select value from json_each(+?))',
    );
    expect(agentsIn.compiled('postgres').sql).toBe('select "node_id" from "agents" where "node_id" = any($1::text[])');
    expect(bind(agentsIn, 'sqlite', { ids: ['a'] }, asJson)).toEqual(['["a"]']);
  });

  test('throws if a parameter is missing or has the wrong form', () => {
    expect(() => bind(agentNamed, 'sqlite', { name: 'a' }, asJson)).toThrow(
      'agents/named: parameter status is missing',
    );
    expect(() => bind(agentsIn, 'sqlite', { ids: 'a' }, asJson)).toThrow('must be a list');
    expect(() => bind(agentNamed, 'sqlite', { name: ['a'], status: 'approved' }, asJson)).toThrow('must not be a list');
    expect(() => bind(list({ status: false }), 'sqlite', { limit: Number.NaN }, asJson)).toThrow('NaN');
  });

  test('replaces characters that PostgreSQL cannot store', () => {
    expect(bind(agentNamed, 'sqlite', { name: 'a\u0000b\ud800c', status: 'approved' }, asJson)[0]).toBe(
      'a\ufffdb\ufffdc',
    );
    expect(JSON.parse(jsonRows([{ text: 'a\u0000', yes: true, none: null }]))).toEqual([
      { text: 'a\ufffd', yes: 1, none: null },
    ]);
  });
});

describe('defineVariants', () => {
  test('builds each variant of a query once, and requires only the parameters that the variant uses', () => {
    expect(list({ status: true })).toBe(list({ status: true }));
    expect(list({ status: true })).not.toBe(list({ status: false }));
    expect(bind(list({ status: false }), 'sqlite', { limit: 5 }, asJson)).toEqual([5]);
    expect(bind(list({ status: true }), 'sqlite', { limit: 5, status: 'approved' }, asJson)).toEqual(['approved', 5]);
  });

  test('throws if a value is used as a variant', () => {
    const wrong = defineVariants('wrong', (db, p: { limit: number }, _d, v: { name: string }) =>
      db.selectFrom('agents').select('node_id').where('name', '=', v.name).limit(p.limit),
    );
    expect(() => {
      for (let n = 0; n < 600; n++) wrong({ name: `agent-${n}` });
    }).toThrow('more than 512 variants');
  });
});
