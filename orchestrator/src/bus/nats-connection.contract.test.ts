import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { FakeNats } from '../../test/nats/fake-nats.ts';
import { NatsConnection, type NatsParts } from './nats-connection.ts';

/** Waits until `seen` returns true. Does not advance the time, as `expect.poll` would. */
async function until(seen: () => unknown): Promise<void> {
  while (!seen()) await new Promise((resolve) => setImmediate(resolve));
}

describe('a connection with a NATS server that fails', () => {
  let server: FakeNats;
  let connection: NatsConnection;
  let events: string[];
  let reasons: string[];

  beforeEach(async () => {
    // The library's pings and time limits use these functions. Sockets do not.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    server = await FakeNats.start();
    [events, reasons] = [[], []];
  });
  afterEach(async () => {
    server.stop();
    const closed = connection.close();
    await vi.advanceTimersByTimeAsync(10_000);
    await closed;
    vi.useRealTimers();
  });

  const open = (parts: Partial<NatsParts> = {}) => {
    const note = (fields: object) => {
      if ('reason' in fields) reasons.push(String(fields.reason));
    };
    connection = new NatsConnection({
      settings: { url: server.url, credentialsFile: null, caFile: null },
      subjects: { all: 'test.all', direct: 'test.one' },
      ...{ clock: systemClock, random: () => 0 },
      log: { debug: note, info: note, warn: note, error: note },
      connected: () => events.push('connected'),
      lost: () => events.push('lost'),
      received: (_, bytes) => events.push(bytes.toString()),
      ...parts,
    });
    connection.start();
  };
  const pings = (index: number) => server.connections[index]?.lines.filter((line) => line === 'PING').length ?? 0;
  const isClosed = (index: number) => server.connections[index]?.isClosed;

  test('reconnects if the connection ends before the subscriptions are confirmed', async () => {
    server.behavior = {
      line: (line, socket) => {
        if (line.startsWith('SUB')) socket.destroy();
        return true;
      },
    };
    open();
    await until(() => isClosed(0));
    await until(() => reasons.length === 1);
    server.behavior = {};
    await vi.advanceTimersByTimeAsync(250);
    await until(() => events.length === 1);
    expect(events).toEqual(['connected']);
  });

  test('reconnects if the subscriptions are not confirmed within five seconds', async () => {
    server.behavior = { line: () => pings(0) < 2 };
    open();
    await until(() => pings(0) === 2);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(reasons).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await until(() => isClosed(0));
    expect(reasons).toEqual(['NATS does not answer']);
    server.behavior = {};
    await vi.advanceTimersByTimeAsync(250);
    await until(() => events.length === 1);
    expect(events).toEqual(['connected']);
  });

  test('detects within twelve seconds that NATS does not respond, even if much data is waiting to be sent', async () => {
    open();
    await until(() => events.length === 1);
    expect(events).toEqual(['connected']);
    server.connections[0]!.socket.pause();
    let sent = 0;
    while (connection.send('test.all', Buffer.alloc(256 * 1024))) sent++;
    // Further messages are dropped until NATS confirms earlier ones, which never happens here.
    expect(sent).toBe(32);
    await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(12_000);
    await until(() => events.length === 2);
    expect(events).toEqual(['connected', 'lost']);
    expect(reasons).toEqual(['NATS does not answer']);
    await vi.advanceTimersByTimeAsync(250);
    await until(() => events.length === 3);
    expect(events).toEqual(['connected', 'lost', 'connected']);
    expect(connection.send('test.all', Buffer.alloc(1))).toBe(true);
  });

  test.each([
    ['says nothing', null],
    ['does not answer the TLS handshake', { tls_required: true, tls_available: true }],
  ])('leaves no socket open if NATS %s', async (_, info) => {
    server.behavior = { info };
    open({ settings: { url: server.url.replace('nats:', 'tls:'), credentialsFile: null, caFile: null } });
    for (const attempt of [0, 1]) {
      await until(() => server.connections.length === attempt + 1);
      await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(5_000);
      await until(() => isClosed(attempt));
      await vi.advanceTimersByTimeAsync(500);
    }
  });

  test.each(['INFO {\r\n', 'nonsense\r\n'])('reconnects after the malformed message %j', async (text) => {
    vi.spyOn(console, 'log').mockReturnValue();
    open();
    await until(() => events.length === 1);
    expect(events).toEqual(['connected']);
    server.connections[0]!.socket.write(text);
    await until(() => events.length === 2);
    expect(events).toEqual(['connected', 'lost']);
    expect(reasons).toEqual(['NATS sent a malformed message']);
    await vi.advanceTimersByTimeAsync(250);
    await until(() => events.length === 3);
    expect(events).toEqual(['connected', 'lost', 'connected']);
  });

  test('reconnects if a message cannot be handled', async () => {
    let isBroken = true;
    open({
      received: (_, bytes) => {
        if (isBroken) throw new Error('a fault');
        events.push(bytes.toString());
      },
    });
    await until(() => events.length === 1);
    expect(events).toEqual(['connected']);
    server.connections[0]!.socket.write('MSG test.all 1 5\r\nhello\r\n');
    await until(() => events.length === 2);
    expect(events).toEqual(['connected', 'lost']);
    expect(reasons).toEqual(['failed to handle a message: a fault']);
    isBroken = false;
    await vi.advanceTimersByTimeAsync(250);
    await until(() => events.length === 3);
    server.connections[1]!.socket.write('MSG test.all 1 5\r\nhello\r\n');
    await until(() => events.at(-1) === 'hello');
  });

  test('doubles the delay between attempts up to five seconds, and reports each reason once', async () => {
    // The server refuses each message.
    server.behavior = {
      line: (line, socket) => {
        if (line.startsWith('PUB')) socket.write('-ERR \'Permissions Violation for Publish to "test.all"\'\r\n');
        return true;
      },
    };
    open({ connected: () => void connection.send('test.all', Buffer.from('beat')) });
    for (const [index, delay] of [125, 250, 500, 1_000, 2_000, 2_500, 2_500].entries()) {
      await until(() => isClosed(index));
      await until(() => vi.getTimerCount() > 0);
      await vi.advanceTimersByTimeAsync(delay - 1);
      await new Promise((resolve) => setImmediate(resolve));
      expect(server.connections).toHaveLength(index + 1);
      await vi.advanceTimersByTimeAsync(1);
      await until(() => server.connections.length === index + 2);
    }
    expect(reasons).toEqual([expect.stringMatching(/^Permissions Violation for Publish/)]);
  });
});
