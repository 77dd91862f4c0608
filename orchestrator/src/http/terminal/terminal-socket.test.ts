import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { bearer, keepingLog, testApp, tokens } from '../../../test/app-fixture.ts';
import type {
  TerminalClient,
  TerminalConnectionEvents,
  TerminalConnections,
  TerminalNotice,
} from '../../domain/terminals/terminal-client.ts';
import { selfSigned } from '../../identity/certificate.ts';

const sessionId = '01KAGZ7Q4W8E2R5T6Y9V0P3A1S';
const path = (ticket = 'good', session = sessionId) => `/api/v1/terminal/session/${session}/ws?ticket=${ticket}`;

/** Simulates the domain: records a connection's events, and exposes its client. */
class Joined implements TerminalConnectionEvents {
  readonly mode: 'control' | 'view';
  isRelayed = false;
  readonly client: TerminalClient;
  private readonly pieces: Uint8Array[] = [];
  readonly events: string[] = [];
  constructor(mode: 'control' | 'view', client: TerminalClient) {
    this.mode = mode;
    this.client = client;
  }
  typed(bytes: Uint8Array): void {
    this.pieces.push(bytes);
  }
  get frames(): number {
    return this.pieces.length;
  }
  get typedBytes(): Buffer {
    return Buffer.concat(this.pieces);
  }
  resized(cols: number, rows: number): void {
    this.events.push(`${cols}x${rows}`);
  }
  left(): void {
    this.events.push('left');
  }
}

/** Accepts the tickets `good` (control) and `look` (view) for one terminal session, each any number of times. */
class Terminals implements TerminalConnections {
  readonly joined: Joined[] = [];
  readonly tried: string[] = [];
  onJoin: (client: TerminalClient) => void = () => {};
  async connect(ticket: string, session: string, client: TerminalClient): Promise<Joined | null> {
    this.tried.push(ticket);
    const mode = { good: 'control', look: 'view' }[ticket] as 'control' | 'view' | undefined;
    if (mode === undefined || session !== sessionId) return null;
    const joined = new Joined(mode, client);
    this.joined.push(joined);
    this.onJoin(client);
    return joined;
  }
}

/** A client that records all received data. */
class Operator {
  readonly ws: WebSocket;
  shown = Buffer.alloc(0);
  readonly notices: TerminalNotice[] = [];
  readonly order: string[] = [];
  readonly closed: Promise<number>;
  constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on('message', (data: Buffer, isBinary) => {
      this.order.push(isBinary ? 'bytes' : 'notice');
      if (isBinary) this.shown = Buffer.concat([this.shown, data]);
      else this.notices.push(JSON.parse(data.toString()));
    });
    ws.on('error', () => {});
    this.closed = new Promise((resolve) => ws.on('close', resolve));
  }
  get socket(): Socket {
    return (this.ws as unknown as { _socket: Socket })._socket;
  }
}

let clock: ManualClock;
let terminals: Terminals;
let app: FastifyInstance;
let port: number;
let lines: Record<string, unknown>[];
const operators: Operator[] = [];

beforeEach(() => {
  clock = new ManualClock();
  terminals = new Terminals();
});
afterEach(async () => {
  for (const { ws } of operators.splice(0)) ws.terminate();
  await app.close();
});

const rates = { signIn: { perMinute: 1e6, burst: 1e6 }, sessionPerSecond: 1e6 };

async function start(
  options: NonNullable<Parameters<typeof testApp>[1]> = {},
  handlers: Parameters<typeof testApp>[0] = {},
): Promise<void> {
  const logged = keepingLog();
  lines = logged.lines;
  app = testApp(handlers, { terminals, clock, log: logged.log, ...options });
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
}

const dial = (url: string, options = {}): WebSocket =>
  new WebSocket(url, { perMessageDeflate: false, ca: '', rejectUnauthorized: false, ...options });

async function join(ticket = 'good', options = {}): Promise<{ operator: Operator; joined: Joined }> {
  const before = terminals.joined.length;
  const operator = new Operator(dial(`ws://127.0.0.1:${port}${path(ticket)}`, options));
  operators.push(operator);
  await once(operator.ws, 'open');
  return { operator, joined: terminals.joined[before]! };
}

