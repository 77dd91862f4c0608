import { MusterError } from '@muster/protocol';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { describeDatabases } from '../../test/databases/databases.ts';
import { withinRequest } from '../request-fields.ts';
import { ConstraintViolation, type Database } from './database.ts';
import { fromJson, toJson } from './json-text.ts';
import { jsonRows } from './params.ts';
import { defineQuery } from './query.ts';
import { type Precondition, type Statement, statement } from './transaction.ts';
import { defaultWriteQueueLimits } from './write-queue-limits.ts';

const put = defineQuery('settings/put', (db, p: { key: string; value: string }) =>
  db.insertInto('settings').values({ key: p.key, value: p.value }),
);
const upsert = defineQuery('settings/upsert', (db, p: { key: string; value: string }) =>
  db
    .insertInto('settings')
    .values({ key: p.key, value: p.value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: (eb) => eb.ref('excluded.value') }))
    .returning(['key', 'value']),
);
const setAll = defineQuery('settings/set all', (db, p: { value: string }) =>
  db.updateTable('settings').set({ value: p.value }),
);
const remove = defineQuery('settings/remove', (db, p: { key: string }) =>
  db.deleteFrom('settings').where('key', '=', p.key),
);
const byKey = defineQuery('settings/by key', (db, p: { key: string }) =>
  db.selectFrom('settings').selectAll().where('key', '=', p.key),
);
const everything = defineQuery('settings/all', (db) => db.selectFrom('settings').selectAll().orderBy('key'));
const amongKeys = defineQuery('settings/among', (db, p: { keys: readonly string[] }, d) =>
  db.selectFrom('settings').select('key').where(d.isIn('key', p.keys)).orderBy('key'),
);
const notAmongKeys = defineQuery('settings/not among', (db, p: { keys: readonly string[] }, d) =>
  db.selectFrom('settings').select('key').where(d.isNotIn('key', p.keys)).orderBy('key'),
);

const write = (database: Database, ...statements: Statement[]) => database.write({ name: 'settings/test', statements });
const keys = async (database: Database) => (await database.all(everything, {})).map((row) => row.key);
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : (error as Error).name),
  );

