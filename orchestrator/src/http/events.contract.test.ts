import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../../lib/src/clock.ts';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { exampleHandlers } from '../../test/app-fixture.ts';
import { happen, placeAll } from '../../test/audit.ts';
import { type DatabaseFixture, describeAnyDatabase } from '../../test/databases/databases.ts';
import { type Domain, type Key, connect as letIn, newAdmin, newKey, openDomain } from '../../test/domain.ts';
import { setStatus } from '../domain/agents/agents.ts';
import { pruneAudit } from '../domain/audit/audit-retention.ts';
import { createLiveEvents, type LiveEvents } from '../domain/live/events.ts';
import { addOperator, removeOperator } from '../domain/operators/operators.ts';
import { hashOfToken } from '../domain/operators/sessions.ts';
import { type Actor, systemActor } from '../domain/shared/context.ts';
import { createApp } from './app.ts';
import { auditHandlers } from './routes/audit.ts';
import { eventHandlers } from './routes/events.ts';

/** Tests live events over HTTP, with a real database and the system clock. */

interface Opened {
  domain: Domain;
  app: FastifyInstance;
  live: LiveEvents;
  url: string;
  actor: Actor;
  token: string;
  /** The reads of events: how many have begun, and how many of them have not ended. */
  reads: { begun: number; open: number };
}
const open: { app: FastifyInstance; live: LiveEvents }[] = [];
afterEach(async () => {
  for (const { app, live } of open.splice(0)) {
    live.close();
    await app.close();
  }
});

async function tokenOf({ signIn }: Domain, key: Key): Promise<string> {
  const { nonce } = await signIn.challenge(key.hex);
  return (await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token;
}

async function serve(fixture: DatabaseFixture, clock: Clock = systemClock): Promise<Opened> {
  const domain = await openDomain(fixture);
  const reads = { begun: 0, open: 0 };
  const all = domain.db.all.bind(domain.db);
  domain.db.all = async (query, params) => {
    if (query.name !== 'audit/placed') return all(query, params);
    reads.begun++;
    reads.open++;
    return all(query, params).finally(() => reads.open--);
  };
  const { key, actor } = await newAdmin(domain);
  const token = await tokenOf(domain, key);
  const live = createLiveEvents(domain.context, clock, domain.signIn);
  const app = createApp({
    handlers: { ...exampleHandlers(), ...auditHandlers(domain.context), ...eventHandlers(domain.context, live) },
    sessions: domain.signIn,
    log: pino({ level: 'silent' }),
    version: '0.0.0',
    validateAnswers: true,
  });
  open.push({ app, live });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  await placeAll(domain);
  return { domain, app, live, url, actor, token, reads };
}

interface Frame {
  id?: string;
  event?: string;
  data?: unknown;
  comment?: string;
}

/** A client that behaves like EventSource, and records the received events. */
class Client {
  readonly frames: Frame[] = [];
  /** ID of the last received event. */
  last = '';
  readonly ended: Promise<'whole' | 'cut'>;
  readonly status: number;
  readonly type: string | null;
  #aborting: AbortController;
  #wake: (() => void) | null = null;

  constructor(answer: Response, aborting: AbortController) {
    this.#aborting = aborting;
    this.status = answer.status;
    this.type = answer.headers.get('content-type');
    this.ended = this.#read(answer);
  }

  async #read(answer: Response): Promise<'whole' | 'cut'> {
    let text = '';
    const decoder = new TextDecoder();
    try {
      for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += decoder.decode(bytes, { stream: true });
        const blocks = text.split('\n\n');
        text = blocks.pop() as string;
        for (const block of blocks) this.#take(block);
        this.#wake?.();
      }
      return 'whole';
    } catch {
      return 'cut';
    }
  }

  #take(block: string): void {
    const frame: Frame = {};
    for (const line of block.split('\n')) {
      const [, name, value] = /^([^:]*): ?(.*)$/s.exec(line) as unknown as [string, string, string];
      if (name === '') frame.comment = value;
      else if (name === 'data') frame.data = JSON.parse(value);
      else if (name === 'id') frame.id = this.last = value;
      else if (name === 'event') frame.event = value;
    }
    this.frames.push(frame);
  }

  /** Returns the positions of the received events in the chain. */
  get places(): number[] {
    return this.frames.filter((f) => f.data !== undefined && f.event === undefined).map(({ id }) => Number(id));
  }

  /** Waits without its own time limit; the test's time limit applies. */
  async until(enough: (client: this) => boolean): Promise<void> {
    while (!enough(this))
      await Promise.race([
        new Promise<void>((wake) => {
          this.#wake = wake;
        }),
        sleep(50),
      ]);
  }

  close(): void {
    this.#aborting.abort();
  }
}

