import type { CreateTableBuilder, RawBuilder } from 'kysely';
import type { Migration, MigrationBuild } from './migration.ts';

/** `text`, `integer` (64 bits), each with `?` when it may be null; `counter` numbers the rows. */
type ColumnKind = 'text' | 'text?' | 'integer' | 'integer?' | 'counter';

interface TableShape {
  columns: Record<string, ColumnKind>;
  primaryKey?: readonly string[];
  unique?: readonly string[];
  /** The rows go when the row of the parent goes. */
  childOf?: { column: string; table: string };
}

const tables: Record<string, TableShape> = {
  operators: {
    columns: {
      operator_id: 'text',
      public_key: 'text',
      username: 'text',
      role: 'text',
      added_at: 'integer',
      added_by: 'text',
      bootstrap: 'integer',
      removed_at: 'integer?',
      removed_by: 'text?',
    },
    primaryKey: ['operator_id'],
    unique: ['public_key', 'username'],
  },
  sessions: {
    columns: {
      token_hash: 'text',
      operator_id: 'text',
      created_at: 'integer',
      expires_at: 'integer',
      signed_in_at: 'integer',
    },
    primaryKey: ['token_hash'],
  },
  agents: {
    columns: {
      node_id: 'text',
      public_key: 'text',
      name: 'text?',
      status: 'text',
      agent_version: 'text',
      attributes: 'text',
      initial_hostname: 'text',
      initial_ip: 'text',
      connected_at: 'integer',
      updated_at: 'integer',
      last_seen_at: 'integer',
      pin_source: 'text',
      enrolment_token_id: 'text?',
      first_seen_at: 'integer',
    },
    primaryKey: ['node_id'],
    unique: ['name'],
  },
  agent_tags: {
    columns: { node_id: 'text', key: 'text', value: 'text' },
    primaryKey: ['node_id', 'key'],
    childOf: { column: 'node_id', table: 'agents' },
  },
  agent_keys: {
    columns: { public_key: 'text', node_id: 'text', valid_until: 'integer?' },
    primaryKey: ['public_key'],
    childOf: { column: 'node_id', table: 'agents' },
  },
  enrolment_tokens: {
    columns: {
      id: 'text',
      token_hash: 'text',
      name: 'text?',
      tags: 'text',
      approve: 'integer',
      uses_left: 'integer',
      created_at: 'integer',
      created_by: 'text',
      expires_at: 'integer',
      revoked_at: 'integer?',
    },
    primaryKey: ['id'],
    unique: ['token_hash'],
  },
  modules: {
    columns: { name: 'text', revision: 'integer', uploaded_at: 'integer', uploaded_by: 'text' },
    primaryKey: ['name'],
  },
  module_revisions: {
    columns: {
      name: 'text',
      revision: 'integer',
      content: 'text',
      digest: 'text',
      uploaded_at: 'integer',
      uploaded_by: 'text',
    },
    primaryKey: ['name', 'revision'],
  },
  assignments: {
    columns: {
      name: 'text',
      modules: 'text',
      selector: 'text',
      description: 'text?',
      mode: 'text',
      window_only: 'integer',
      parameters: 'text',
      created_at: 'integer',
      created_by: 'text',
    },
    primaryKey: ['name'],
  },
  operations: {
    columns: {
      operation_id: 'text',
      node_id: 'text',
      kind: 'text',
      status: 'text',
      modules: 'text',
      requested_by: 'text',
      run_id: 'text?',
      plan_id: 'text?',
      created_at: 'integer',
      dispatched_at: 'integer?',
      started_at: 'integer?',
      finished_at: 'integer?',
      expires_at: 'integer?',
      cancel_requested_at: 'integer?',
      trigger: 'text?',
      summary: 'text?',
      error: 'text?',
      payload_digest: 'text?',
      snapshot_operation_id: 'text?',
    },
    primaryKey: ['operation_id'],
  },
  operation_payloads: { columns: { digest: 'text', payload: 'text' }, primaryKey: ['digest'] },
  operation_resources: {
    columns: { operation_id: 'text', position: 'integer', result: 'text' },
    primaryKey: ['operation_id', 'position'],
    childOf: { column: 'operation_id', table: 'operations' },
  },
  operation_outputs: {
    columns: {
      operation_id: 'text',
      resource_key: 'text',
      stdout: 'text',
      stderr: 'text',
      exit_code: 'integer?',
      truncated: 'integer',
    },
    primaryKey: ['operation_id', 'resource_key'],
    childOf: { column: 'operation_id', table: 'operations' },
  },
  applied_resources: {
    columns: {
      node_id: 'text',
      key: 'text',
      module: 'text',
      resource_id: 'text?',
      type: 'text',
      identity: 'text',
      operation_id: 'text',
      since: 'integer',
      state: 'text',
      reason: 'text?',
    },
    primaryKey: ['node_id', 'key'],
  },
  agent_state: {
    columns: { node_id: 'text', snapshot_operation_id: 'text?', updated_at: 'integer' },
    primaryKey: ['node_id'],
  },
  drift_records: {
    columns: {
      drift_id: 'text',
      node_id: 'text',
      operation_id: 'text?',
      status: 'text',
      trigger: 'text',
      checked_at: 'integer',
      snapshot_operation_id: 'text',
      summary: 'text',
      resources: 'text',
      error: 'text?',
    },
    primaryKey: ['drift_id'],
  },
  runs: {
    columns: {
      run_id: 'text',
      assignment: 'text?',
      kind: 'text',
      status: 'text',
      started_at: 'integer',
      finished_at: 'integer?',
      requested_by: 'text',
      options: 'text',
    },
    primaryKey: ['run_id'],
  },
  run_results: {
    columns: { run_id: 'text', node_id: 'text', operation_id: 'text?', status: 'text', error: 'text?' },
    primaryKey: ['run_id', 'node_id'],
    childOf: { column: 'run_id', table: 'runs' },
  },
  audit_events: {
    columns: {
      seq: 'counter',
      id: 'text',
      event_type: 'text',
      category: 'text',
      severity: 'text',
      timestamp_ms: 'integer',
      actor_type: 'text',
      actor_id: 'text',
      actor_name: 'text',
      target_type: 'text',
      target_id: 'text',
      target_name: 'text',
      summary: 'text',
      metadata: 'text',
    },
    unique: ['id'],
  },
  settings: { columns: { key: 'text', value: 'text' }, primaryKey: ['key'] },
  spool_ack: {
    columns: { node_id: 'text', instance_id: 'text', seq: 'integer' },
    primaryKey: ['node_id'],
  },
};