describeDatabases('database', (fixture) => {
  test('returns rows and changes for each statement', async () => {
    const database = await fixture.open();
    const first = statement(upsert, { key: 'a', value: '1' });
    const second = statement(put, { key: 'b', value: '2' });
    const all = statement(setAll, { value: '3' });
    const seen = statement(everything, {});
    const none = statement(remove, { key: 'nothing' });
    const result = await write(database, first, second, all, seen, none);
    expect(result.of(first)).toEqual({ rows: [{ key: 'a', value: '1' }], changes: 1 });
    expect(result.of(second)).toEqual({ rows: [], changes: 1 });
    expect(result.of(all).changes).toBe(2);
    expect(result.of(seen)).toEqual({
      rows: [
        { key: 'a', value: '3' },
        { key: 'b', value: '3' },
      ],
      changes: 0,
    });
    expect(result.of(none).changes).toBe(0);
    expect((await write(database)).results).toEqual([]);
  });

  test('returns written data from reads once the write’s promise has resolved', async () => {
    const database = await fixture.open();
    for (let number = 0; number < 20; number++) {
      await write(database, statement(upsert, { key: 'k', value: String(number) }));
      expect(await database.get(byKey, { key: 'k' })).toEqual({ key: 'k', value: String(number) });
    }
    expect(await database.get(byKey, { key: 'other' })).toBeUndefined();
  });

  test('rolls back the whole write when a later statement violates a constraint', async () => {
    const database = await fixture.open();
    await write(database, statement(put, { key: 'taken', value: '0' }));
    const failing = write(
      database,
      statement(setAll, { value: '9' }),
      statement(put, { key: 'new', value: '1' }),
      statement(put, { key: 'taken', value: '1' }),
    );
    await expect(failing).rejects.toThrow(ConstraintViolation);
    await expect(failing).rejects.toMatchObject({ constraint: 'unique' });
    expect(await database.all(everything, {})).toEqual([{ key: 'taken', value: '0' }]);
  });

  test.each<[Precondition['expect'], boolean]>([
    ['changed', true],
    ['changed', false],
    ['row', true],
    ['row', false],
    ['no_row', true],
    ['no_row', false],
  ])('checks the precondition %s (holds: %s)', async (expect_, fulfilled) => {
    const database = await fixture.open();
    await write(database, statement(put, { key: 'there', value: '0' }));
    const key = fulfilled === (expect_ !== 'no_row') ? 'there' : 'missing';
    const guard = expect_ === 'changed' ? remove : byKey;
    const unit = write(
      database,
      statement(put, { key: 'before', value: '1' }),
      statement(guard, { key }, { expect: expect_, else: 'module_not_found', detail: `about ${key}` }),
      statement(put, { key: 'after', value: '1' }),
    );
    if (fulfilled) {
      await unit;
      expect(await keys(database)).toEqual(expect_ === 'changed' ? ['after', 'before'] : ['after', 'before', 'there']);
    } else {
      await expect(unit).rejects.toMatchObject({ code: 'module_not_found', message: `about ${key}` });
      expect(await keys(database)).toEqual(['there']);
    }
  });

  test('rolls back a statement whose precondition does not hold', async () => {
    const database = await fixture.open();
    const guarded = statement(upsert, { key: 'k', value: 'v' }, { expect: 'no_row', else: 'name_taken' });
    expect(await code(write(database, guarded))).toBe('name_taken');
    expect(await keys(database)).toEqual([]);
  });

  test('commits writes that are concurrent with a failed write', async () => {
    const database = await fixture.open();
    const outcomes = await Promise.all(
      Array.from({ length: 60 }, (_, number) => {
        const key = `k${String(number).padStart(2, '0')}`;
        const first = statement(put, { key, value: 'v' });
        if (number % 3 === 0) return code(write(database, first));
        if (number % 3 === 1) return code(write(database, first, first));
        return code(write(database, first, statement(byKey, { key: '?' }, { expect: 'row', else: 'run_not_found' })));
      }),
    );
    for (const [number, outcome] of outcomes.entries())
      expect(outcome).toBe(['done', 'ConstraintViolation', 'run_not_found'][number % 3]);
    expect(await keys(database)).toEqual(
      Array.from({ length: 20 }, (_, index) => `k${String(index * 3).padStart(2, '0')}`),
    );
    expect(database.stats()).toMatchObject({ unitsCommitted: 20, unitsFailed: 40, queued: 0, queuedBytes: 0 });
  });

  test('commits only one of many concurrent writes that claim the same name after checking that it is free', async () => {
    const database = await fixture.open();
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, number) =>
        code(
          write(
            database,
            statement(byKey, { key: 'name' }, { expect: 'no_row', else: 'name_taken' }),
            statement(upsert, { key: 'name', value: String(number) }),
          ),
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'name_taken')).toHaveLength(11);
  });

  test('reports a violated constraint that no precondition guards', async () => {
    const database = await fixture.open();
    const tag = defineQuery('tags/orphan', (db) =>
      db.insertInto('agent_tags').values({ node_id: 'nobody', key: 'k', value: 'v' }),
    );
    await expect(write(database, statement(tag, {}))).rejects.toMatchObject({ constraint: 'foreign_key' });
    const nothing = defineQuery('settings/null', (db, p: { value: string }) =>
      db.insertInto('settings').values({ key: 'k', value: sql<string>`nullif(${p.value}, 'x')` }),
    );
    await expect(write(database, statement(nothing, { value: 'x' }))).rejects.toMatchObject({ constraint: 'not_null' });
  });

  test('reports a faulty statement as a bug with the write’s name, and continues', async () => {
    const database = await fixture.open();
    const wrong = defineQuery('wrong', () => sql<{ n: number }>`select n from no_such_table`);
    await expect(write(database, statement(put, { key: 'a', value: '1' }), statement(wrong, {}))).rejects.toThrow(
      /^settings\/test failed: .*no_such_table/,
    );
    await expect(database.all(wrong, {})).rejects.toThrow(/^Query wrong failed: .*no_such_table/);
    await expect(database.all(upsert, { key: 'a', value: '1' })).rejects.toThrow('Query settings/upsert failed');
    expect(await keys(database)).toEqual([]);
    await write(database, statement(put, { key: 'a', value: '1' }));
    expect(await keys(database)).toEqual(['a']);
  });

  test('returns stored JSON, text, and numbers unchanged', async () => {
    const database = await fixture.open();
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: codePoint }), fc.string({ unit: codePoint }), async (json, text) => {
        const stored = statement(upsert, { key: 'json', value: toJson(json) });
        const [row] = (await write(database, stored, statement(upsert, { key: 'text', value: text }))).of(stored).rows;
        // `JSON.stringify` writes negative zero as 0, and escapes lone surrogates.
        expect(fromJson<unknown>(row!.value)).toEqual(JSON.parse(JSON.stringify(json)));
        const back = await database.get(byKey, { key: 'text' });
        expect(back?.value).toBe(text.toWellFormed().replaceAll('\u0000', '\ufffd'));
      }),
      { numRuns: 150 },
    );
    const numbers = defineQuery('numbers', (db, p: { big: number; small: number; none: null }, d) =>
      db.selectNoFrom([
        d.typed(p.big, 'integer').as('big'),
        d.typed(p.small, 'integer').as('small'),
        d.typed(p.none, 'text').as('none'),
        sql<number>`(select count(*) from settings)`.as('counted'),
        sql<number>`(select sum(length(key)) from settings)`.as('summed'),
      ]),
    );
    const values = { big: Number.MAX_SAFE_INTEGER, small: -5, none: null };
    expect(await database.get(numbers, values)).toEqual({ ...values, counted: 2, summed: 8 });
  });

  test('stores booleans as 1 and 0', async () => {
    const database = await fixture.open();
    const add = defineQuery('operators/add', (db, p: { bootstrap: boolean }) =>
      db
        .insertInto('operators')
        .values({
          operator_id: 'o',
          public_key: 'k',
          username: 'u',
          role: 'admin',
          added_at: 1,
          added_by: 'bootstrap',
          bootstrap: p.bootstrap,
        })
        .returning(['bootstrap', 'removed_at']),
    );
    const adding = statement(add, { bootstrap: true });
    expect((await write(database, adding)).of(adding).rows).toEqual([{ bootstrap: 1, removed_at: null }]);
  });

  test('accepts lists of any length as one parameter', async () => {
    const database = await fixture.open();
    const rows = Array.from({ length: 3000 }, (_, n) => ({ key: `k${n}`, value: `it's "${n}"` }));
    const many = defineQuery('settings/many', (db, p: { rows: string }, d) =>
      db
        .insertInto('settings')
        .columns(['key', 'value'])
        .expression(
          db
            .selectFrom(d.rowsOf(p.rows, { key: 'text', value: 'text' }).as('given'))
            .select(['given.key', 'given.value'])
            .where(sql.lit(true)),
        )
        .onConflict((conflict) => conflict.column('key').doNothing()),
    );
    const inserting = statement(many, { rows: jsonRows([...rows, rows[0]!]) });
    expect((await write(database, inserting)).of(inserting).changes).toBe(3000);
    expect(await database.get(byKey, { key: 'k7' })).toEqual({ key: 'k7', value: `it's "7"` });
    const found = await database.all(amongKeys, {
      keys: [...rows.slice(0, 2500).map((row) => row.key), 'no', '{"', '\\'],
    });
    expect(found).toHaveLength(2500);
    expect(await database.all(amongKeys, { keys: [] })).toEqual([]);
    expect(await database.all(notAmongKeys, { keys: [] })).toHaveLength(3000);
    expect(await database.all(notAmongKeys, { keys: rows.slice(1).map((row) => row.key) })).toEqual([{ key: 'k0' }]);
    const positions = defineQuery('numbers/among', (db, p: { n: readonly number[] }, d) =>
      db
        .selectFrom(d.rowsOf('[{"n":1},{"n":2},{"n":null}]' as string, { n: 'integer' }).as('r'))
        .select('r.n')
        .where(d.isIn('r.n', p.n, 'integer')),
    );
    expect(await database.all(positions, { n: [2, 3] })).toEqual([{ n: 2 }]);
  });

  test('searches JSON and text', async () => {
    const database = await fixture.open();
    const odd = { 'a.b': 'dots', '$.x': 'path', '0': 'zero', 'it"s': 'quote', none: null };
    await write(
      database,
      statement(put, { key: 'object', value: JSON.stringify(odd) }),
      statement(put, { key: 'list', value: '["web","db"]' }),
    );
    const field = defineQuery('settings/field', (db, p: { name: string }, d) =>
      db.selectFrom('settings').select(d.jsonField('value', p.name).as('found')).where('key', '=', 'object'),
    );
    for (const [name, value] of Object.entries(odd))
      expect(await database.get(field, { name })).toEqual({ found: value });
    expect(await database.get(field, { name: 'x' })).toEqual({ found: null });
    const having = defineQuery('settings/having', (db, p: { name: string }, d) =>
      db.selectFrom('settings').select('key').where('key', '=', 'object').where(d.jsonObjectHas('value', p.name)),
    );
    for (const name of Object.keys(odd)) expect(await database.all(having, { name })).toEqual([{ key: 'object' }]);
    expect(await database.all(having, { name: 'x' })).toEqual([]);
    const holding = defineQuery('settings/holding', (db, p: { value: string }, d) =>
      db.selectFrom('settings').select('key').where('key', '=', 'list').where(d.jsonArrayHas('value', p.value)),
    );
    expect(await database.all(holding, { value: 'db' })).toEqual([{ key: 'list' }]);
    expect(await database.all(holding, { value: 'd' })).toEqual([]);
    const containing = defineQuery('settings/containing', (db, p: { text: string }, d) =>
      db.selectFrom('settings').select('key').where(d.containsText('value', p.text)).orderBy('key'),
    );
    expect(await database.all(containing, { text: 'WEB' })).toEqual([{ key: 'list' }]);
    expect(await database.all(containing, { text: '%' })).toEqual([]);
    const larger = defineQuery('larger', (db, p: { a: number | null; b: number | null }, d) =>
      db.selectNoFrom(d.greatest(d.typed(p.a, 'integer'), d.typed(p.b, 'integer')).as('value')),
    );
    expect(await database.get(larger, { a: 3, b: 12 })).toEqual({ value: 12 });
    expect(await database.get(larger, { a: 3, b: null })).toEqual({ value: null });
  });

  test('orders text by code point', async () => {
    const database = await fixture.open();
    const names = ['Zeta', 'alpha', 'Ärger', 'a-b', 'a_b', 'aB', '10', '9', '😀', 'ﬁ'];
    await write(database, ...names.map((key) => statement(put, { key, value: '' })));
    const byCodePoint = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(await keys(database)).toEqual(byCodePoint);
  });

  test('refuses writes while the queue is full, and recovers', async () => {
    const database = await fixture.open({ limits: { ...defaultWriteQueueLimits, maxUnits: 3, maxBytes: 100_000 } });
    const large = (key: string) => write(database, statement(put, { key, value: 'x'.repeat(60_000) }));
    expect(await Promise.all([large('a'), large('b')].map(code))).toEqual(['done', 'storage_unavailable']);
    const small = (key: string) => write(database, statement(put, { key, value: '' }));
    expect(await Promise.all(['c', 'd', 'e', 'f'].map((key) => code(small(key))))).toEqual([
      'done',
      'done',
      'done',
      'storage_unavailable',
    ]);
    await write(database, statement(put, { key: 'huge', value: 'x'.repeat(200_000) }));
    expect(await keys(database)).toEqual(['a', 'c', 'd', 'e', 'huge']);
    expect(database.stats()).toMatchObject({ queued: 0, queuedBytes: 0 });
  });

  test('refuses an oversized write from an agent, and reserves queue space for other writes', async () => {
    const limits = { maxUnits: 100, maxBytes: 200_000, maxAgentUnitBytes: 70_000, maxAgentBytes: 100_000 };
    const database = await fixture.open({ limits });
    const put = (key: string, length: number, ofAgent: boolean) =>
      code(
        database.write({
          name: 'test/unit',
          statements: [statement(upsert, { key, value: 'x'.repeat(length) })],
          ofAgent,
        }),
      );
    // The write exceeds the byte limit, so it is refused even if the queue is empty.
    expect(
      await code(
        database.write({
          name: 'test/unit',
          statements: [statement(upsert, { key: 'e', value: '€'.repeat(30_000) })],
          ofAgent: true,
        }),
      ),
    ).toBe('unit_too_large');
    expect(
      await Promise.all([
        put('a', 100_000, true),
        put('b', 60_000, true),
        put('c', 60_000, true),
        put('d', 60_000, false),
        put('e', 60_000, false),
      ]),
    ).toEqual(['unit_too_large', 'done', 'storage_unavailable', 'done', 'done']);
    expect(await put('c', 60_000, true)).toBe('done');
    expect(await keys(database)).toEqual(['b', 'c', 'd', 'e']);
    expect(database.stats()).toMatchObject({ queued: 0, queuedBytes: 0 });
  });

  test('completes accepted writes on close, and refuses further writes', async () => {
    const at = await fixture.newAddress();
    const database = await fixture.open({ at });
    const writes = Array.from({ length: 30 }, (_, n) => write(database, statement(put, { key: `k${n}`, value: '' })));
    const closing = database.close();
    expect(await code(write(database, statement(put, { key: 'late', value: '' })))).toBe('draining');
    expect(await code(database.all(everything, {}))).toBe('draining');
    await Promise.all(writes);
    await closing;
    await database.close();
    expect(await keys(await fixture.open({ at }))).toHaveLength(30);
  });

  test('says after a commit of the same request that the outcome is unknown, and only then', async () => {
    const database = await fixture.open({ limits: { ...defaultWriteQueueLimits, maxBytes: 100_000 } });
    const large = (key: string) => statement(put, { key, value: 'x'.repeat(60_000) });
    const refused = statement(
      byKey,
      { key: 'a' },
      { expect: 'no_row', else: 'storage_unavailable', detail: 'is there' },
    );
    const taken = statement(byKey, { key: 'a' }, { expect: 'no_row', else: 'name_taken' });
    const outcomes = async () => [
      await write(database, refused).catch(({ code, message }) => `${code}: ${message}`),
      await code(write(database, taken)),
      // The first write fills the queue.
      await Promise.all([write(database, large('l')), write(database, large('m'))].map(code)),
      await write(database, statement(remove, { key: 'l' })).then(() => 'done'),
    ];
    let late = () => {};
    let outlived: Promise<unknown> = Promise.resolve();
    await write(database, statement(put, { key: 'a', value: '' }));
    await withinRequest('one', async () => {
      // A read and an empty transaction change nothing.
      await database.all(everything, {});
      await write(database);
      expect(await outcomes()).toEqual([
        'storage_unavailable: is there',
        'name_taken',
        ['done', 'storage_unavailable'],
        'done',
      ]);
    });
    await withinRequest('two', async () => {
      await write(database, statement(upsert, { key: 'a', value: '2' }));
      expect(await outcomes()).toEqual([
        'outcome_unknown: is there',
        'name_taken',
        ['done', 'outcome_unknown'],
        'done',
      ]);
      outlived = new Promise<void>((resolve) => {
        late = resolve;
      }).then(() => code(write(database, refused)));
    });
    late();
    expect(await outlived).toBe('storage_unavailable');
    await withinRequest('three', async () => {
      await database.alone(upsert, { key: 'a', value: '3' });
      await database.close();
      expect(await code(write(database, statement(put, { key: 'late', value: '' })))).toBe('outcome_unknown');
      expect(await code(database.all(everything, {}))).toBe('outcome_unknown');
    });
    await withinRequest('four', async () => {
      expect(await code(database.all(everything, {}))).toBe('draining');
      expect(await code(database.alone(upsert, { key: 'a', value: '4' }))).toBe('draining');
    });
  });

  test('serializes concurrent writes', async () => {
    const database = await fixture.open();
    const accounts = ['a', 'b', 'c'];
    const debit = defineQuery('account/debit', (db, p: { key: string; amount: number }) =>
      db
        .updateTable('spool_ack')
        .set((eb) => ({ seq: eb('seq', '-', p.amount) }))
        .where('node_id', '=', p.key)
        .where('seq', '>=', p.amount),
    );
    const credit = defineQuery('account/credit', (db, p: { key: string; amount: number }) =>
      db
        .updateTable('spool_ack')
        .set((eb) => ({ seq: eb('seq', '+', p.amount) }))
        .where('node_id', '=', p.key),
    );
    const open = defineQuery('account/open', (db, p: { key: string; amount: number }) =>
      db
        .insertInto('spool_ack')
        .values({ node_id: p.key, instance_id: '', seq: p.amount })
        .onConflict((conflict) => conflict.column('node_id').doUpdateSet({ seq: p.amount })),
    );
    const balances = defineQuery('account/balances', (db) =>
      db.selectFrom('spool_ack').select(['node_id', 'seq']).orderBy('node_id'),
    );
    const transfer = fc.record({
      from: fc.constantFrom(...accounts),
      // The credit fails after the debit, because the account does not exist.
      to: fc.constantFrom(...accounts, 'closed'),
      amount: fc.integer({ min: 1, max: 60 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(transfer, { minLength: 1, maxLength: fixture.kind === 'sqlite' ? 25 : 12 }),
        async (transfers) => {
          await database.write({
            name: 'account/open',
            statements: accounts.map((key) => statement(open, { key, amount: 100 })),
          });
          const outcomes = await Promise.all(
            transfers.map(({ from, to, amount }) =>
              code(
                database.write({
                  name: 'account/transfer',
                  statements: [
                    statement(debit, { key: from, amount }, { expect: 'changed', else: 'plan_stale' }),
                    statement(credit, { key: to, amount }, { expect: 'changed', else: 'agent_not_found' }),
                  ],
                }),
              ),
            ),
          );
          const model = new Map(accounts.map((key) => [key, 100]));
          const expected = transfers.map(({ from, to, amount }, index) => {
            // PostgreSQL may run concurrent writes in any order, so the test checks only their outcomes.
            const covered = fixture.kind === 'sqlite' ? model.get(from)! >= amount : outcomes[index] !== 'plan_stale';
            if (!covered) return 'plan_stale';
            if (!model.has(to)) return 'agent_not_found';
            model.set(from, model.get(from)! - amount);
            model.set(to, model.get(to)! + amount);
            return 'done';
          });
          expect(outcomes).toEqual(expected);
          const rows = await database.all(balances, {});
          expect(rows).toEqual(accounts.map((key) => ({ node_id: key, seq: model.get(key) })));
          for (const { seq } of rows) expect(seq).toBeGreaterThanOrEqual(0);
        },
      ),
      { numRuns: fixture.kind === 'sqlite' ? 100 : 5 },
    );
  });

  test('assigns increasing sequence numbers to events', async () => {
    const database = await fixture.open();
    const add = defineQuery('audit/add', (db, p: { id: string }) =>
      db
        .insertInto('audit_events')
        .values({
          id: p.id,
          event_type: 'agent.tagged',
          category: 'test',
          severity: 'info',
          timestamp_ms: 1,
          actor_type: '',
          actor_id: '',
          actor_name: '',
          target_type: '',
          target_id: '',
          target_name: '',
          summary: '',
          metadata: toJson<Record<string, unknown>>({}),
        })
        .returning('seq'),
    );
    const seen: number[] = [];
    for (const id of ['a', 'b', 'c']) {
      const adding = statement(add, { id });
      seen.push((await write(database, adding)).of(adding).rows[0]!.seq);
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(new Set(seen).size).toBe(3);
  });
});
