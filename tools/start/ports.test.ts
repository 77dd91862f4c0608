import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { portMessage, whyNotListen } from './ports.ts';

test('reports a port in use, with the port and the remedy in the message', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await whyNotListen('127.0.0.1', port)).toBe('EADDRINUSE');
  expect(portMessage('EADDRINUSE', port, { apiPort: port, agentPort: 4747 })).toMatch(
    new RegExp(`Port ${port} is in use.*npm start -- --api-port ${port + 10} --agent-port 4757$`),
  );
  server.close();
  await once(server, 'close');
  expect(await whyNotListen('127.0.0.1', port)).toBeNull();
});