async function follow({ url, token }: Opened, query = '', headers: Record<string, string> = {}): Promise<Client> {
  const aborting = new AbortController();
  const answer = await fetch(`${url}/api/v1/events${query}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: aborting.signal,
  });
  return new Client(answer, aborting);
}

/**
 * Follows events, and waits until the stream is live. A hint that comes earlier makes the client reload everything. A
 * stream becomes live after it has read the newest events; its first frame precedes this read.
 */
async function followLive(opened: Opened, query = ''): Promise<Client> {
  const { reads } = opened;
  const { begun } = reads;
  const client = await follow(opened, query);
  await client.until(({ last }) => last !== '');
  await vi.waitFor(() => expect(reads.begun > begun && reads.open === 0).toBe(true));
  return client;
}
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

describeAnyDatabase('live events', (fixture) => {
  test('sends events with their data when they are added to the chain', async () => {
    const opened = await serve(fixture);
    const client = await follow(opened);
    expect([client.status, client.type]).toEqual([200, 'text/event-stream']);
    await client.until(({ last }) => last !== '');
    const from = Number(client.last);
    await happen(opened.domain, 3);
    await placeAll(opened.domain);
    await client.until(({ places }) => places.length === 3);
    expect(client.places).toEqual(upTo(from + 1, from + 3));
    expect(client.frames.at(-1)?.data).toMatchObject({
      place: from + 3,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      event_type: 'test.happened',
      metadata: { at: 2 },
    });
  });

  test('resumes after the last received event without loss or duplicates, after any number of disconnects', async () => {
    const opened = await serve(fixture);
    const { domain } = opened;
    const first = await follow(opened);
    await first.until(({ last }) => last !== '');
    const begin = Number(first.last) + 1;
    first.close();
    let busy = true;
    const writing = (async () => {
      for (let at = 0; at < 30; at++) {
        await happen(domain, 40);
        await placeAll(domain);
      }
      busy = false;
    })();
    const seen: number[] = [];
    let last = first.last;
    for (let turn = 0; busy || seen.length < 1200; turn++) {
      // Alternates between the `Last-Event-ID` header and the query parameter.
      const client =
        turn % 2 === 0
          ? await follow(opened, '', { 'last-event-id': last })
          : await follow(opened, `?last_event_id=${last}`);
      await client.until(({ places }) => places.length > 0 || (!busy && seen.length === 1200));
      await sleep(turn * 3);
      client.close();
      await client.ended;
      seen.push(...client.places);
      last = client.last;
    }
    await writing;
    expect(seen).toEqual(upTo(begin, begin + 1199));
  });

  test('prefers the Last-Event-ID header to the query parameter, which browsers repeat unchanged on reconnect', async () => {
    const opened = await serve(fixture);
    await happen(opened.domain, 5);
    await placeAll(opened.domain);
    const client = await follow(opened, '?last_event_id=1', { 'last-event-id': '4' });
    await client.until(({ places }) => places.length > 0);
    expect(client.places[0]).toBe(5);
    for (const bad of ['x', '-1', '1e3']) expect((await follow(opened, '', { 'last-event-id': bad })).status).toBe(400);
  });

  test('filters events by category and agent, and advances the ID for events that do not match', async () => {
    const opened = await serve(fixture);
    const { domain } = opened;
    const some = await follow(opened, '?category=other,third');
    const none = await follow(opened, `?node_id=${'ab'.repeat(16)}`);
    await some.until(({ last }) => last !== '');
    await happen(domain, 2);
    await happen(domain, 1, 'other.thing');
    await happen(domain, 1, 'third.thing');
    await placeAll(domain);
    await some.until(({ places }) => places.length === 2);
    expect(
      some.frames.filter(({ data }) => data).map(({ data }) => (data as { event_type: string }).event_type),
    ).toEqual(['other.thing', 'third.thing']);
    expect(none.places).toEqual([]);
    const resumed = await follow(opened, '?category=other', { 'last-event-id': '1' });
    await resumed.until(({ places }) => places.length === 1);
  });

  test('reports a gap if the missed events were pruned or never existed', async () => {
    const opened = await serve(fixture);
    const { domain } = opened;
    await happen(domain, 5);
    await placeAll(domain);
    domain.clock.advance(1000);
    await pruneAudit(domain.context, systemActor, new Date(domain.clock.now()).toISOString());
    await placeAll(domain);
    const late = await follow(opened, '', { 'last-event-id': '2' });
    await late.until(({ places }) => places.length > 0);
    const gap = late.frames.find(({ event }) => event === 'gap')?.data as { next: number };
    expect(gap).toEqual({ after: 2, next: late.places[0], reason: 'pruned' });
    const lost = await follow(opened, '', { 'last-event-id': '999999' });
    await lost.until(({ frames }) => frames.some(({ event }) => event === 'gap'));
    await happen(domain, 1);
    await placeAll(domain);
    await lost.until(({ places }) => places.length === 1);
    expect(lost.frames.find(({ event }) => event === 'gap')?.data).toMatchObject({ after: 999999, reason: 'unknown' });
  });

  test('closes a stream within a second when its operator is removed, or its session ends or expires', async () => {
    const clock = new ManualClock();
    const opened = await serve(fixture, clock);
    const { domain, actor } = opened;
    const keys = [await newKey(), await newKey()] as const;
    for (const [at, key] of keys.entries())
      await addOperator(domain.context, actor, { public_key: key.hex, username: `op${at}`, role: 'operator' });
    const [one, two] = [await tokenOf(domain, keys[0]), await tokenOf(domain, keys[1])];
    const removed = await follow({ ...opened, token: one });
    const loggedOut = await follow({ ...opened, token: two });
    const stays = await follow(opened);
    const soon = async (client: Client, what: () => Promise<unknown>) => {
      await client.until(({ last }) => last !== '');
      await what();
      // The streams use this clock, and must end within one second.
      clock.advance(1_000);
      expect(await client.ended).toBe('whole');
    };
    await soon(removed, () => removeOperator(domain.context, actor, keys[0].id));
    expect((await follow({ ...opened, token: one })).status).toBe(401);
    await soon(loggedOut, () => domain.signIn.logout(hashOfToken(two)));
    await soon(stays, async () => domain.clock.advance(3_601_000));
  });

  test('closes streams on shutdown', async () => {
    const opened = await serve(fixture);
    const client = await follow(opened);
    await client.until(({ last }) => last !== '');
    opened.app.drain();
    expect(await client.ended).toBe('whole');
  });

  /** Connects a client that sends a request, but does not read the response. */
  async function idle({ url, token }: Opened) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`GET /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }
  /** Records more events than fit into the socket buffers and a slow reader's buffer. */
  async function flood(domain: Domain) {
    for (let at = 0; at < 12; at++) {
      await happen(domain, 100, 'test.happened', 'x'.repeat(20_000));
      await placeAll(domain);
    }
  }

  test('sends all events to a slow reader at its own pace', async () => {
    const opened = await serve(fixture);
    const fast = await follow(opened);
    const slow = await idle(opened);
    await flood(opened.domain);
    await fast.until(({ places }) => places.length === 1200);
    let text = '';
    slow.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
    });
    const came = () => [...text.matchAll(/id: (\d+)\ndata/g)].map(([, place]) => Number(place));
    while (came().length < 1200) await sleep(100);
    expect(came()).toEqual(fast.places);
    await happen(opened.domain, 1);
    await placeAll(opened.domain);
    while (came().length < 1201) await sleep(50);
    expect(came()).toHaveLength(1201);
    slow.destroy();
  });

  test('closes the stream of a client that does not read', async () => {
    const clock = new ManualClock();
    const opened = await serve(fixture, clock);
    const fast = await follow(opened);
    const accepted = once(opened.app.server, 'connection');
    const stalled = await idle(opened);
    const [served] = (await accepted) as [Socket];
    const connections = () => promisify(opened.app.server.getConnections.bind(opened.app.server))();
    expect(await connections()).toBe(2);
    await flood(opened.domain);
    await fast.until(({ places }) => places.length === 1200);
    // The response stops when the buffers of its connection are full.
    for (let before = 0; before === 0 || before !== served.writableLength; ) {
      before = served.writableLength;
      await sleep(100);
    }
    clock.advance(29_000);
    await sleep(100);
    expect(await connections()).toBe(2);
    clock.advance(2_000);
    while ((await connections()) === 2) await sleep(50);
    expect(await connections()).toBe(1);
    // The second client reads, so it receives its heartbeat.
    await fast.until(({ frames }) => frames.some(({ comment }) => comment !== undefined));
    stalled.destroy();
  });

  test('reads the chain once for any number of clients', async () => {
    // Uses a manual clock, so that the number of polls does not depend on the machine's speed.
    const opened = await serve(fixture, new ManualClock());
    const { domain } = opened;
    const clients: Client[] = [];
    for (let at = 0; at < 20; at++) clients.push(await followLive(opened));
    const { begun } = opened.reads;
    await happen(domain, 10);
    await placeAll(domain);
    await Promise.all(clients.map((client) => client.until(({ places }) => places.length === 10)));
    expect(opened.reads.begun - begun).toBeLessThan(5);
  });

  test('limits the number of streams per session', async () => {
    const opened = await serve(fixture);
    for (let at = 0; at < 32; at++) expect((await follow(opened)).status).toBe(200);
    const refused = await follow(opened);
    expect(refused.status).toBe(429);
  });

  test('notifies all streams when an operation, agent, or run changes', async () => {
    const opened = await serve(fixture);
    const { domain } = opened;
    const client = await followLive(opened);
    const other = await followLive(opened, '?category=run');
    domain.context.bus.publish({
      type: 'operation_ended',
      operation_id: 'o',
      node_id: 'n',
      run_id: null,
      status: 'succeeded',
    });
    domain.context.bus.publish({ type: 'agent_removed', node_id: 'n' });
    domain.context.bus.publish({ type: 'run_ended', run_id: 'r' });
    domain.context.bus.publish({ type: 'work', node_id: 'n' });
    await client.until(({ frames }) => frames.some(({ event }) => event === 'run'));
    expect(client.frames.filter(({ event }) => event)).toEqual([
      { event: 'operation', data: { operation_id: 'o', node_id: 'n', run_id: null, status: 'succeeded' } },
      { event: 'agent', data: { node_id: 'n', change: 'removed' } },
      { event: 'run', data: { run_id: 'r' } },
    ]);
    await other.until(({ frames }) => frames.some(({ event }) => event === 'run'));
    expect(other.frames.filter(({ event }) => event)).toHaveLength(1);
  });

  test('sends one hint per change to an agent, but a single hint for many simultaneous changes', async () => {
    const opened = await serve(fixture);
    const { domain, actor } = opened;
    const { bus } = domain.context;
    const key = await newKey();
    const all = await followLive(opened, '?category=agent');
    const one = await followLive(opened, `?node_id=${key.id}`);
    await letIn(domain, key, { hostname: 'web-1' });
    domain.links.opened(key.id);
    await setStatus(domain.context, actor, key.id, { status: 'approved', name: 'web-1' });
    await domain.links.attributesChanged(key.id, { platform: 'linux', hostname: 'web-2' });
    await domain.links.closed(key.id, 'gone', domain.now());
    const changes = ({ frames }: Client) => frames.filter(({ event }) => event === 'agent').map(({ data }) => data);
    const expected = ['connected', 'changed', 'attributes', 'disconnected'].map((change) => ({
      node_id: key.id,
      change,
    }));
    await all.until((client) => changes(client).length === 4);
    expect(changes(all)).toEqual(expected);
    for (let n = 0; n < 10_000; n++) bus.publish({ type: 'agent_linked', node_id: `n${n}` });
    bus.publish({ type: 'agent_linked', node_id: key.id });
    await all.until(({ frames }) => frames.some(({ event }) => event === 'agents'));
    expect(all.frames.at(-1)).toEqual({ event: 'agents', data: { agents: null } });
    expect(all.frames.length).toBeLessThan(100);
    await one.until((client) => changes(client).length === 5);
    expect(changes(one)).toEqual([...expected, { node_id: key.id, change: 'connected' }]);
  });

  test('makes clients reload after hints from other replicas were lost', async () => {
    const opened = await serve(fixture);
    const { bus } = opened.domain.context;
    const clients = [await followLive(opened), await followLive(opened, '?category=state')];
    bus.publishHere({ type: 'hints_lost' });
    opened.domain.clock.advance(500);
    const named = (client: (typeof clients)[number]) =>
      client.frames.flatMap(({ event, data }) => (event ? [{ event, data }] : []));
    await clients[0]!.until((client) => named(client).length === 5);
    await clients[1]!.until((client) => named(client).length === 1);
    expect(named(clients[0]!)).toEqual([
      { event: 'agents', data: { agents: null } },
      { event: 'operations', data: { operations: null } },
      { event: 'run', data: { run_id: null } },
      { event: 'window', data: {} },
      { event: 'notification', data: {} },
    ]);
    expect(named(clients[1]!)).toEqual([{ event: 'operations', data: { operations: null } }]);
  });

  test('sends read marks only to the operator who read the notifications', async () => {
    const opened = await serve(fixture);
    const { bus } = opened.domain.context;
    const client = await followLive(opened);
    bus.publish({ type: 'notifications_read', operator_id: 'somebody else' });
    bus.publish({ type: 'notifications_read', operator_id: opened.actor.id });
    bus.publish({ type: 'run_changed', run_id: 'r' });
    await client.until(({ frames }) => frames.some(({ event }) => event === 'run'));
    expect(client.frames.filter(({ event }) => event).map(({ event }) => event)).toEqual(['notification', 'run']);
  });
});
