import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import type { Clock } from '../../../../lib/src/clock.ts';
import { greetingOf } from './greeting.ts';

test('waits for a silent server for at most the time limit, across all of its addresses', async () => {
  let time = 0;
  const clock: Clock = {
    now: () => time,
    monotonic: () => time,
    after(ms, action) {
      const passing = setImmediate(() => {
        time += ms;
        action();
      });
      return () => clearImmediate(passing);
    },
  };
  const server = createServer((socket) => socket.on('error', () => {})).listen(0);
  await once(server, 'listening');
  try {
    await greetingOf((server.address() as AddressInfo).port, 'SSH-2.0-', 4_000, clock);
    expect(time).toBeGreaterThan(0);
    expect(time).toBeLessThanOrEqual(4_000);
  } finally {
    server.close();
  }
});

test('reads a greeting with characters outside ASCII, split at any position', async () => {
  const never: Clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };
  const greeting = Buffer.from('Grüße vom Dienst');
  const server = createServer((socket) => {
    socket.on('error', () => {});
    // Splits a character.
    socket.write(greeting.subarray(0, 3), () => setImmediate(() => socket.write(greeting.subarray(3))));
  }).listen(0);
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const found = await greetingOf(port, 'Grüße', 4_000, never);
    expect(found.is === 'connected' && found.text.slice(0, 5)).toBe('Grüße');
  } finally {
    server.close();
  }
});
