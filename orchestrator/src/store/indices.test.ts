import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrations } from './migrations/index.ts';
import { changedLinks } from './queries/agents/agent-links.ts';
import { unseenAgents } from './queries/agents/agents.ts';
import { auditKeys, chainRows, countUnplaced, firstPlaced, placedEvents, unplacedEvents } from './queries/audit.ts';
import { basesOfOpenRuns, openOperationWith, removedWithFiles } from './queries/contents.ts';
import { deliveriesBefore, oldestDeliveries } from './queries/deliveries.ts';
import { driftIds, latestDrifts } from './queries/drift.ts';
import { dueForDrift, pullInDriftDue, scheduledChecks } from './queries/drift-schedule.ts';
import { notificationBefore, notifications, prunableNotifications, unreadCount } from './queries/notifications.ts';
import { agentsWithWork, oldestOpen } from './queries/operations/dispatch.ts';
import { openOperations, operations } from './queries/operations/operations.ts';
import {
  agentsByLatestDrift,
  agentsByStatus,
  countOfActiveTerminals,
  countOfLostAgents,
  countOfOpenRuns,
  openOperationsByStatus,
  pendingAgents,
  waitingDeliveries,
} from './queries/overview.ts';
import {
  agentsDrifted,
  agentsNotAsApplied,
  agentsOutdated,
  agentsWithFailedApply,
  agentsWithFailedCheck,
} from './queries/reconcile.ts';
import { failStranded, runs } from './queries/runs.ts';
import { secretsByExpiry } from './queries/secrets.ts';
import { answeredSince, deleteAnsweredAfter, newestAnswered } from './queries/sign-in-challenges.ts';
import { strandedTerminals, terminals, ticketBeyond } from './queries/terminals.ts';
import { openSelectors, windows } from './queries/windows.ts';
import type { AnyQuery } from './query.ts';
import { oldDriftRecords, operationIds, unneededPayloads } from './retention.ts';
import { migrateSqlite } from './sqlite/migrate-sqlite.ts';

/**
 * Verifies that each query finds its rows through an index and does not sort them, so that the cost depends on the size
 * of the result, not on the length of the history.
 */
const directory = mkdtempSync(join(tmpdir(), 'muster-indices-'));
let db: Database;

beforeAll(() => {
  const file = join(directory, 'muster.db');
  migrateSqlite(file, { migrations, now: () => 1 });
  db = new Sqlite(file);
});
afterAll(() => {
  db.close();
  rmSync(directory, { recursive: true, force: true });
});

function plan(query: AnyQuery): string {
  const { sql, slots } = query.compiled('sqlite');
  const rows = db
    .prepare<unknown[], { detail: string }>(`explain query plan ${sql}`)
    .all(...slots.map((slot) => ('value' in slot ? slot.value : null)));
  return rows.map((row) => row.detail).join('; ');
}

