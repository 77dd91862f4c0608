import { apiPrefix, type Route, routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { placeAll } from '../../test/audit.ts';
import { describeDatabases } from '../../test/databases/databases.ts';
import { newAgent, newKey, reportsOf, resultOf } from '../../test/domain.ts';
import { consume, placedEvent } from '../../test/placed-events.ts';
import { moduleText, type RealApi, realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';
import { setStatus } from '../domain/agents/agents.ts';
import { submitDriftCheck } from '../domain/drift/drift.ts';
import { acceptDrift } from '../domain/drift/drift-acceptance.ts';
import { listNotifications, notificationsOf } from '../domain/notifications/notifications.ts';
import { submitOperation } from '../domain/operations/operations.ts';
import { addOperator, removeOperator } from '../domain/operators/operators.ts';
import { hashOfToken, type Session } from '../domain/operators/sessions.ts';
import { startRun } from '../domain/runs/runs.ts';
import { createSecret } from '../domain/secrets/secrets.ts';
import { defineQuery } from '../store/query.ts';
import { drainReplica, insertReplica, raiseBeat } from '../store/replicas.ts';
import type { Schema } from '../store/schema.ts';

/**
 * Calls every writing route with a sign-in session that ends right after the request is admitted, and verifies that
 * nothing changes. The same requests succeed with a live session, which proves that the ended session is the only
 * reason for the refusal.
 */

const openApi = realApiFixture();

/** Catalog tables of the databases, which our schema types do not contain. The casts only satisfy the types. */
const tableNames = {
  sqlite: defineQuery('test/tables', (db) =>
    db
      .selectFrom('sqlite_master' as 'agents')
      .select('name')
      .where('type' as 'name', '=', 'table'),
  ),
  postgres: defineQuery('test/tables', (db) =>
    db
      .selectFrom('pg_tables' as 'agents')
      .select('tablename as name' as 'name')
      .where('schemaname' as 'name', '=', 'public'),
  ),
};
/** Tables that change even without requests. */
const unrelated: readonly (string | null)[] = ['leases', 'replicas', 'schema_version'];

const everyRun = defineQuery('test/every run', (db) => db.selectFrom('runs').select('run_id'));

/** Routes with a method other than GET that change nothing. */
const readOnly: readonly string[] = ['matchSelector', 'orderModules', 'validateModule'];
/** Routes whose response is the same for an ended and a live session, because they only end sessions. */
const doneAlready: readonly string[] = ['logout'];

interface RequestParts {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: object;
}

/**
 * Returns functions that create the records that a request needs to succeed, by route. All other routes use their own
 * example, after the example of the creating route has created the object.
 */
function preparations({
  domain,
  actor,
  agent,
  terminals,
}: RealApi): Record<string, () => Promise<RequestParts> | RequestParts> {
  const { context, links, conductor } = domain;
  let made = 0;
  const fresh = (what: string) => `${what}-${++made}`;
  let seq = 0;
  /** Completes the agent's queued operations up to and including this operation. */
  const finish = async (id: string, drifted: boolean) => {
    for (let sent = ''; sent !== id; ) {
      const next = await links.nextOperation(agent.id);
      if (next === null) throw new Error(`the operation ${id} is not sent`);
      sent = next.operation.operation_id;
      const results = sent === id && drifted ? [resultOf({ module: 'm', id: 'f', status: 'would_change' })] : [];
      await links.reported(agent.id, '01'.repeat(16), ++seq, reportsOf(sent, results, { now: domain.now() }));
    }
  };
  const applied = async () => {
    await finish(await submitOperation(context, actor, 'web-1', { kind: 'apply', modules: ['m'], queue: true }), false);
  };
  const drifted = async () => {
    await applied();
    const id = await submitDriftCheck(context, actor, 'web-1', 'schedule');
    await finish(id, true);
    return id;
  };
  const notification = async () => {
    await consume(domain, notificationsOf(context), [placedEvent(domain, 1_000_000 + ++made)]);
    const { notifications } = await listNotifications(context, actor.id, {});
    return { params: { id: notifications[0]?.id ?? '' } };
  };
  const terminal = async () => {
    const { session_id } = await terminals.open({ actor, role: 'admin' }, 'web-1', {});
    return { params: { session_id } };
  };
  /** Registers two replicas that are ready. */
  const replicas = async () => {
    const name = fresh('replica');
    const other = `other of ${name}`;
    for (const incarnation of [name, other]) {
      await context.db.alone(insertReplica, { incarnation, name: incarnation, version: '0', started_at: 0 });
      await context.db.alone(raiseBeat, { incarnation, ready: 1, config_digest: '' });
    }
    return { name, other };
  };
  const modules = { body: { modules: ['m'] } };
  return {
    addOperator: async () => ({ body: { public_key: (await newKey()).hex, username: fresh('op'), role: 'admin' } }),
    putTag: () => ({ params: { key: fresh('k') }, body: { value: 'x' } }),
    putTags: () => ({ body: { tags: { role: 'web', [fresh('k')]: 'x' } } }),
    deleteTag: () => ({ params: { key: 'role' } }),
    setAgentStatus: async () => {
      const { id } = await newAgent(domain, actor, fresh('web'));
      return { params: { node_id: id }, body: { status: 'rejected' } };
    },
    removeAgent: async () => {
      const { id } = await newAgent(domain, actor, fresh('web'));
      await setStatus(context, actor, id, { status: 'rejected' });
      return { params: { node_id: id } };
    },
    createAssignment: () => ({ body: { name: fresh('a'), modules: ['m'], selector: 'role=web' } }),
    uploadModule: () => {
      const name = fresh('m');
      return { body: { name, content: moduleText.replace('name: m\n', `name: ${name}\n`) } };
    },
    applyAgent: () => modules,
    planAgent: () => modules,
    orderModules: () => modules,
    startRun: () => ({ body: { kind: 'plan', node_ids: [agent.id], modules: ['m'] } }),
    cancelOperation: async () => {
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      return { params: { operation_id: await submitOperation(context, actor, 'web-1', request) } };
    },
    cancelRun: async () => {
      const about = { node_ids: [agent.id], modules: ['m'] };
      const request = { kind: 'apply', offline: 'queue' } as const;
      return { params: { run_id: await startRun(context, conductor, actor, about, request) } };
    },
    checkDrift: async () => {
      await applied();
      return {};
    },
    acceptDrift: async () => ({ params: { drift_id: await drifted() }, body: { reason: 'known' } }),
    unacceptDrift: async () => {
      const drift_id = await drifted();
      await acceptDrift(context, actor, drift_id, 'known');
      return { params: { drift_id } };
    },
    pruneAudit: async () => {
      await placeAll(domain);
      domain.clock.advance(2000);
      return { query: { before: new Date(domain.clock.now() - 1000).toISOString() } };
    },
    setAuditRetention: () => ({ body: { retention_days: ++made } }),
    readNotification: notification,
    readAllNotifications: notification,
    rotateSecretsKey: async () => {
      await createSecret(context, actor, { name: fresh('s'), value: 'x' });
      return {};
    },
    drainReplica: async () => ({ params: { name: (await replicas()).name } }),
    undrainReplica: async () => {
      const { name, other } = await replicas();
      await context.db.alone(drainReplica, { incarnation: name, successors: [other] });
      return { params: { name } };
    },
    attachTerminal: terminal,
    closeTerminal: terminal,
  };
}

describeDatabases('a session that has ended', (fixture) => {
  const stores = samplesFixture(fixture);

  test('changes nothing for requests that were admitted before their session ended', async () => {
    // Simulates requests that are admitted just before the session ends: their session lookup still finds the session.
    const before = new Map<string, Session>();
    let opened: RealApi | null = null;
    const find = (hash: string) => before.get(hash) ?? opened?.domain.signIn.find(hash) ?? null;
    opened = await openApi(fixture, await stores.open(), { sessions: { find } });
    const api = opened;
    const { domain, actor, app, agent } = api;
    const { context, signIn } = domain;
    const join = async (username: string) => {
      const key = await newKey();
      await addOperator(context, actor, { public_key: key.hex, username, role: 'admin' });
      const token = await tokenOf(domain, key);
      return { key, token, hash: hashOfToken(token) };
    };
    const tables = (await domain.db.all(tableNames[domain.db.kind], {}))
      .filter(({ name }) => !unrelated.includes(name))
      .map(({ name }) => defineQuery(`test/all of ${name}`, (db) => db.selectFrom(name as keyof Schema).selectAll()));
    expect(tables.length).toBeGreaterThan(30);
    const prepare = preparations(api);
    const send = (route: Route, token: string, { params = {}, query, body }: RequestParts) => {
      const known: Record<string, string> = { node_id: agent.id, name: 'base', key: 'role', ...params };
      const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(known[name] ?? 'x'));
      const payload = body ?? route.example.body;
      return app.inject({
        method: route.method,
        url: `${apiPrefix}${path}`,
        query: query ?? route.example.query ?? {},
        headers: {
          authorization: `Bearer ${token}`,
          // The exchange for a console session requires these headers.
          ...{ origin: 'http://localhost', 'sec-fetch-site': 'same-origin' },
          ...(route.respondAsync ? { prefer: 'respond-async' } : {}),
        },
        ...(route.body === undefined ? {} : { payload: payload as object }),
      });
    };
    let created = 0;
    const partsFor = async (route: Route): Promise<RequestParts> => {
      const own = prepare[route.id];
      if (own !== undefined) return own();
      const create = routes.find(({ method, path }) => method === 'POST' && route.path.startsWith(`${path}/{`));
      const body = route.example.body as { name?: string } | undefined;
      if (create === undefined) return body?.name === undefined ? {} : { body: { ...body, name: `x${++created}` } };
      const object = (await send(create, api.token, await partsFor(create))).json<Record<string, string>>();
      const [, key = ''] = /\{(\w+)\}/.exec(route.path) ?? [];
      return { params: { [key]: object[key] ?? '' } };
    };
    /** @returns all rows of all tables, and the effects outside the database */
    const traces = async () => {
      await context.bus.delivered();
      const rows = [];
      for (const query of tables) rows.push(await domain.db.all(query, {}));
      const { shells, announced, sentTo } = api.outside;
      const elsewhere = [domain.hints.length, shells.length, announced.length, sentTo.length];
      return JSON.stringify([rows, elsewhere, shells.map(({ closed }) => closed)]);
    };

    /** Waits until runs have processed the end of their operations. */
    const endRuns = async () => {
      await context.bus.delivered();
      await new Promise((resolve) => setImmediate(resolve));
      for (const { run_id } of await domain.db.all(everyRun, {})) await domain.conductor.advance(run_id);
    };

    const removed = await join('greta');
    const out = await join('otto');
    for (const { hash } of [removed, out]) before.set(hash, (await signIn.find(hash)) as Session);
    await removeOperator(context, actor, removed.key.id);
    expect(await signIn.find(removed.hash)).toBeNull();
    await signIn.logout(out.hash);
    expect(await signIn.find(out.hash)).toBeNull();

    const wrong: string[] = [];
    for (const route of routes) {
      if (route.method === 'GET' || route.access === 'anyone') continue;
      const parts = await partsFor(route);
      await endRuns();
      const atFirst = await traces();
      for (const [why, { token }] of Object.entries({ gone: removed, out })) {
        // Retries the request, because ending the session may abort the response.
        let answer = null;
        while (answer === null) answer = await send(route, token, parts).catch(() => null);
        if ((await traces()) !== atFirst) wrong.push(`${route.id} does something for a session that is ${why}`);
        const isExpected = answer.statusCode < 300 && (readOnly.includes(route.id) || doneAlready.includes(route.id));
        if (answer.statusCode !== 401 && !isExpected)
          wrong.push(`${route.id} ${why}: ${answer.statusCode} ${answer.body}`);
      }
      const { token, hash, key } = await join(`live-${route.id.slice(0, 40)}`);
      if (route.id === 'endSession') {
        const [own] = await signIn.list({ operator_id: key.id, token_hash: hash });
        parts.params = { id: own?.id ?? '' };
      }
      const firstTraces = await traces();
      let answered = false;
      const live = send(route, token, parts).finally(() => {
        answered = true;
      });
      if (route.id === 'checkDrift') {
        // The request waits for the report below.
        while (!answered && (await traces()) === firstTraces) await new Promise((resolve) => setImmediate(resolve));
        if (!answered) continue;
      }
      const answer = await live;
      if (answer.statusCode >= 300) wrong.push(`${route.id} live: ${answer.statusCode} ${answer.body}`);
      if (((await traces()) === firstTraces) !== readOnly.includes(route.id))
        wrong.push(
          `${route.id} ${readOnly.includes(route.id) ? 'changes something' : 'changes nothing'} when it is live`,
        );
    }
    expect(wrong).toEqual([]);
    await app.close();
  });
});
