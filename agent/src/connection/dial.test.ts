import type { TLSSocket } from 'node:tls';
import { connect } from 'node:tls';
import { expect, it } from 'vitest';
import { TestOrchestrator } from '../../test/test-orchestrator.ts';
import { inTurn, provenKey } from './dial.ts';

it('takes no key from a resumed session, which shows a certificate but proves nothing of it', async () => {
  // This one, unlike a real one, hands out tickets.
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

it('begins with each of several addresses in turn, and leaves out none', () => {
  expect([0, 1, 2, 3].map((turn) => inTurn(['a', 'b', 'c'], turn).join(''))).toEqual(['abc', 'bca', 'cab', 'abc']);
  expect(inTurn([], 7)).toEqual([]);
});
