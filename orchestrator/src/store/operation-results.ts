import { defineQuery } from './query.ts';

/** What operations did, resource by resource, and what their scripts printed. */

export const putResourceResults = defineQuery(
  'operations/put results',
  (db, p: { operation_id: string; rows: string }, d) =>
    db
      .insertInto('operation_resources')
      .columns(['operation_id', 'position', 'result'])
      .expression((e) =>
        e
          .selectFrom(d.rowsOf(p.rows, { position: 'integer', result: 'text' }).as('r'))
          .select((s) => [
            d.typed(p.operation_id, 'text').as('operation_id'),
            s.ref('r.position').as('position'),
            s.ref('r.result').as('result'),
          ])
          .where(e.lit(true)),
      )
      .onConflict((c) =>
        c.columns(['operation_id', 'position']).doUpdateSet({ result: (e) => e.ref('excluded.result') }),
      ),
);

export const resourceResults = defineQuery('operations/results', (db, p: { operation_id: string }) =>
  db
    .selectFrom('operation_resources')
    .select(['position', 'result'])
    .where('operation_id', '=', p.operation_id)
    .orderBy('position'),
);

export const putOutput = defineQuery(
  'operations/put output',
  (
    db,
    p: {
      operation_id: string;
      resource_key: string;
      stdout: string;
      stderr: string;
      exit_code: number | null;
      truncated: boolean;
    },
  ) =>
    db
      .insertInto('operation_outputs')
      .values({
        operation_id: p.operation_id,
        resource_key: p.resource_key,
        stdout: p.stdout,
        stderr: p.stderr,
        exit_code: p.exit_code,
        truncated: p.truncated,
      })
      .onConflict((c) =>
        c.columns(['operation_id', 'resource_key']).doUpdateSet({
          stdout: (e) => e.ref('excluded.stdout'),
          stderr: (e) => e.ref('excluded.stderr'),
          exit_code: (e) => e.ref('excluded.exit_code'),
          truncated: (e) => e.ref('excluded.truncated'),
        }),
      ),
);

export const outputsOf = defineQuery('operations/outputs', (db, p: { operation_id: string }) =>
  db.selectFrom('operation_outputs').selectAll().where('operation_id', '=', p.operation_id).orderBy('resource_key'),
);
