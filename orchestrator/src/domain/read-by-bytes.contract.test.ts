import type { ResourceResult } from '@muster/protocol';
import { expect, test } from 'vitest';
import { type DatabaseFixture, describeDatabases } from '../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../test/domain.ts';
import { getOperation, getOutput, getRun, getState } from '../../test/reading.ts';
import { toJson } from '../store/json-text.ts';
import { jsonRows } from '../store/params.ts';
import { insertDriftRecord, putLatestDrift } from '../store/queries/drift.ts';
import { putDriftState } from '../store/queries/drift-states.ts';
import { putOutput, putResourceResults } from '../store/queries/operation-results.ts';
import { insertRun, insertRunResults, putRunResults } from '../store/queries/runs.ts';
import type { Query } from '../store/query.ts';
import { type Statement, statement } from '../store/transaction.ts';
import { audited, listAudit } from './audit/audit.ts';
import { listDrift, listLatestDrift } from './drift/drift.ts';
import { createOffRanking } from './drift/off-ranking.ts';
import { listReconcile } from './drift/reconcile.ts';
import { uploadModule } from './modules/modules.ts';
import { submitOperation } from './operations/operations.ts';
import { assignmentOfScope, auditScope } from './shared/drift-scope.ts';

const MiB = 1024 * 1024;
const summary = { total: 0, unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 };

/** Opens an orchestrator that records the size of its largest database read, in characters. */
async function open(fixture: DatabaseFixture, resources = 1) {
  const domain = await openDomain(fixture);
  const { context } = domain;
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  const long = 'x'.repeat(1000);
  const paths = Array.from({ length: resources }, (_, i) => `  - resource: { file-unix: { path: "/${long}/${i}" } }\n`);
  await uploadModule(context, actor, 'm', `name: m\nsupports: [{ platform: linux }]\nresources:\n${paths.join('')}`);
  const write = async (statements: Statement[]) => {
    for (const one of statements) await context.db.write({ name: 'test/seed', statements: [one] });
  };
  let largest = 0;
  const { all } = context.db;
  context.db.all = async <P, Row>(query: Query<P, Row>, params: P): Promise<Row[]> => {
    const rows = await all.call(context.db, query as never, params as never);
    largest = Math.max(largest, JSON.stringify(rows).length);
    return rows as Row[];
  };
  const submit = async () => {
    const id = await submitOperation(context, actor, 'web-1', {
      kind: 'apply',
      modules: ['m'],
      queue: true,
    });
    await domain.links.nextOperation(agent.id);
    return id;
  };
  return {
    domain,
    context,
    actor,
    agent,
    write,
    submit,
    largestRead: () => {
      const read = largest;
      largest = 0;
      return read;
    },
  };
}

const results = (operation_id: string, count: number, length: number) =>
  Array.from({ length: count }, (_, position) =>
    statement(putResourceResults, {
      operation_id,
      position,
      results: toJson(resultOf({ diff: 'd'.repeat(length), identity: `/${position}` })),
    }),
  );

