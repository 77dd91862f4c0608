import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createClient } from '@muster/protocol/client';
import { applyAgent, createAssignment, createEnrolmentToken, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { dialAsAgent, newAgentKey } from '../orchestrator/test/test-agent.ts';
import { signIn, transportTo } from './client.ts';
import { test } from './harness.ts';

/**
 * Lists the largest rows that an agent can create, through every list route on an orchestrator with a small heap. The
 * test writes the rows directly to the database, because reporting them would take longer. Other tests cover the limits
 * on reports.
 */

/** Number of lists that `npm test` reads, selected at random. `npm run soak -- kill-steps` reads all. */
const listsRead = 3;
const heapMiB = 80;
const audits = 100;
const mebibyte = 1024 * 1024;
const long = (length: number, letter = 'x') => letter.repeat(length);
const summary = JSON.stringify({ total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 });
const result = (message: number, diff: number) =>
  JSON.stringify({
    ...{ module: 'files', id: null, type: 'file-unix', identity: `/${long(4_000)}`, action: 'update' },
    ...{ status: 'would_change', changes: [], diff: long(diff, 'd'), triggered_by: [], corrective: false },
    ...{ message: long(message, 'm'), duration_ms: 0, sensitive: false },
  });

test('with a heap of 80 MiB, the orchestrator lists rows of the largest size that agents can report', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator();
  const { call } = orchestrator;
  const module =
    'name: files\nsupports: [{ platform: linux }]\nresources:\n  - resource: { file-unix: { path: /a } }\n';
  await call(uploadModule, { body: { name: 'files', content: module } });
  for (let at = 0; at < audits; at++)
    await call(createAssignment, { body: { name: `a${at}`, modules: ['files'], selector: 'role=web', mode: 'audit' } });
  const { token } = await call(createEnrolmentToken, { body: { uses: 1, name: 'web-1', approve: true } });
  const key = await newAgentKey();
  const agent = await dialAsAgent(orchestrator.agentPort, key);
  await agent.join({ token });
  const body = { modules: ['files'] };
  const { operation_id } = (await call(applyAgent, { params: { node_id: 'web-1' }, body, respondAsync: true })) as {
    operation_id: string;
  };
  agent.end();
  await orchestrator.stop();
  seed(join(orchestrator.dataDir, 'muster.db'), key.nodeId, operation_id);
  orchestrator.set({ NODE_OPTIONS: `--max-old-space-size=${heapMiB}` });
  await orchestrator.start();
  const certificate = () => readFileSync(join(orchestrator.dataDir, 'api.crt'), 'utf8');
  const session = await signIn(
    createClient({ url: orchestrator.url, transport: transportTo(certificate) }),
    orchestrator.operator,
  );
  const read = async (path: string): Promise<number> => {
    const url = `https://127.0.0.1:${orchestrator.apiPort}/api/v1${path}`;
    const sent = get(url, { rejectUnauthorized: false, headers: { authorization: `Bearer ${session}` } });
    const [answer] = await once(sent, 'response');
    let bytes = 0;
    for await (const chunk of answer) bytes += (chunk as Buffer).length;
    expect([200, 204], path).toContain(answer.statusCode);
    return bytes;
  };
  const of = `/agents/${key.nodeId}`;
  const paths = [
    ...[`${of}/drift?limit=500`, '/drift?limit=500', `${of}/drift/latest`, `${of}/state`, '/reconcile?limit=500'],
    ...[`/state/operations/${operation_id}`, `${of}/state/operations/${operation_id}/output`, '/overview', of],
    ...[`${of}/state/operations?limit=500`, '/state/operations?limit=500', '/runs?limit=500', '/agents?limit=500'],
    ...['/audit?limit=500', '/audit/export', '/audit/verify', '/notifications?limit=500', `${of}/metrics?limit=100000`],
  ];
  for (const path of sampled(paths, listsRead)) {
    const bytes = await Promise.all(Array.from({ length: 4 }, () => read(path)));
    console.log(`${path.replaceAll(key.nodeId, 'ID')}: ${(bytes[0]! / mebibyte).toFixed(1)} MiB`);
  }
  expect(await read('/overview')).toBeGreaterThan(0);
});

function seed(file: string, nodeId: string, operationId: string): void {
  const db = new DatabaseSync(file);
  const insert = (table: string, rows: Record<string, string | number | null>[]) => {
    const names = Object.keys(rows[0]!);
    const statement = db.prepare(`insert into ${table} (${names}) values (${names.map(() => '?')})`);
    db.exec('begin');
    for (const row of rows) statement.run(...Object.values(row));
    db.exec('commit');
  };
  const times = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at));
  const id = (at: number) => `01HZZZZZZZZZZZZZZZZZZZ${String(at).padStart(4, '0')}`;
  const record = {
    node_id: nodeId,
    status: 'drifted',
    trigger: 'watch',
    checked_at: 1,
    snapshot_operation_id: '',
    summary,
  };
  const resources = `[${times(12, () => result(0, 60_000)).join(',')}]`;
  insert(
    'drift_records',
    times(100, (at) => ({ drift_id: id(at), operation_id: id(at), ...record, resources, error: null, accepted: null })),
  );
  insert('latest_drift', [{ node_id: nodeId, drift_id: id(99), status: 'drifted' }]);
  const keys = times(120, (at) => `file-unix:/${at}/${long(4_000)}`);
  const drifted = JSON.stringify(Object.fromEntries(keys.map((key) => [key, ['content']])));
  const fingerprints = JSON.stringify(Object.fromEntries(keys.map((key) => [key, long(64, 'f')])));
  insert(
    'drift_states',
    ['', ...times(audits, (at) => `audit:a${at}`)].map((scope) => ({
      ...{ node_id: nodeId, scope, since: 1, drift_id: id(99), drifted, fingerprints, accepted: null },
    })),
  );
  insert(
    'operation_resources',
    times(450, (position) => ({ operation_id: operationId, position, result: result(8_000, 60_000) })),
  );
  insert(
    'operation_outputs',
    times(60, (at) => ({
      operation_id: operationId,
      resource_key: `files//${at}`,
      stdout: long(262_144),
      stderr: long(262_144),
      exit_code: 0,
      truncated: 0,
    })),
  );
  insert(
    'applied_resources',
    times(20_000, (at) => ({
      ...{
        node_id: nodeId,
        key: `file-unix:/${at}/${long(1_000)}`,
        module: 'files',
        resource_id: null,
        type: 'file-unix',
      },
      ...{
        identity: `/${at}/${long(1_000)}`,
        operation_id: operationId,
        since: 1,
        state: 'applied',
        reason: null,
        in_place: 1,
      },
    })),
  );
  insert(
    'operations',
    times(500, (at) => ({
      ...{ operation_id: id(1_000 + at), node_id: nodeId, kind: 'plan', status: 'failed', modules: '["files"]' },
      ...{ requested_by: 'system', created_at: 1, finished_at: 2, error: long(8_192, '\u4e00'), summary },
    })),
  );
  db.close();
}
