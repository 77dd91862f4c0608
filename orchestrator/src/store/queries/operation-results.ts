import { bytesBefore, bytesOf } from '../page-bytes.ts';
import { defineQuery } from '../query.ts';

/** Operation results by resource, and the output of scripts. */

/** Stores consecutive results, one per line, in one row. Does nothing if a row begins at the same position. */
export const putResourceResults = defineQuery(
  'operations/put results',
  (db, p: { operation_id: string; position: number; results: string }) =>
    db
      .insertInto('operation_resources')
      .values({ operation_id: p.operation_id, position: p.position, result: p.results })
      .onConflict((c) => c.columns(['operation_id', 'position']).doNothing()),
);

/** Used when an agent restarts a plan from the beginning. */
export const deleteResourceResults = defineQuery('operations/delete results', (db, p: { operation_id: string }) =>
  db.deleteFrom('operation_resources').where('operation_id', '=', p.operation_id),
);

const pageRows = 1000;

/** Rows with positions greater than `after`. Limited to about `bytes` in total, but returns at least one row. */
export const resultPage = defineQuery(
  'operations/results',
  (db, p: { operation_id: string; after: number; bytes: number }) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom((inner) =>
            inner
              .selectFrom('operation_resources')
              .select('position')
              .select(bytesOf('result').as('bytes'))
              .where('operation_id', '=', p.operation_id)
              .where('position', '>', p.after)
              .orderBy('position')
              .limit(pageRows)
              .as('sized'),
          )
          .select('position')
          .select(bytesBefore(['position']).as('before'))
          .as('cut'),
      )
      .innerJoin('operation_resources', 'operation_resources.position', 'cut.position')
      .select(['operation_resources.position', 'operation_resources.result as results'])
      .where('operation_resources.operation_id', '=', p.operation_id)
      .where('cut.before', '<', p.bytes)
      .orderBy('operation_resources.position'),
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

/** Outputs with resource keys greater than `after`. Limited to about `bytes` in total, but returns at least one output. */
export const outputPage = defineQuery(
  'operations/outputs',
  (db, p: { operation_id: string; after: string; bytes: number }) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom((inner) =>
            inner
              .selectFrom('operation_outputs')
              .select('resource_key')
              .select(bytesOf('resource_key', 'stdout', 'stderr').as('bytes'))
              .where('operation_id', '=', p.operation_id)
              .where('resource_key', '>', p.after)
              .orderBy('resource_key')
              .limit(pageRows)
              .as('sized'),
          )
          .select('resource_key')
          .select(bytesBefore(['resource_key']).as('before'))
          .as('cut'),
      )
      .innerJoin('operation_outputs', 'operation_outputs.resource_key', 'cut.resource_key')
      .selectAll('operation_outputs')
      .where('operation_outputs.operation_id', '=', p.operation_id)
      .where('cut.before', '<', p.bytes)
      .orderBy('operation_outputs.resource_key'),
);
