import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../../lib/src/clock.ts';
import { MemoryEngine } from '../../test/memory-engine.ts';
import { ServedLink } from '../../test/test-orchestrator.ts';
import { OpenTerminals } from '../host/pty/open-terminals.ts';
import { Terminals } from '../terminal/terminals.ts';
import { Session } from './session.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const key = Buffer.alloc(32, 1);

test('stops reading from a peer that does not read the replies', async () => {
  // The kernel buffers only a little data on a local socket.
  const directory = mkdtempSync(join(tmpdir(), 'muster-session-'));
  const server = createServer().listen(join(directory, 'socket'));
  await once(server, 'listening');
  const connected = once(new WebSocketServer({ server }), 'connection');
  const ws = new WebSocket(`ws+unix:${join(directory, 'socket')}:/`);
  const [[asking, { socket }]] = await Promise.all([connected, once(ws, 'open')]);
  const link = new ServedLink(asking, socket);
  const settings = { enabled: false, shell: '', allow_operator_shell_override: false, max_sessions: 1, user: '' };
  const session = new Session({
    dialled: { ws, exporter: Buffer.alloc(32), orchestratorKey: key },
    terminals: new Terminals({
      ...{ clock: systemClock, log: quiet, settings: () => settings },
      open: new OpenTerminals(directory),
    }),
    ...{ engine: new MemoryEngine(), samples: null, clock: systemClock, log: quiet, random: () => 0 },
    hello: () => ({ type: 'bye', reason: 'in place of a hello' }),
    welcomed: () => {},
    statusChanged: () => {},
  });
  link.challenge(key);
  await link.next('bye');
  link.welcome(0, [], 3);

  const request = { session_id: '0'.repeat(26), cols: 80, rows: 24, shell: null, operator: 'ann' };
  let channel = 0;
  let maxUnsent = 0;
  asking.pause();
  while (!ws.isPaused && maxUnsent < 3 * 1024 * 1024) {
    for (let more = 0; more < 200; more++) link.send({ type: 'terminal_open', channel: ++channel, ...request });
    while (socket.writableLength > 0 && !ws.isPaused) await new Promise((resolve) => setImmediate(resolve));
    maxUnsent = Math.max(maxUnsent, ws.bufferedAmount);
  }
  expect(maxUnsent).toBeLessThan(2 * 1024 * 1024);
  asking.resume();
  await link.until(() => link.unread === channel);
  asking.terminate();
  await session.run();
  server.close();
  rmSync(directory, { recursive: true });
});