describeDatabases('reading by bytes', (fixture) => {
  test('reads an operation’s results in reads of 1 MiB', async () => {
    const { context, write, submit, largestRead } = await open(fixture);
    const id = await submit();
    await write(results(id, 100, 60_000));
    largestRead();
    const { resources } = await getOperation(context, id);
    expect(resources.map(({ identity }) => identity)).toEqual(Array.from({ length: 100 }, (_, i) => `/${i}`));
    expect(largestRead()).toBeLessThan(1.2 * MiB);
  });

  test('reads an operation’s output in reads of 1 MiB', async () => {
    const { domain, context, write, submit, largestRead } = await open(fixture);
    const id = await submit();
    await write(
      Array.from({ length: 30 }, (_, i) =>
        statement(putOutput, {
          operation_id: id,
          resource_key: `m/${i}`,
          stdout: 'o'.repeat(150_000),
          stderr: 'e'.repeat(50_000),
          exit_code: 0,
          truncated: false,
        }),
      ),
    );
    largestRead();
    const { output } = await getOutput(context, domain.liveOutput, 'web-1', id);
    expect(Object.keys(output)).toHaveLength(30);
    expect(largestRead()).toBeLessThan(1.4 * MiB);
  });

  test('reads a run’s results in reads of 1 MiB', async () => {
    const { context, actor, write, largestRead } = await open(fixture);
    const run_id = context.newId();
    const rows = Array.from({ length: 2500 }, (_, position) => ({
      node_id: position.toString(16).padStart(32, '0'),
      position,
      operation_id: null,
      status: 'failed',
      error: position < 500 ? 'e'.repeat(8000) : null,
    }));
    await write([
      statement(insertRun, {
        run_id,
        assignment: 'all',
        kind: 'apply',
        status: 'failed',
        started_at: 1,
        finished_at: 2,
        requested_by: actor.id,
        options: toJson({}),
      }),
      statement(insertRunResults, {
        run_id,
        rows: jsonRows(rows.map(({ node_id, position }) => ({ node_id, position }))),
      }),
      statement(putRunResults, {
        run_id,
        rows: jsonRows(
          rows.map(({ node_id, operation_id, status, error }) => ({ node_id, operation_id, status, error })),
        ),
      }),
    ]);
    largestRead();
    const { results } = await getRun(context, run_id);
    expect(results.map(({ node_id, error }) => ({ node_id, error }))).toEqual(
      rows.map(({ node_id, error }) => ({ node_id, error })),
    );
    expect(largestRead()).toBeLessThan(1.3 * MiB);
  });

  test('reads applied state in reads of 1 MiB when an apply ends and when the state is requested', async () => {
    const { domain, context, agent, write, submit, largestRead } = await open(fixture, 1500);
    const id = await submit();
    await write(results(id, 100, 60_000));
    const rest = Array.from({ length: 1400 }, (_, i) => resultOf({ identity: `/${i + 100}` }));
    for (let at = 0; at < rest.length; at += 200)
      await domain.links.reported(agent.id, '01'.repeat(16), at / 200 + 1, [
        { type: 'results', operation_id: id, position: 100 + at, results: rest.slice(at, at + 200) },
      ]);
    largestRead();
    const [, finished] = reportsOf(id, [], { now: 1 });
    if (finished?.type !== 'finished') throw new Error('an apply has an end');
    const ended = { ...finished, summary: { ...summary, total: 1500, changed: 1500 } };
    expect(await domain.links.reported(agent.id, '01'.repeat(16), 99, [ended])).toBeNull();
    expect(largestRead()).toBeLessThan(1.2 * MiB);
    const state = await getState(context, 'web-1');
    expect(state.applied).toHaveLength(1500);
    expect(new Set(state.applied.map(({ identity }) => identity)).size).toBe(1500);
    // A row's key and identity contain the path.
    expect(JSON.stringify(state).length).toBeGreaterThan(1.5 * MiB);
    expect(largestRead()).toBeLessThan(1.3 * MiB);
  });

  test('limits pages of drift records by size, and skips no record', async () => {
    const { context, agent, write, largestRead } = await open(fixture);
    const resources = toJson(Array.from({ length: 10 }, () => resultOf({ diff: 'd'.repeat(60_000) })));
    const ids = Array.from({ length: 20 }, () => context.newId());
    await write(
      ids.flatMap((drift_id, i) => [
        statement(insertDriftRecord, {
          drift_id,
          node_id: agent.id,
          operation_id: drift_id,
          status: 'drifted',
          trigger: 'watch',
          checked_at: i,
          snapshot_operation_id: '',
          summary: toJson(summary),
          resources,
          error: null,
          accepted: null,
        }),
        statement(putLatestDrift, { node_id: agent.id, drift_id, status: 'drifted' }),
      ]),
    );
    largestRead();
    const found: string[] = [];
    let pages = 0;
    for (let more = true; more; pages++) {
      const page = await listDrift(context, 'web-1', { limit: 500, offset: found.length });
      expect(page.items.length).toBeGreaterThan(0);
      found.push(...page.items.map(({ drift_id }) => drift_id));
      ({ more } = page);
    }
    expect(found).toEqual(ids.toReversed());
    expect(pages).toBeGreaterThan(2);
    expect(largestRead()).toBeLessThan(5 * MiB);
    const page = { limit: 500, offset: 0 };
    const newest = [expect.objectContaining({ drift_id: ids.at(-1) })];
    expect((await listLatestDrift(context, page)).items).toEqual(newest);
    expect((await listLatestDrift(context, { ...page, filter: 'attr.platform=linux' })).items).toEqual(newest);
  });

  test('counts drift in reads of 1 MiB', async () => {
    const { context, agent, write, largestRead } = await open(fixture);
    const drift_id = context.newId();
    const drifted = Object.fromEntries(
      Array.from({ length: 120 }, (_, at) => [`file-unix:/${at}/${'n'.repeat(4_000)}`, ['content']]),
    );
    const scopes = ['', ...Array.from({ length: 9 }, (_, at) => auditScope(`a${at}`))];
    await write([
      statement(insertDriftRecord, {
        drift_id,
        node_id: agent.id,
        operation_id: drift_id,
        status: 'drifted',
        trigger: 'watch',
        checked_at: 1,
        snapshot_operation_id: '',
        summary: toJson(summary),
        resources: toJson<ResourceResult[]>([]),
        error: null,
        accepted: null,
      }),
      ...scopes.map((scope) =>
        statement(putDriftState, {
          node_id: agent.id,
          scope,
          drifted: toJson<Record<string, string[]>>(drifted),
          since: 1,
          drift_id,
          fingerprints: null,
          accepted: null,
        }),
      ),
    ]);
    largestRead();
    const { items } = await listReconcile(context, { limit: 500, offset: 0 }, createOffRanking(context));
    expect(items[0]?.drift.map(({ assignment }) => assignment)).toEqual([
      null,
      ...scopes.slice(1).map(assignmentOfScope),
    ]);
    expect(items[0]?.drift.every(({ resources }) => resources === 120)).toBe(true);
    expect(largestRead()).toBeLessThan(1.7 * MiB);
  });

  test.each([{}, { agent: 'web-1' }])(
    'limits pages of the audit log by size, and skips no event: %o',
    async (filter) => {
      const { domain, context, actor, agent, write, largestRead } = await open(fixture);
      const target = { type: 'agent', id: agent.id, name: 'web-1' };
      await write(
        Array.from({ length: 60 }, (_, i) =>
          audited(context, {
            type: 'state.requested',
            actor: { type: 'operator', id: actor.id, name: actor.name },
            target,
            summary: `requested ${i}`,
            metadata: { modules: ['m'.repeat(100_000)] },
          }),
        ),
      );
      const request = { event_type: 'state.requested', ...filter };
      largestRead();
      const summaries: string[] = [];
      let pages = 0;
      for (let cursor: string | null | undefined; cursor !== null; pages++) {
        const page = await listAudit(domain.context, { ...request, limit: 40, cursor });
        summaries.push(...page.events.map(({ summary }) => summary));
        expect(page.has_more).toBe(page.next_cursor !== null);
        cursor = page.next_cursor;
      }
      expect(summaries).toEqual(Array.from({ length: 60 }, (_, i) => `requested ${59 - i}`));
      expect(pages).toBeGreaterThan(5);
      expect(largestRead()).toBeLessThan(1.3 * MiB);
    },
  );
});