function createTable({ db, dialect }: MigrationBuild, name: string, shape: TableShape) {
  const { columns } = dialect;
  let table: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const [column, kind] of Object.entries(shape.columns)) {
    const type: RawBuilder<unknown> =
      kind === 'counter' ? columns.counter : kind.startsWith('text') ? columns.text : columns.integer;
    table = table.addColumn(column, type, (definition) =>
      kind === 'counter' || kind.endsWith('?') ? definition : definition.notNull(),
    );
  }
  if (shape.primaryKey) table = table.addPrimaryKeyConstraint(`${name}_key`, [...shape.primaryKey]);
  for (const column of shape.unique ?? []) table = table.addUniqueConstraint(`${name}_${column}_unique`, [column]);
  if (shape.childOf) {
    const { column, table: parent } = shape.childOf;
    table = table.addForeignKeyConstraint(`${name}_parent`, [column], parent, [column], (key) =>
      key.onDelete('cascade'),
    );
  }
  return table.modifyEnd(columns.tableEnd);
}

/** The tables of sign-in, agents, modules, operations, drift, runs and audit. */
export const foundation: Migration = {
  version: 1,
  name: 'foundation',
  statements: (build) => {
    const { schema } = build.db;
    const index = (name: string, table: string, columns: readonly string[]) =>
      schema
        .createIndex(name)
        .on(table)
        .columns([...columns]);
    return [
      ...Object.entries(tables).map(([name, shape]) => createTable(build, name, shape)),
      // The live sessions of one operator, to end them; and the expired ones, to delete them.
      index('sessions_operator', 'sessions', ['operator_id']),
      index('sessions_expiry', 'sessions', ['expires_at']),
      index('agents_status', 'agents', ['status', 'node_id']),
      index('agent_tags_value', 'agent_tags', ['key', 'value']),
      index('agent_keys_node', 'agent_keys', ['node_id']),
      // One agent's operations, newest first (ids are ULIDs): read backwards.
      index('operations_node', 'operations', ['node_id', 'operation_id']),
      index('operations_status', 'operations', ['status', 'operation_id']),
      index('operations_run', 'operations', ['run_id', 'operation_id']).where('run_id', 'is not', null),
      index('operations_node_status', 'operations', ['node_id', 'status', 'operation_id']),
      // What has not ended, in order: small however long the history is.
      index('operations_open', 'operations', ['node_id', 'operation_id']).where('status', 'in', ['queued', 'running']),
      index('drift_records_node', 'drift_records', ['node_id', 'drift_id']),
      index('run_results_operation', 'run_results', ['operation_id']).where('operation_id', 'is not', null),
      // Whether a run has outcomes still to come.
      index('run_results_status', 'run_results', ['run_id', 'status']),
      index('runs_status', 'runs', ['status', 'run_id']),
      index('audit_events_time', 'audit_events', ['timestamp_ms', 'seq']),
      index('audit_events_type', 'audit_events', ['event_type', 'seq']),
      index('audit_events_category', 'audit_events', ['category', 'seq']),
      index('audit_events_actor', 'audit_events', ['actor_id', 'seq']),
      index('audit_events_target', 'audit_events', ['target_id', 'seq']),
    ];
  },
};
