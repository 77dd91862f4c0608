import { once } from 'node:events';
import { type Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { expect } from 'vitest';
import { test } from './harness.ts';

/** What clients without credentials can do to others, with real processes. Times are printed, and not judged. */

/** @returns milliseconds until `/healthz` was answered, on a connection of its own */
async function healthMs(port: number, localAddress: string): Promise<number> {
  const begun = performance.now();
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/healthz',
    localAddress,
    rejectUnauthorized: false,
    agent: false as unknown as Agent,
  });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  await once(answer, 'close');
  expect(answer.statusCode).toBe(200);
  return Math.round(performance.now() - begun);
}

test('4,100 silent connections of one address leave the API to another', async ({ stage }) => {
  const orchestrator = await stage.orchestrator();
  const port = orchestrator.apiPort;
  const before = await healthMs(port, '127.0.0.1');
  const sockets: Socket[] = [];
  let closed = 0;
  try {
    for (let at = 0; at < 41; at++) {
      const batch = Array.from({ length: 100 }, () =>
        connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
          .on('error', () => {})
          .once('close', () => closed++),
      );
      sockets.push(...batch);
      await Promise.all(batch.map((socket) => once(socket, 'connect')));
    }
    const during = [await healthMs(port, '127.0.0.1'), await healthMs(port, '127.0.0.3')];
    console.log(`/healthz: ${before} ms before, ${during.join(' and ')} ms beside 4,100 silent connections`);
    // A share of 1,024 stays open, until its handshakes time out.
    await expect.poll(() => closed, { timeout: 30_000 }).toBeGreaterThanOrEqual(3_076);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
