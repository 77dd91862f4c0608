import { randomBytes } from 'node:crypto';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { NatsServer, natsMissing } from '../../test/nats/nats-server.ts';
import { NatsLiveWire } from './nats-live-wire.ts';

describe('the wire between replicas', () => {
  let server: NatsServer;
  let wires: NatsLiveWire[];
  const secret = randomBytes(32);
  beforeEach(async ({ skip }) => {
    wires = [];
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    server = new NatsServer();
    await server.start();
  });
  afterEach(async () => {
    await Promise.all(wires.map((wire) => wire.close()));
    await server?.stop();
  });

  /** Opens a wire, and records the messages that arrive. */
  const join = async (given = secret) => {
    const own = randomBytes(16).toString('hex');
    const silent = () => {};
    const wire = new NatsLiveWire({
      ...{ settings: { url: server.url, credentialsFile: null, caFile: null }, secret: given, fleet: 'test', own },
      ...{ clock: systemClock, random: () => 0.5, log: { debug: silent, info: silent, warn: silent, error: silent } },
    });
    wires.push(wire);
    const received: string[] = [];
    const state = { lost: 0 };
    wire.listen({ received: (from, bytes) => received.push(`${from} ${bytes}`), lost: () => state.lost++ });
    await expect.poll(() => wire.isConnected).toBe(true);
    return { own, wire, received, state };
  };

  test('delivers messages to a single process in order, sealed and with an authentic sender', async () => {
    const [one, two, other, stranger] = [await join(), await join(), await join(), await join(randomBytes(32))];
    const client = await connect({ servers: server.url });
    const seen: { subject: string; data: Uint8Array }[] = [];
    client.subscribe('>', { callback: (_, { subject, data }) => void seen.push({ subject, data }) });
    await client.flush();
    stranger.wire.send(two.own, Buffer.from('forged'));
    const texts = Array.from({ length: 100 }, (_, index) => `ls ${index}`);
    for (const text of texts) expect(one.wire.send(two.own, Buffer.from(text))).toBe(true);
    await expect.poll(() => two.received).toEqual(texts.map((text) => `${one.own} ${text}`));
    expect(other.received).toEqual([]);
    await expect.poll(() => seen.length).toBe(101);
    expect(seen.filter(({ data }) => Buffer.from(data).includes('ls '))).toEqual([]);
    // A message to one process is not accepted by another.
    client.publish(`muster.test.live.${other.own}`, seen.at(-1)!.data);
    client.publish(`muster.test.live.${other.own}`, new Uint8Array(300 * 1024));
    one.wire.send(other.own, Buffer.from('end'));
    await expect.poll(() => other.received).toEqual([`${one.own} end`]);
    await client.close();
  });

  test('reports that the connection was lost, and refuses messages until it has reconnected', async () => {
    const [one, two] = [await join(), await join()];
    await server.kill();
    await expect.poll(() => [one.state.lost, two.state.lost]).toEqual([1, 1]);
    expect(one.wire.send(two.own, Buffer.from('lost'))).toBe(false);
    await server.start();
    for (const { wire } of [one, two]) await expect.poll(() => wire.isConnected).toBe(true);
    one.wire.send(two.own, Buffer.from('found'));
    await expect.poll(() => two.received).toEqual([`${one.own} found`]);
  });
});
