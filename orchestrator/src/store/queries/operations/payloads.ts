import type { JsonText } from '../../json-text.ts';
import { defineQuery } from '../../query.ts';

/**
 * Digest of the desired state that was last applied on each operation's machine; null if none was applied or its
 * payload is no longer stored.
 */
export const appliedBefore = defineQuery(
  'operations/applied before',
  (db, p: { operation_ids: readonly string[] }, d) =>
    db
      .selectFrom('operations')
      .leftJoin('agent_state', 'agent_state.node_id', 'operations.node_id')
      .leftJoin('operations as applied', 'applied.operation_id', 'agent_state.snapshot_operation_id')
      .select(['operations.operation_id', 'applied.payload_digest'])
      .where(d.isIn('operations.operation_id', p.operation_ids)),
);

export const putPayload = defineQuery(
  'operations/put payload',
  (db, p: { digest: string; payload: JsonText<unknown> }) =>
    db
      .insertInto('operation_payloads')
      .values({ digest: p.digest, payload: p.payload })
      .onConflict((c) => c.column('digest').doNothing()),
);

export const payloadByDigest = defineQuery('operations/payload', (db, p: { digest: string }) =>
  db.selectFrom('operation_payloads').select('payload').where('digest', '=', p.digest),
);

/** Number of resources in the desired state of an operation. Returns no row if the desired state is no longer stored. */
export const desiredResourceCount = defineQuery(
  'operations/desired resource count',
  (db, p: { operation_id: string }, d) =>
    db
      .selectFrom('operations')
      .innerJoin('operation_payloads', 'operation_payloads.digest', 'operations.payload_digest')
      .select(d.jsonLength('operation_payloads.payload', 'resources').as('count'))
      .where('operation_id', '=', p.operation_id),
);

/** For preconditions: returns a row if the payload exists. */
export const payloadSeen = defineQuery('operations/payload seen', (db, p: { digest: string }) =>
  db.selectFrom('operation_payloads').select('digest').where('digest', '=', p.digest),
);

/**
 * Digests of the dispatched payload, of the payload that a drift check compares with, and of the payload that was last
 * applied on the machine.
 */
export const payloadsReportedOn = defineQuery('operations/payloads reported on', (db, p: { operation_id: string }) =>
  db
    .selectFrom('operations')
    .leftJoin('operations as snapshot', 'snapshot.operation_id', 'operations.snapshot_operation_id')
    .leftJoin('agent_state', 'agent_state.node_id', 'operations.node_id')
    .leftJoin('operations as applied', 'applied.operation_id', 'agent_state.snapshot_operation_id')
    .select([
      'operations.payload_digest as own',
      'snapshot.payload_digest as snapshot',
      'applied.payload_digest as applied',
    ])
    .where('operations.operation_id', '=', p.operation_id),
);
