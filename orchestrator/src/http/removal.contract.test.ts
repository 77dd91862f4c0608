import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import { Client } from 'pg';
import { expect, test, vi } from 'vitest';
import { happen, placeAll } from '../../test/audit.ts';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { inThisDatabase } from '../../test/databases/this-database.ts';
import { type Key, newKey } from '../../test/domain.ts';
import { type RealApi, realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';
import { putOneTag } from '../domain/agents/tags.ts';
import { addOperator, getOperator, listOperators, removeOperator } from '../domain/operators/operators.ts';
import { actorIn, hashOfToken, type Session } from '../domain/operators/sessions.ts';
import { defineQuery } from '../store/query.ts';

/** Tests the removal of an operator while requests are incomplete or long responses are in progress. */

const openApi = realApiFixture();

const allTags = defineQuery('test/all tags', (db) => db.selectFrom('agent_tags').selectAll());

describeAnyDatabase('removed operator', (fixture) => {
  const stores = samplesFixture(fixture);
  async function open() {
    const api = await openApi(fixture, await stores.open());
    const url = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
    const join = async (username: string) => {
      const key = await newKey();
      const request = { public_key: key.hex, username, role: 'admin' } as const;
      await addOperator(api.domain.context, api.actor, request);
      return { key, token: await tokenOf(api.domain, key) };
    };
    return { api, url, join };
  }
  const remove = ({ domain, actor }: RealApi, { id }: Key) => removeOperator(domain.context, actor, id);

  /** Opens a connection and sends the beginning of a request. */
  async function begin(url: URL, text: string) {
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => {});
    await once(socket, 'connect');
    let came = '';
    socket.on('data', (bytes: Buffer) => {
      came += bytes.toString('latin1');
    });
    const closed = once(socket, 'close');
    socket.write(text);
    return { socket, closed, came: () => came };
  }

  test('does not return a session that ends while it is read from the database', async () => {
    const { api, join } = await open();
    const { signIn, db } = api.domain;
    for (const end of ['remove', 'logout'] as const) {
      const { key, token } = await join(`greta-${end}`);
      const get = db.get.bind(db);
      const spy = vi.spyOn(db, 'get').mockImplementationOnce(async (query, params) => {
        const row = await get(query, params);
        await (end === 'remove' ? remove(api, key) : signIn.logout(hashOfToken(token)));
        return row as never;
      });
      expect(await signIn.find(hashOfToken(token))).toBeNull();
      spy.mockRestore();
    }
    await api.app.close();
  });

  if (fixture.kind === 'postgres')
    test('commits no write by an operator whose removal began first', async () => {
      const address = await fixture.newAddress();
      const api = await openApi(
        { ...fixture, open: (options) => fixture.open({ ...options, at: address }) },
        await stores.open(),
      );
      const greta = { key: await newKey() };
      const { context, signIn } = api.domain;
      await addOperator(context, api.actor, { public_key: greta.key.hex, username: 'greta', role: 'admin' });
      const hash = hashOfToken(await tokenOf(api.domain, greta.key));
      const actor = actorIn((await signIn.find(hash)) as Session);
      const holder = new Client({ connectionString: address });
      await holder.connect();
      // Blocks the transaction of the write after the transaction has begun.
      await holder.query('begin');
      await holder.query('lock table agent_tags in share row exclusive mode');
      const writing = putOneTag(context, actor, 'web-1', 'by', 'greta').then(
        () => 'done',
        (error: unknown) => (error instanceof MusterError ? error.code : error),
      );
      const waits = `select 1 from pg_locks where not granted and relation = 'agent_tags'::regclass and ${inThisDatabase}`;
      while ((await holder.query(waits)).rowCount === 0) await sleep(5);
      await remove(api, greta.key);
      await holder.query('commit');
      await holder.end();
      expect(await writing).toBe('unauthenticated');
      expect(JSON.stringify(await context.db.all(allTags, {}))).not.toContain('greta');
      await api.app.close();
    });

  test('does not execute a request whose body arrives after the operator was removed', async () => {
    const { api, url, join } = await open();
    const [greta, otto] = [await join('greta'), await join('otto')];
    const body = JSON.stringify({ public_key: (await newKey()).hex, username: 'backdoor', role: 'admin' });
    const slow = (token: string) =>
      begin(
        url,
        `POST /api/v1/operators HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
      );
    const letIn = vi.spyOn(api.domain.signIn, 'find');
    const requests = [await slow(greta.token), await slow(otto.token)];
    // Waits until both requests are admitted and are waiting for their bodies.
    await vi.waitFor(() => expect(letIn).toHaveBeenCalledTimes(2));
    await Promise.all(letIn.mock.results.map(({ value }) => value));
    letIn.mockRestore();
    // Waits so that work that does not need the body can finish.
    await sleep(100);
    await remove(api, greta.key);
    await api.domain.signIn.logout(hashOfToken(otto.token));
    for (const { socket, closed, came } of requests) {
      socket.write(body.slice(20));
      await closed;
      expect(came()).toMatch(/^HTTP\/1\.1 401 /);
      expect(came()).toContain('"code":"unauthenticated"');
    }
    const { items } = await listOperators(api.domain.context, true, { limit: 100, offset: 0 });
    expect(items.map(({ username }) => username).sort()).toEqual(['ada', 'greta', 'otto']);
    await api.app.close();
  });

  test('aborts a long response to a removed operator even if the client does not read', async () => {
    const { api, url, join } = await open();
    for (let at = 0; at < 20; at++) await happen(api.domain, 50, 'test.happened', 'x'.repeat(20_000));
    await placeAll(api.domain);
    const greta = await join('greta');
    const asking = (token: string) =>
      begin(url, `GET /api/v1/audit/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
    const [removed, stays] = [await asking(greta.token), await asking(api.token)];
    for (const { socket } of [removed, stays]) {
      while (socket.bytesRead === 0) await sleep(10);
      socket.pause();
    }
    await sleep(200);
    await remove(api, greta.key);
    // The server closes only this connection, although the client does not read.
    const connections = () => new Promise((resolve) => api.app.server.getConnections((_, count) => resolve(count)));
    while ((await connections()) === 2) await sleep(20);
    expect(await connections()).toBe(1);
    removed.socket.resume();
    await removed.closed;
    // A complete chunked response ends with an empty chunk, so the client can detect that this response is incomplete.
    expect(removed.came().endsWith('0\r\n\r\n')).toBe(false);
    stays.socket.resume();
    while (!stays.came().endsWith('0\r\n\r\n')) await sleep(20);
    stays.socket.destroy();
    await api.app.close();
  });

  test('aborts a removed operator’s request that waits for an agent', async () => {
    const { api, url, join } = await open();
    const greta = await join('greta');
    const { socket, came } = await begin(
      url,
      `POST /api/v1/agents/web-1/drift HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${greta.token}\r\n\r\n`,
    );
    const applying = await begin(
      url,
      `POST /api/v1/agents/web-1/apply HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${greta.token}\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n{"modules":["m"]}`,
    );
    // Waits until both requests are waiting for the agent or have received a response.
    await vi.waitFor(async () => expect(await api.domain.links.nextOperation(api.agent.id)).not.toBeNull());
    await vi.waitFor(() => expect(came()).not.toBe(''));
    await remove(api, greta.key);
    // The apply waits for the agent, so its response is aborted.
    await applying.closed;
    expect(applying.came()).toBe('');
    // The drift check returns immediately, because the agent has no applied state.
    expect(came()).toMatch(/^HTTP\/1\.1 409 /);
    socket.destroy();
    // The operation is still queued.
    expect(await api.domain.links.nextOperation(api.agent.id)).not.toBeNull();
    await api.app.close();
  });

  test('confirms the removal to operators who remove themselves', async () => {
    const { api, url, join } = await open();
    const greta = await join('greta');
    const headers = { authorization: `Bearer ${greta.token}` };
    const answer = await fetch(new URL(`/api/v1/operators/${greta.key.id}`, url), { method: 'DELETE', headers });
    expect(answer.status).toBe(204);
    expect((await fetch(new URL('/api/v1/agents', url), { headers })).status).toBe(401);
    await api.app.close();
  });

  test('keeps one admin when all admins remove each other concurrently', async () => {
    const { api, join } = await open();
    const { context } = api.domain;
    const admins = [api.key, ...(await Promise.all(['greta', 'otto', 'olga'].map(join))).map(({ key }) => key)];
    const actors = admins.map(({ id }) => ({ type: 'operator' as const, id, name: id }));
    // Every admin removes every admin, including themselves.
    const outcomes = await Promise.allSettled(
      actors.flatMap((actor) => admins.map(({ id }) => removeOperator(context, actor, id))),
    );
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'last_admin' });
    const left = await Promise.all(admins.map(({ id }) => getOperator(context, id)));
    expect(left.filter(({ removed_at }) => removed_at === null)).toHaveLength(1);
    await api.app.close();
  });
});