/** Sends an upgrade request that is refused. @returns the response */
async function refused(url: string, options = {}): Promise<{ status: number; headers: object; problem: unknown }> {
  const ws = dial(url, options);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    ws.on('unexpected-response', (_request, response) => resolve(response));
    ws.on('open', () => reject(new Error('it was let in')));
    ws.on('error', reject);
  });
  const problem = JSON.parse(await text(answer));
  await new Promise((resolve) => (answer.socket.destroyed ? resolve(null) : answer.socket.once('close', resolve)));
  return { status: answer.statusCode!, headers: answer.headers, problem };
}

/**
 * Resolves when `condition` returns true. Does not advance the clock, so I/O that is already in progress must make it
 * true.
 */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

/** Resolves when the server has received all data from the client. */
async function settled({ ws }: Operator): Promise<void> {
  ws.ping();
  await once(ws, 'pong');
}

describe('opening a terminal socket', () => {
  test('passes bytes and sizes in both directions, and logs no ticket', async () => {
    await start();
    const { operator, joined } = await join();
    operator.ws.send(Buffer.from('ls\r'));
    operator.ws.send(Buffer.alloc(0));
    operator.ws.send('{"type":"resize","cols":120,"rows":40}');
    joined.client.notify({ type: 'resize', cols: 80, rows: 24 });
    const sent = new Promise<void>((resolve) => joined.client.show(Buffer.from([0xff, 0x00, 0x1b]), resolve));
    await settled(operator);
    await sent;
    expect(joined.typedBytes.toString()).toBe('ls\r');
    expect([joined.frames, joined.events]).toEqual([1, ['120x40']]);
    expect(operator.notices).toEqual([{ type: 'resize', cols: 80, rows: 24 }]);
    expect(operator.shown).toEqual(Buffer.from([0xff, 0x00, 0x1b]));
    operator.ws.close();
    await until(() => joined.events.length === 2);
    expect(joined.events[1]).toBe('left');
    expect(lines.filter(({ status }) => status === 101)).toMatchObject([
      {
        msg: 'request',
        method: 'GET',
        path: `/api/v1/terminal/session/${sessionId}/ws`,
        mode: 'control',
        ip: '127.0.0.1',
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain('good');
  });

  test('opens a terminal socket over TLS', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = await selfSigned(privateKey, { commonName: 'test', hosts: ['127.0.0.1'], days: 2 });
    await start({ tls: { cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string } });
    const operator = new Operator(dial(`wss://127.0.0.1:${port}${path()}`, { origin: `https://127.0.0.1:${port}` }));
    operators.push(operator);
    await once(operator.ws, 'open');
    operator.ws.send(Buffer.from('x'));
    await until(() => terminals.joined[0]!.frames === 1);
    expect(await refused(`wss://127.0.0.1:${port}${path('bad')}`)).toMatchObject({ status: 401 });
  });

  test('first sends the messages that were queued before the socket opened, in order', async () => {
    await start();
    const sent: string[] = [];
    terminals.onJoin = (client) => {
      client.notify({ type: 'resize', cols: 80, rows: 24 });
      client.show(Buffer.from('screen'), () => sent.push('screen'));
      client.pause();
    };
    const { operator, joined } = await join();
    operator.ws.send(Buffer.from('typed'));
    await until(() => sent.length === 1 && operator.order.length === 2);
    expect([operator.order, operator.shown.toString()]).toEqual([['notice', 'bytes'], 'screen']);
    expect(joined.frames).toBe(0);
    joined.client.resume();
    await until(() => joined.frames === 1);
  });

  test('requires a ticket that is valid for the terminal session in the path', async () => {
    await start();
    for (const address of [
      path('bad'),
      path('good', '01KAGZ7Q4W8E2R5T6Y9V0P3A1T'),
      path(''),
      path().replace('?ticket=good', ''),
      `${path()}&ticket=good`,
    ]) {
      const { status, headers, problem } = await refused(`ws://127.0.0.1:${port}${address}`);
      expect({ status, ...(problem as object) }, address).toMatchObject({ status: 401, code: 'ticket_invalid' });
      expect(headers).toMatchObject({
        'content-type': expect.stringMatching(/^application\/problem\+json/),
        connection: 'close',
      });
    }
    expect(terminals.joined).toEqual([]);
    await until(() => lines.filter(({ status }) => status === 401).length === 5);
    expect(lines.find(({ status }) => status === 401)).toMatchObject({ path: path().split('?')[0], ip: '127.0.0.1' });
  });

  test('ignores upgrades at unknown paths, and to protocols other than WebSocket', async () => {
    await start();
    const url = `http://127.0.0.1:${port}`;
    const headers = { ...bearer('admin'), connection: 'upgrade', upgrade: 'websocket' };
    const get = async (path: string, more: object): Promise<[number | undefined, object]> => {
      const sent = httpRequest(url + path, { headers: { ...headers, ...more } });
      sent.end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      return [answer.statusCode, { ...answer.headers, ...JSON.parse(await text(answer)) }];
    };
    expect(await get('/healthz', {})).toMatchObject([200, {}]);
    expect(await get('/healthz', { upgrade: 'h2c' })).toMatchObject([200, {}]);
    expect(await get('/api/v1/terminal/session/x/y/ws?ticket=good', {})).toMatchObject([
      404,
      { code: 'route_not_found' },
    ]);
    expect(await get('/api/v1/terminal/session/x/y/ws', { authorization: '' })).toMatchObject([401, {}]);
    expect(await get(path(), { upgrade: 'h2c' })).toMatchObject([
      426,
      { code: 'upgrade_required', upgrade: 'websocket' },
    ]);
    expect(await get(path(), {})).toMatchObject([400, { code: 'malformed_request', 'sec-websocket-version': '13' }]);
    expect(terminals.tried).toEqual([]);
  });

  test('refuses terminal sockets from pages on other origins', async () => {
    await start({ trustedProxies: ['127.0.0.1'] });
    const origin = (origin: string, host = 'muster.example', more = {}) => ({ headers: { host, origin, ...more } });
    const url = `ws://127.0.0.1:${port}${path()}`;
    for (const options of [
      origin('https://evil.example'),
      origin('https://muster.example.evil.example'),
      origin('https://muster.example:8443'),
      origin('null'),
      origin('file://'),
      origin(''),
      origin('https://127.0.0.1', '127.0.0.1', { 'x-forwarded-host': 'muster.example' }),
    ]) {
      const { status, problem } = await refused(url, options);
      expect({ status, ...(problem as object) }).toMatchObject({ status: 403, code: 'origin_refused' });
    }
    expect(terminals.tried).toEqual([]);
    await join('good', origin('https://muster.example'));
    await join('good', origin('https://muster.example', 'muster.example:443'));
    await join('good', origin('http://MUSTER.example:8080', 'muster.example:8080'));
    await join('good', origin('https://muster.example', '127.0.0.1', { 'x-forwarded-host': 'muster.example' }));
  });

  test('refuses terminal sockets during shutdown', async () => {
    await start();
    app.drain();
    const { status, problem, headers } = await refused(`ws://127.0.0.1:${port}${path()}`);
    expect({ status, ...(problem as object), ...headers }).toMatchObject({
      status: 503,
      code: 'draining',
      'retry-after': '5',
    });
  });

  test('limits invalid tickets from an address, but not valid tickets', async () => {
    await start({ limits: { rates: { ...rates, signIn: { perMinute: 60, burst: 3 } } } });
    for (let at = 0; at < 5; at++) (await join()).operator.ws.terminate();
    for (let at = 0; at < 3; at++)
      expect(await refused(`ws://127.0.0.1:${port}${path('bad')}`)).toMatchObject({ status: 401 });
    const { status, headers } = await refused(`ws://127.0.0.1:${port}${path()}`);
    expect([status, headers]).toEqual([429, expect.objectContaining({ 'retry-after': '3' })]);
    // Sign-ins are counted separately.
    const challenge = await fetch(`http://127.0.0.1:${port}/api/v1/auth/challenge`, { method: 'POST' });
    expect(challenge.status).not.toBe(429);
  });

  test('limits the number of terminal sockets, to reserve connections for requests', async () => {
    await start({ limits: { rates, connections: 4 } });
    const first = await join();
    await join();
    const { status, problem } = await refused(`ws://127.0.0.1:${port}${path()}`);
    expect({ status, ...(problem as object) }).toMatchObject({ status: 409, code: 'terminal_limit' });
    first.operator.ws.terminate();
    await until(() => first.joined.events.includes('left'));
    await join();
  });

  test('accepts an upgrade that directly follows requests on the same connection', async () => {
    await start();
    const client = connect(port, '127.0.0.1');
    let answer = '';
    client.setEncoding('latin1').on('data', (text: string) => (answer += text));
    client.on('error', () => {});
    const request = 'GET /api/v1/nothing HTTP/1.1\r\nhost: x\r\n\r\n';
    client.write(
      `${request.repeat(3)}GET ${path()} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`,
    );
    await until(() => answer.includes('HTTP/1.1 101'));
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([401, 401, 401, 101].map((status) => `HTTP/1.1 ${status}`));
    client.destroy();
    await until(() => terminals.joined.at(-1)?.events.includes('left') === true);
  });

  test('reports that the client has left if its connection breaks before or after the socket opens', async () => {
    await start();
    const partial = connect(port, '127.0.0.1');
    partial.write(`GET ${path()} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n`);
    partial.resetAndDestroy();
    const removed = connect(port, '127.0.0.1');
    removed.write(
      `GET ${path()} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`,
    );
    removed.resetAndDestroy();
    await join();
    await until(() => terminals.joined.slice(0, -1).every(({ events }) => events.includes('left')));
  });

  test('reports that the client has left if its connection breaks while the socket opens, and completes pending sends', async () => {
    await start();
    const over: string[] = [];
    app.server.once('upgrade', (_request, socket) => {
      terminals.onJoin = (client) => {
        socket.destroy();
        client.show(Buffer.of(1), () => over.push('shown'));
      };
    });
    await expect(join()).rejects.toThrow();
    await until(() => over.length > 0);
    expect(terminals.joined.map(({ events }) => events)).toEqual([['left']]);
  });
});

describe('client frames', () => {
  test.each([
    ['text that is not JSON', 'ls', 'good', 'invalid_input'],
    ['an invalid size', '{"type":"resize","cols":0,"rows":24}', 'good', 'invalid_input'],
    ['a size with an unknown field', '{"type":"resize","cols":1,"rows":24,"x":1}', 'good', 'invalid_input'],
    ['a message of another kind', '{"type":"exit","code":0}', 'good', 'invalid_input'],
    ['input of a viewer', Buffer.from('rm'), 'look', 'forbidden'],
    ['a size of a viewer', '{"type":"resize","cols":1,"rows":1}', 'look', 'forbidden'],
  ])('closes a client’s terminal socket if it sends %s', async (_, frame, ticket, code) => {
    await start();
    const { operator, joined } = await join(ticket);
    operator.ws.send(frame);
    operator.ws.send(Buffer.from('more'));
    expect(await operator.closed).toBe(1008);
    expect(operator.notices).toEqual([{ type: 'error', code, message: expect.any(String) }]);
    await until(() => joined.events.length > 0);
    expect([joined.events, joined.frames]).toEqual([['left'], 0]);
  });

  test('closes a client’s terminal socket if it sends a frame above the maximum size', async () => {
    await start();
    const { operator, joined } = await join();
    operator.ws.send(Buffer.alloc(64 * 1024));
    operator.ws.send(Buffer.alloc(64 * 1024 + 1));
    expect(await operator.closed).toBe(1009);
    expect(joined.typedBytes.length).toBe(64 * 1024);
  });

  test('stops reading from a client while the domain pauses input', async () => {
    await start();
    const { operator, joined } = await join();
    joined.client.pause();
    for (let at = 0; at < 64; at++) operator.ws.send(Buffer.alloc(64 * 1024));
    // Frames that arrived together with the first frame are delivered. Further frames stay in network buffers.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(joined.frames).toBeLessThan(8);
    joined.client.resume();
    await until(() => joined.frames === 64);
  });

  test('pauses reading above the maximum frame rate without losing frames', async () => {
    await start();
    const { operator, joined } = await join();
    // One-byte frames with a masking key of zeros.
    operator.socket.write(
      Buffer.concat(Array.from({ length: 40_000 }, (_, at) => Buffer.of(0x82, 0x81, 0, 0, 0, 0, at % 251))),
    );
    await until(() => joined.frames > 4000);
    for (let before = 0; before !== joined.frames; ) {
      before = joined.frames;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(joined.frames).toBeLessThan(20_000);
    while (joined.frames < 40_000) {
      clock.advance(1000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(joined.typedBytes.every((byte, at) => byte === at % 251)).toBe(true);
    expect(joined.events).toEqual([]);
  });

  test('counts pongs toward the maximum frame rate', async () => {
    await start();
    const { operator, joined } = await join();
    const pong = Buffer.of(0x8a, 0x80, 0, 0, 0, 0);
    operator.socket.write(Buffer.concat([...Array(40_000).fill(pong), Buffer.of(0x82, 0x81, 0, 0, 0, 0, 65)]));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(joined.frames).toBe(0);
    while (joined.frames === 0) {
      clock.advance(1000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(joined.frames).toBe(1);
  });

  test('closes only the connection whose handler throws', async () => {
    await start();
    const { operator, joined } = await join();
    const other = await join();
    joined.typed = () => {
      throw new TypeError('a bug');
    };
    operator.ws.send(Buffer.from('x'));
    expect(await operator.closed).toBe(1011);
    expect(lines.find(({ msg }) => String(msg).startsWith('bug'))).toMatchObject({ err: { message: 'a bug' } });
    other.joined.client.show(Buffer.from('on'), () => {
      throw new TypeError('another');
    });
    expect(await other.operator.closed).toBe(1011);
    expect(other.operator.shown.toString()).toBe('on');
    await join();
  });
});

describe('liveness', () => {
  test('pings clients twice a minute, and closes the socket after two pings without a pong', async () => {
    await start();
    const { operator, joined } = await join();
    const silent = await join('good', { autoPong: false });
    let pings = 0;
    operator.ws.on('ping', () => pings++);
    for (let round = 1; round <= 2; round++) {
      clock.advance(30_000);
      await until(() => pings === round);
      await settled(operator);
      expect(silent.joined.events).toEqual([]);
    }
    clock.advance(30_000);
    await until(() => silent.joined.events.length === 1);
    expect(silent.joined.events).toEqual(['left']);
    expect(await silent.operator.closed).toBe(1006);
    await until(() => pings === 3);
    expect(joined.events).toEqual([]);
  });

  test('treats accepted output as a response to a ping, and sends no pings while reading is paused', async () => {
    await start();
    const reader = await join('good', { autoPong: false });
    const paused = await join();
    paused.joined.client.pause();
    for (let round = 0; round < 4; round++) {
      clock.advance(30_000);
      await new Promise<void>((resolve) => reader.joined.client.show(Buffer.of(1), resolve));
    }
    paused.joined.client.resume();
    await settled(paused.operator);
    expect([reader.joined.events, paused.joined.events]).toEqual([[], []]);
  });
});

describe('a connection that closes', () => {
  test('disconnects a client with too many queued frames of any size', async () => {
    await start();
    const { operator, joined } = await join();
    operator.socket.pause();
    const over = new Promise<void>((resolve) => joined.client.show(Buffer.alloc(32 * 1024 * 1024), resolve));
    let sizes = 0;
    while (sizes < 100_000 && joined.events.length === 0) {
      for (let at = 0; at < 1000; at++) joined.client.notify({ type: 'resize', cols: (++sizes % 99) + 1, rows: 24 });
      clock.advance(500);
      await turn();
    }
    await over;
    expect(sizes).toBe(9_000);
    expect(joined.events).toEqual(['left']);
  });

  test('closes the connection only after sending all output and messages', async () => {
    await start();
    const { operator, joined } = await join();
    const large = Buffer.alloc(8 * 1024 * 1024, 'l');
    const real = setTimeout;
    const late = (action: () => void, ms?: number) => real(action, ms === 5_000 ? 60_000 : ms);
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(late as typeof setTimeout);
    operator.socket.pause();
    joined.client.show(large, () => {});
    joined.client.notify({ type: 'exit', code: 3, signal: null });
    joined.client.pause();
    joined.client.close();
    joined.client.close();
    // After the disconnect, frames complete immediately, and input is ignored.
    await new Promise<void>((resolve) => joined.client.show(Buffer.of(1), resolve));
    joined.client.notify({ type: 'exit', code: 4, signal: null });
    operator.ws.send(Buffer.from('late'));
    // The time limit for the client's close frame begins after all data has been sent.
    clock.advance(4_000);
    expect(timers.mock.calls.filter(([, ms]) => ms === 5_000)).toEqual([]);
    operator.socket.resume();
    expect(await operator.closed).toBe(1000);
    timers.mockRestore();
    expect(operator.shown.length).toBe(large.length);
    expect(operator.notices).toEqual([{ type: 'exit', code: 3, signal: null }]);
    await until(() => joined.events.length === 1);
    expect([joined.events, joined.frames]).toEqual([['left'], 0]);
  });

  test('disconnects a client that accepts no data for five seconds, and completes its pending sends', async () => {
    await start();
    const { operator, joined } = await join();
    operator.socket.pause();
    const over = new Promise<void>((resolve) => joined.client.show(Buffer.alloc(32 * 1024 * 1024), resolve));
    joined.client.close();
    clock.advance(4_000);
    await turn();
    expect(joined.events).toEqual([]);
    clock.advance(2_000);
    await over;
    await until(() => joined.events.length === 1);
    expect(joined.events).toEqual(['left']);
  });

  test('within half a second, disconnects a client that has lost access, even if frames are queued', async () => {
    await start();
    const polite = await join();
    const { operator, joined } = await join();
    operator.socket.pause();
    for (const { client } of [polite.joined, joined]) {
      client.show(Buffer.alloc(client === joined.client ? 32 * 1024 * 1024 : 1), () => {});
      client.notify({ type: 'error', code: 'terminal_closed', message: 'ada was removed' });
      client.cut();
    }
    expect(await polite.operator.closed).toBe(1008);
    expect(polite.operator.notices).toEqual([{ type: 'error', code: 'terminal_closed', message: 'ada was removed' }]);
    clock.advance(499);
    await turn();
    expect(joined.events).toEqual([]);
    clock.advance(1);
    await until(() => joined.events.length === 1);
    expect(joined.events).toEqual(['left']);
  });

  test('closes all sockets with a notice on shutdown, without waiting for their clients', async () => {
    await start();
    const [one, other, silent] = [await join(), await join('look'), await join()];
    one.joined.client.close();
    silent.operator.socket.pause();
    const relayed = await join('look');
    relayed.joined.isRelayed = true;
    const closed = app.close();
    const interrupted = { type: 'error', code: 'terminal_interrupted', message: 'The orchestrator is stopping.' };
    expect(await one.operator.closed).toBe(1000);
    expect(await other.operator.closed).toBe(1001);
    expect([one.operator.notices, other.operator.notices]).toEqual([[], [interrupted]]);
    // The session continues on another replica.
    expect(await relayed.operator.closed).toBe(1001);
    expect(relayed.operator.notices).toEqual([]);
    clock.advance(500);
    await closed;
    expect([one, other, silent].map(({ joined }) => joined.events)).toEqual([['left'], ['left'], ['left']]);
  });
});

describe('the client of docs/api.md', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(joinPath(tmpdir(), 'muster-terminal-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  test('connects the client’s input and output to the shell, and returns the shell’s exit code', async () => {
    const page = await readFile(joinPath(import.meta.dirname, '../../../../docs/api.md'), 'utf8');
    const example = /^```js\n(.*?)^```$/ms.exec(page)![1]!;
    const file = joinPath(dir, 'terminal.mjs');
    await writeFile(file, example);
    const requests: object[] = [];
    await start(
      {},
      {
        openTerminal: async ({ params, query }) => {
          requests.push({ ...params, ...query });
          return { session_id: sessionId, ws_url: path() };
        },
      },
    );
    terminals.onJoin = (client) => client.notify({ type: 'resize', cols: 80, rows: 24 });
    const env = { ...process.env, MUSTER_URL: `http://127.0.0.1:${port}`, MUSTER_TOKEN: tokens.admin };
    const client = spawn(process.execPath, [file, 'web-1'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    client.stdin.write('whoami\n');
    await until(() => terminals.joined[0]?.typedBytes.toString() === 'whoami\n');
    terminals.joined[0]!.client.show(Buffer.from('root\r\n'), () => {});
    terminals.joined[0]!.client.notify({ type: 'exit', code: 7, signal: null });
    terminals.joined[0]!.client.close();
    const [shown, [code]] = await Promise.all([text(client.stdout), once(client, 'exit')]);
    expect([shown, code]).toEqual(['root\r\n', 7]);
    expect(requests).toEqual([{ node_id: 'web-1', cols: 80, rows: 24 }]);
  });
});