describe('indices', () => {
  test('stores the rows that every operation updates in agent ID order', () => {
    const names = db.prepare(`select name from pragma_table_list where schema = 'main' and wr order by name`);
    expect(names.pluck().all()).toEqual(['agent_state', 'spool_ack']);
  });

  test.each<[string, AnyQuery, string]>([
    ['open operations of an agent', openOperations, 'operations_open'],
    ['the oldest of them', oldestOpen, 'operations_open'],
    ['one of them with a module', openOperationWith, 'operations_status'],
    ['terms of open runs', basesOfOpenRuns, 'runs_open'],
    ['removed modules with files', removedWithFiles, 'COVERING INDEX'],
    ['outcomes of operations that were not created', failStranded, 'run_results_operation'],
    ['deliveries of a channel', oldestDeliveries, 'SEARCH deliveries USING INDEX'],
    ['deliveries that have waited too long', deliveriesBefore, 'deliveries_age'],
    ['notifications, newest first', notifications({ unread: false }), 'SCAN notifications USING INDEX'],
    ['those that are not read', notifications({ unread: true }), 'SEARCH notifications USING INDEX'],
    ['how many those are', unreadCount, 'SEARCH notifications USING'],
    ['notifications that are too old', notificationBefore, 'notifications_time'],
    ['those of them that may go', prunableNotifications, 'deliveries_place'],
    ['all operations, newest first', operations({}), 'operations'],
    ['those of an agent', operations({ node_id: true, below: true }), 'operations_node'],
    ['agents that may be lost', unseenAgents, 'agents_unseen'],
    ['those of a status', operations({ status: true }), 'operations_status'],
    ['those of an agent and a status', operations({ node_id: true, status: true }), 'operations_node_status'],
    ['terminal sessions of a status', terminals({ status: true }), 'terminal_sessions_status'],
    ['how many agents there are by status', agentsByStatus, 'COVERING INDEX agents_status'],
    ['how many operations are open', openOperationsByStatus, 'COVERING INDEX operations_status'],
    ['how many terminals are open', countOfActiveTerminals, 'COVERING INDEX terminal_sessions_status'],
    ['how many events have no place', countUnplaced, 'audit_events_unplaced'],
    ['how many deliveries wait', waitingDeliveries, 'COVERING INDEX deliveries_place'],
    ['open ones of ended processes', strandedTerminals, 'terminal_sessions_status'],
    ['changes of links', changedLinks, 'SEARCH agents USING INDEX agents_link_change'],
    ['drift records of an agent', driftIds({}), 'drift_records_node'],
    ['those of a status', driftIds({ status: true }), 'drift_records_node_status'],
    ['old drift records', oldDriftRecords, 'drift_records_checked'],
    ['machines that are due for a drift check', dueForDrift, 'SEARCH agent_state USING INDEX agent_state_drift_due'],
    ['the scheduled checks under way', scheduledChecks, 'SEARCH operations USING INDEX operations_scheduled'],
    ['checks that are due too late', pullInDriftDue, 'agent_state_drift_due'],
    ['the newest answered sign-in challenge', newestAnswered, 'COVERING INDEX answered_challenges_issued'],
    ['recently answered ones', answeredSince, 'SEARCH answered_challenges USING INDEX answered_challenges_issued'],
    ['those that are dated too late', deleteAnsweredAfter, 'answered_challenges_issued (issued_at_ms>?)'],
    ['tickets of a terminal', ticketBeyond, 'terminal_tickets_session'],
    ['windows by their start', windows, 'maintenance_windows_start'],
    ['open windows', openSelectors, 'maintenance_windows_end'],
    ['unneeded payloads', unneededPayloads, 'operations_payload'],
    ['operations to delete', operationIds, 'operations'],
    ['pending agents', pendingAgents, 'agents_status'],
    ['how many agents are lost', countOfLostAgents, 'COVERING INDEX agents_lost'],
    ['how many runs are open', countOfOpenRuns, 'runs_open'],
    ['runs of a kind, newest first', runs({ kind: true }), 'SEARCH runs USING INDEX runs_kind (kind=?)'],
    ['secrets that expire', secretsByExpiry, 'secrets_by_expiry'],
    ['agents that have drifted', agentsDrifted, 'SCAN drift_states'],
    ['agents whose check failed', agentsWithFailedCheck, 'latest_drift_status'],
    ['agents whose apply failed', agentsWithFailedApply, 'agent_state_failed'],
    ['agents with something not applied', agentsNotAsApplied, 'COVERING INDEX applied_resources_off'],
  ])('finds %s by index', (_, query, index) => {
    const detail = plan(query);
    expect(detail).toContain(index);
    expect(detail).not.toContain('TEMP B-TREE');
  });

  test('finds agents with an outdated module by index', () => {
    expect(plan(agentsOutdated)).toContain(
      'SEARCH applied_modules USING COVERING INDEX applied_modules_revision (module=? AND revision<?)',
    );
  });

  test.each<[string, AnyQuery, RegExp]>([
    ['all of the audit log, newest first', auditKeys({}), /USING INDEX audit_events_time/],
    [
      'a later page of it',
      auditKeys({ below: true }),
      /SEARCH audit_events USING INDEX audit_events_time \(timestamp_ms</,
    ],
    [
      'a time of it',
      auditKeys({ after: true, before: true }),
      /audit_events_time \(timestamp_ms>\? AND timestamp_ms<\?/,
    ],
    [
      'events of a type',
      auditKeys({ event_type: true, below: true }),
      /audit_events_type \(event_type=\? AND timestamp_ms</,
    ],
    [
      'of a category',
      auditKeys({ category: true, after: true }),
      /audit_events_category \(category=\? AND timestamp_ms>/,
    ],
    [
      'of an operator',
      auditKeys({ operator: true, before: true }),
      /audit_events_actor \(actor_id=\? AND timestamp_ms</,
    ],
    ['without a place', unplacedEvents, /USING INDEX audit_events_unplaced/],
    ['and how many', countUnplaced, /USING (COVERING )?INDEX audit_events_unplaced/],
    ['of the chain', placedEvents, /SEARCH audit_events USING INDEX audit_events_place \(place>/],
    ['of the chain, row by row', chainRows, /SEARCH audit_events USING INDEX audit_events_place \(/],
    ['the first of the chain', firstPlaced, /USING INDEX audit_events_place/],
  ])('finds %s by index', (_, query, index) => {
    const detail = plan(query);
    expect(detail).toMatch(index);
    expect(detail).not.toContain('TEMP B-TREE');
  });

  test('finds events caused by or targeting an agent by index, and sorts only two pages', () => {
    const detail = plan(auditKeys({ agent: true, below: true }));
    expect(detail).toMatch(/audit_events_target \(target_id=\? AND timestamp_ms</);
    expect(detail).toMatch(/audit_events_actor \(actor_id=\? AND timestamp_ms</);
    expect(detail).not.toMatch(/SCAN audit_events/);
  });

  test('finds each agent’s latest drift by index, and sorts only tags', () => {
    for (const [query, index] of [
      [latestDrifts({}), 'latest_drift_order'],
      [latestDrifts({ status: true, below: true }), 'latest_drift_status'],
    ] as const) {
      const detail = plan(query);
      expect(detail).toMatch(new RegExp(`^(SCAN|SEARCH) latest_drift USING INDEX ${index}`));
      expect(detail.replace('USE TEMP B-TREE FOR json_group_object(ORDER BY)', '')).not.toContain('TEMP B-TREE');
    }
  });

  test('finds the outcomes of the newest checks by index, and counts them by status', () => {
    const detail = plan(agentsByLatestDrift);
    expect(detail).toMatch(/latest_drift_status|agents_status/);
    expect(detail).not.toMatch(/SCAN (agents|drift_states|drift_records)(;|$)/);
  });

  test('finds agents with work by an index on open operations', () => {
    expect(plan(agentsWithWork)).toMatch(/^SEARCH operations USING INDEX operations_status/);
  });
});
