import { fork } from 'node:child_process';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../cli/test/certificate.ts';
import { nextMessage } from '../servers/server-process.ts';
import type { SteadyLoadOptions, SteadyLoadSeen } from './steady-load.ts';

test('counts connections that the server resets, and continues', async () => {
  const tls = await makeCertificate();
  let requests = 0;
  const sockets = new Map<number, Socket>();
  const server = createServer(tls, (request, response) => {
    requests++;
    // Resets connections during and after the warm-up: some before the response, some in the middle of the response.
    if (requests % 7 === 0) request.socket.destroy();
    else if (requests % 11 === 0)
      response.write('part', () => sockets.get(request.socket.remotePort!)!.resetAndDestroy());
    else response.end('answer');
  });
  server.on('connection', (socket) => sockets.set((socket as Socket).remotePort!, socket as Socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const child = fork(join(import.meta.dirname, 'steady-load.ts'));
  try {
    const answer = nextMessage<SteadyLoadSeen>(child);
    const options = { url, ca: tls.cert, token: 'token', paths: ['/one', '/two'], perSecond: 2_000, seconds: 0.2 };
    child.send(options satisfies SteadyLoadOptions);
    const { latencies, resets, failures, failed } = await answer;
    expect(failed).toBeNull();
    expect(failures).toBe(0);
    expect(resets).toBeGreaterThan(0);
    expect(latencies.length).toBeGreaterThan(0);
  } finally {
    child.kill();
    server.close();
    server.closeAllConnections();
  }
});
