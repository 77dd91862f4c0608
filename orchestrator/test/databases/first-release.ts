import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';
import { defineQuery } from '../../src/store/query.ts';
import { statement } from '../../src/store/transaction.ts';

/** The data in a database with the first schema: an agent, its applied state, drift, interrupted runs, and events. */

const node = 'ab'.repeat(16);
const publicKey = '12'.repeat(32);
const id = (n: number) => `01HF7YAT00000000000000000${n}`;
const summary = '{"total":1,"unchanged":1,"changed":0,"removed":0,"failed":0,"skipped":0}';
const event = (n: number, type: string) =>
  `('${id(n)}', '${type}', '${type.split('.')[0]}', 'info', ${1_700_000_000_000 + n}, 'operator', '${'cd'.repeat(16)}', 'ada', 'agent', '${node}', 'web-1', 'it happened ${n}', '{}')`;

const rows = [
  `insert into operators values ('${'cd'.repeat(16)}', '${'ef'.repeat(32)}', 'ada', 'admin', 1700000000, 'bootstrap', 1, null, null)`,
  `insert into agents values ('${node}', '${publicKey}', 'web-1', 'approved', '0.1.0', '{"platform":"linux"}', 'web-1', '192.0.2.7',
    1700000000, 1700000000, 1700000000, 'flag', null, 1700000000)`,
  `insert into agent_tags values ('${node}', 'role', 'web')`,
  `insert into modules values ('motd', 1, 1700000000, '${'cd'.repeat(16)}')`,
  `insert into module_revisions values ('motd', 1, 'name: motd', 'sha256:00', 1700000000, '${'cd'.repeat(16)}')`,
  `insert into assignments values ('base', '["motd"]', 'role=web', null, 'enforce', 0, '{}', 1700000000, '${'cd'.repeat(16)}')`,
  `insert into operation_payloads values ('d1', '{"resources":[],"keep_modules":[]}')`,
  ...[
    [1, 'succeeded', 1_700_000_010, 'null'],
    [2, 'queued', 'null', `'${id(6)}'`],
  ].map(
    ([n, status, finished, run]) =>
      `insert into operations (operation_id, node_id, kind, status, modules, requested_by, run_id, created_at, dispatched_at, started_at,
        finished_at, expires_at, summary, payload_digest)
       values ('${id(n as number)}', '${node}', 'apply', '${status}', '["motd"]', '${'cd'.repeat(16)}', ${run}, 1700000000, ${finished}, ${finished},
        ${finished}, 4000000000, ${status === 'queued' ? 'null' : `'${summary}'`}, 'd1')`,
  ),
  `insert into applied_resources values ('${node}', 'motd/f', 'motd', 'f', 'file-unix', '/f', '${id(1)}', 1700000010, 'applied', null)`,
  `insert into agent_state values ('${node}', '${id(1)}', 1700000010)`,
  ...[
    [3, 'in_sync'],
    [4, 'drifted'],
  ].map(
    ([n, status]) =>
      `insert into drift_records values ('${id(n as number)}', '${node}', '${id(n as number)}', '${status}', 'operator', 1700000020, '${id(1)}',
        '${summary}', '[]', null)`,
  ),
  `insert into runs values ('${id(5)}', 'base', 'apply', 'running', 1700000000, null, '${'cd'.repeat(16)}', '{}')`,
  `insert into runs values ('${id(6)}', 'base', 'apply', 'running', 1700000000, null, '${'cd'.repeat(16)}', '{}')`,
  // The first run has not reached any agent. The second run waits for its agent.
  `insert into run_results values ('${id(5)}', '${node}', null, 'queued', null)`,
  `insert into run_results values ('${id(6)}', '${node}', '${id(2)}', 'queued', null)`,
  `insert into audit_events (id, event_type, category, severity, timestamp_ms, actor_type, actor_id, actor_name, target_type, target_id,
    target_name, summary, metadata) values ${[event(7, 'agent.approved'), event(8, 'module.uploaded'), event(9, 'agent.tagged')].join(', ')}`,
];

export const firstRelease = {
  node,
  publicKey,
  agentName: 'web-1',
  applied: id(1),
  waiting: id(2),
  drifted: id(4),
  runs: [id(5), id(6)] as const,
};

/** Inserts the data into a database with the first schema. */
export async function fillFirstRelease(database: Database): Promise<void> {
  await database.write({
    name: 'test/first release',
    statements: rows.map((text) =>
      statement(
        defineQuery('test/first release', () => sql.raw(text)),
        {},
      ),
    ),
  });
}
