import type { TLSSocket } from 'node:tls';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { TestOrchestrator } from '../../test/test-orchestrator.ts';
import { provenKey, rotated } from './dial.ts';

test('refuses a resumed TLS session, which does not prove possession of the key', async () => {
  // Unlike an orchestrator, this server issues session tickets.
  const orchestrator = await TestOrchestrator.start();
  const dial = (event: 'session' | 'secureConnect', session?: Buffer): Promise<{ socket: TLSSocket; ticket: Buffer }> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: orchestrator.port,
        rejectUnauthorized: false,
        ...(session && { session }),
      });
      socket.once('error', reject);
      socket.once(event as 'session', (ticket) => resolve({ socket, ticket }));
    });
  const first = await dial('session');
  expect(provenKey(first.socket).equals(orchestrator.publicKey)).toBe(true);
  const second = await dial('secureConnect', first.ticket);
  expect(second.socket.isSessionReused()).toBe(true);
  expect(() => provenKey(second.socket)).toThrow('TLS resumed a session');
  first.socket.destroy();
  second.socket.destroy();
  await orchestrator.stop();
});

test('rotates the addresses so that each one comes first in turn', () => {
  expect([0, 1, 2, 3].map((turn) => rotated(['a', 'b', 'c'], turn).join(''))).toEqual(['abc', 'bca', 'cab', 'abc']);
  expect(rotated([], 7)).toEqual([]);
});
