import { Agent } from 'node:http';
import { ApiError } from '@muster/protocol/client';
import { afterEach, expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { type ControlledTerminal, controlTerminal } from '../../test/local-terminal.ts';
import { type Standing, standIn } from '../../test/orchestrator.ts';
import { OutputClosed } from '../exit.ts';
import { dialTerminal } from './dial.ts';
import { type Ending, type LiveOptions, live } from './live.ts';

// Uses a real WebSocket server and a real connection.

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of closing.splice(0)) await each();
});

/** The server's side of one connection. */
interface Far {
  socket: WebSocket;
  /** The bytes that the client sent. */
  typed: () => string;
  /** The text frames that the client sent. */
  messages: unknown[];
  say(notice: unknown): void;
}

interface Stage {
  controlled: ControlledTerminal;
  far: Far[];
  server: Standing;
  ended: string[];
  ending: Promise<Ending>;
}

async function stage(
  kind: 'terminal' | 'pipe',
  options: Partial<LiveOptions> & { onOpen?: (far: Far, index: number) => void } = {},
): Promise<Stage> {
  const far: Far[] = [];
  const server = await standIn({
    webSocket: (socket) => {
      const typed: Buffer[] = [];
      const messages: unknown[] = [];
      const one: Far = {
        socket,
        messages,
        typed: () => Buffer.concat(typed).toString('latin1'),
        say: (notice) => socket.send(JSON.stringify(notice)),
      };
      socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) typed.push(data);
        else messages.push(JSON.parse(data.toString('utf8')));
      });
      socket.on('error', () => {});
      far.push(one);
      one.say({ type: 'resize', cols: 80, rows: 24 });
      options.onOpen?.(one, far.length - 1);
    },
  });
  const agent = new Agent();
  closing.push(
    () => agent.destroy(),
    () => server.close(),
  );
  const controlled = controlTerminal(kind);
  const ended: string[] = [];
  const ending = live({
    terminal: controlled.terminal,
    mode: 'control',
    first: { ws_url: '/first' },
    attach: async () => ({ ws_url: '/again' }),
    dial: (address, events) => dialTerminal(new URL(address, server.url), () => agent, events),
    end: async () => void ended.push('ended'),
    clock: () => performance.now(),
    sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 5))),
    ...options,
  });
  ending.catch(() => {});
  return { controlled, far, server, ended, ending };
}

const until = (check: () => void) => vi.waitFor(check, { interval: 5 });

test('passes bytes on unchanged in both directions, and returns the exit code of the shell', async () => {
  const { controlled, far, ending } = await stage('terminal');
  await until(() => expect(far[0]?.messages).toEqual([{ type: 'resize', cols: 80, rows: 24 }]));
  const everyByte = Uint8Array.from({ length: 256 }, (_, at) => at);
  controlled.type(everyByte);
  controlled.type('\u0003\u001agrün 東京');
  await until(() => expect(far[0]?.typed().length).toBeGreaterThan(256));
  expect(far[0]?.typed()).toBe(Buffer.concat([everyByte, Buffer.from('\u0003\u001agrün 東京')]).toString('latin1'));
  // A character in two parts, followed by a terminal query. Output to the operator's own terminal is not filtered.
  far[0]?.socket.send(Buffer.from([0xe6, 0x9d]));
  far[0]?.socket.send(Buffer.from([0xb1]));
  far[0]?.socket.send(Buffer.from('\u001b[6n'));
  far[0]?.say({ type: 'exit', code: 3, signal: null });
  expect(await ending).toEqual({ kind: 'exit', code: 3, signal: null });
  expect(controlled.shown()).toBe('東\u001b[6n');
  expect(controlled.isClosed()).toBe(true);
});

test('sends the window size once when it connects and once after each change', async () => {
  const { controlled, far, ending } = await stage('terminal');
  await until(() => expect(far[0]?.messages.length).toBe(1));
  controlled.resize({ cols: 120, rows: 40 });
  controlled.resize({ cols: 120, rows: 40 });
  controlled.resize({ cols: 100, rows: 40 });
  await until(() => expect(far[0]?.messages.at(-1)).toEqual({ type: 'resize', cols: 100, rows: 40 }));
  expect(far[0]?.messages.length).toBe(3);
  far[0]?.say({ type: 'exit', code: 0, signal: null });
  await ending;
});

test('~. closes the session and restores the screen', async () => {
  const { controlled, far, ended, ending } = await stage('terminal');
  await until(() => expect(far.length).toBe(1));
  far[0]?.socket.send(Buffer.from('\u001b[?1049h\u001b[?1000hvim'));
  await until(() => expect(controlled.shown()).toContain('vim'));
  controlled.type('~');
  controlled.type('.');
  expect(await ending).toEqual({ kind: 'left', how: 'leave' });
  expect(ended).toEqual(['ended']);
  expect(controlled.shown()).toMatch(/vim\u001b\[\?1000l\u001b\[\?1049l\r\n$/);
  expect(far[0]?.typed()).toBe('');
});

test('~d leaves without closing the session, and ~? prints help', async () => {
  const { controlled, far, ended, ending } = await stage('terminal');
  await until(() => expect(far.length).toBe(1));
  controlled.type('~?');
  await until(() => expect(controlled.said.join('\n')).toContain('~d'));
  controlled.type('~d');
  expect(await ending).toEqual({ kind: 'left', how: 'detach' });
  expect(ended).toEqual([]);
});

test.each(['SIGTERM', 'SIGHUP'] as const)(
  'closes the session after %s even if the orchestrator does not respond',
  async (signal) => {
    const { controlled, far, ending } = await stage('terminal', { end: () => new Promise(() => {}) });
    await until(() => expect(far.length).toBe(1));
    controlled.signal(signal);
    expect(await ending).toEqual({ kind: 'signal', signal, continues: true });
    expect(controlled.isClosed()).toBe(true);
  },
);

test('closes the session if the terminal hangs up', async () => {
  const { controlled, far, ended, ending } = await stage('terminal');
  await until(() => expect(far.length).toBe(1));
  controlled.endInput();
  expect(await ending).toEqual({ kind: 'signal', signal: 'SIGHUP' });
  expect(ended).toEqual(['ended']);
});

test('returns the orchestrator’s reason and does not attach again', async () => {
  let attached = 0;
  const { far, ending } = await stage('terminal', {
    attach: async () => {
      attached++;
      return { ws_url: '/again' };
    },
  });
  await until(() => expect(far.length).toBe(1));
  far[0]?.say({ type: 'error', code: 'terminal_taken_over', message: 'by another connection' });
  far[0]?.socket.close();
  expect(await ending).toEqual({ kind: 'error', code: 'terminal_taken_over', message: 'by another connection' });
  expect(attached).toBe(0);
});

test('after a reconnect, filters queries in the recent screen, keeps key modes, and drops keys typed without a connection', async () => {
  const gate = Promise.withResolvers<void>();
  let tries = 0;
  const { controlled, far, ending } = await stage('terminal', {
    attach: async () => {
      if (++tries === 1)
        throw new ApiError({ status: 503, code: 'draining', title: '', detail: '', type: '', instance: '' });
      await gate.promise;
      return { ws_url: '/again' };
    },
    onOpen: ({ socket }, index) => {
      if (index === 1) socket.send(Buffer.from('recent\u001b[6n\u001b]11;?\u0007 screen\u001b[?1;1002;2004h'));
    },
  });
  await until(() => expect(far.length).toBe(1));
  far[0]?.socket.send(Buffer.from('\u001b[?1049hbefore'));
  await until(() => expect(controlled.shown()).toContain('before'));
  far[0]?.socket.terminate();
  await until(() =>
    expect(controlled.said).toEqual([expect.stringMatching(/^connection lost, reconnecting … .*~\. leaves/)]),
  );
  controlled.type('dropped');
  gate.resolve();
  await until(() => expect(controlled.shown()).toContain('recent screen'));
  expect(controlled.shown()).toContain('before\u001b[?1049l\u001b[H\u001b[2Jrecent screen\u001b[?1;1002;2004h');
  controlled.type('typed');
  await until(() => expect(far[1]?.typed()).toBe('typed'));
  // Live output after the recent screen is not filtered.
  far[1]?.socket.send(Buffer.from('\u001b[6n'));
  far[1]?.say({ type: 'exit', code: 0, signal: null });
  expect(await ending).toMatchObject({ kind: 'exit', code: 0 });
  expect(controlled.shown()).toContain('2004h\u001b[6n');
  expect(far[0]?.typed()).toBe('');
});

test('~. closes the session even while the connection is lost', async () => {
  const { controlled, far, ended, ending } = await stage('terminal', { attach: () => new Promise(() => {}) });
  await until(() => expect(far.length).toBe(1));
  controlled.type('in the middle of a line');
  far[0]?.socket.terminate();
  await until(() => expect(controlled.said.length).toBe(1));
  controlled.type('lost~.');
  controlled.type('~');
  controlled.type('.');
  expect(await ending).toEqual({ kind: 'left', how: 'leave' });
  expect(ended).toEqual(['ended']);
});

test('does not report the session as closed if the orchestrator could not be reached to close it', async () => {
  const { controlled, far, ending } = await stage('terminal', {
    attach: () => new Promise(() => {}),
    end: () => Promise.reject(new Error('nobody is there')),
  });
  await until(() => expect(far.length).toBe(1));
  far[0]?.socket.terminate();
  await until(() => expect(controlled.said.length).toBe(1));
  controlled.type('~.');
  expect(await ending).toEqual({ kind: 'left', how: 'leave', continues: true });
});

test('retries a lost connection for a minute, but not after the session was closed', async () => {
  let now = 0;
  let tries = 0;
  const refused = (status: number, code: string) =>
    new ApiError({ status, code, title: '', detail: code, type: '', instance: '' });
  const minute = await stage('terminal', {
    clock: () => now,
    sleep: async (milliseconds) => {
      now += milliseconds;
      await new Promise((resolve) => setImmediate(resolve));
    },
    attach: async () => {
      tries++;
      throw refused(503, 'draining');
    },
  });
  await until(() => expect(minute.far.length).toBe(1));
  minute.far[0]?.socket.terminate();
  expect(await minute.ending).toMatchObject({ kind: 'lost', error: { problem: { code: 'draining' } } });
  expect(now).toBeGreaterThanOrEqual(60_000);
  expect(now).toBeLessThan(70_000);
  expect(tries).toBeGreaterThan(25);
  expect(tries).toBeLessThan(40);

  // Fails the first attempts with errors that may be temporary.
  let late = 0;
  const again = await stage('terminal', {
    attach: async () => {
      if (++late === 1) throw refused(401, 'ticket_invalid');
      if (late === 2) throw refused(409, 'terminal_limit');
      return { ws_url: '/again' };
    },
  });
  await until(() => expect(again.far.length).toBe(1));
  again.far[0]?.socket.terminate();
  await until(() => expect(again.far.length).toBe(2));
  again.far[1]?.say({ type: 'exit', code: 0, signal: null });
  expect(await again.ending).toMatchObject({ kind: 'exit' });

  let once = 0;
  const lost = await stage('terminal', {
    attach: async () => {
      once++;
      throw refused(409, 'terminal_ended');
    },
  });
  await until(() => expect(lost.far.length).toBe(1));
  lost.far[0]?.socket.terminate();
  expect(await lost.ending).toMatchObject({ kind: 'lost', error: { problem: { code: 'terminal_ended' } } });
  expect(once).toBe(1);
});

test('does not reset the time limit for connections that are lost immediately', async () => {
  let now = 0;
  const { far, ending } = await stage('terminal', {
    clock: () => now,
    sleep: async (milliseconds) => {
      now += milliseconds;
      await new Promise((resolve) => setImmediate(resolve));
    },
    onOpen: ({ socket }) => socket.terminate(),
  });
  // Every attempt to attach succeeded, but the client must still report an error.
  expect(await ending).toMatchObject({ kind: 'lost', error: expect.objectContaining({ code: 'unreachable' }) });
  expect(far.length).toBeLessThan(40);
});

test('reconnects after a long silence', async () => {
  let skipped = 0;
  const { far, ending, controlled } = await stage('terminal', { clock: () => performance.now() + skipped });
  await until(() => expect(far.length).toBe(1));
  // A paused socket reads nothing and therefore does not respond to pings.
  far[0]?.socket.pause();
  await until(() => {
    // Bytes in transit reset the timer, so the time is advanced again.
    if (controlled.said.length === 0) skipped += 35_000;
    expect(controlled.said.length).toBe(1);
  });
  await until(() => expect(far.length).toBe(2));
  far[1]?.say({ type: 'exit', code: 0, signal: null });
  await ending;
});

test('pauses the connection while the reader is stopped, and delivers all output later', async () => {
  const { controlled, far, ending } = await stage('pipe');
  await until(() => expect(far.length).toBe(1));
  controlled.blockWrites();
  const piece = Buffer.alloc(16 * 1024, 'y\n');
  const total = 4_000;
  for (let at = 0; at < total; at++) far[0]?.socket.send(piece);
  await until(() => expect(controlled.untaken()).toBeGreaterThan(256 * 1024));
  await new Promise((resolve) => setTimeout(resolve, 100));
  // The buffer may exceed its limit by at most one read from the connection.
  expect(controlled.untaken()).toBeLessThan(512 * 1024);
  expect(far[0]?.socket.bufferedAmount).toBeGreaterThan(16 * 1024 * 1024);
  const takeovers = setInterval(() => {
    controlled.take();
    controlled.blockWrites();
  }, 1);
  closing.push(() => clearInterval(takeovers));
  far[0]?.say({ type: 'exit', code: 0, signal: null });
  await until(() => expect(far[0]?.socket.bufferedAmount).toBe(0));
  controlled.take();
  expect(await ending).toMatchObject({ kind: 'exit' });
  expect(controlled.shown().length).toBe(total * piece.length);
});

test('pauses the keyboard while the server does not read, and sends all pasted input later', async () => {
  const { controlled, far, ending } = await stage('terminal');
  await until(() => expect(far.length).toBe(1));
  far[0]?.socket.pause();
  const piece = Buffer.alloc(64 * 1024, 'paste~.\n');
  let typed = 0;
  while (!controlled.isPaused() && typed < 64 * 1024 * 1024) {
    controlled.type(piece);
    typed += piece.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(controlled.isPaused()).toBe(true);
  far[0]?.socket.resume();
  await until(() => expect(controlled.isPaused()).toBe(false));
  await until(() => expect(far[0]?.typed().length).toBe(typed));
  far[0]?.say({ type: 'exit', code: 0, signal: null });
  await ending;
});

test('completes the last line of a pipe, and sends Ctrl-D until a program reads it', async () => {
  const { controlled, far, ending } = await stage('pipe');
  await until(() => expect(far[0]?.messages).toEqual([]));
  controlled.type('~.\nuptime');
  controlled.endInput();
  await until(() => expect(far[0]?.typed()).toMatch(/^~\.\nuptime\n\u0004\u0004\u0004/));
  far[0]?.say({ type: 'exit', code: 0, signal: null });
  expect(await ending).toMatchObject({ kind: 'exit', code: 0 });
});

test('closes the session if the reader closes the pipe', async () => {
  const { controlled, far, ended, ending } = await stage('pipe');
  await until(() => expect(far.length).toBe(1));
  controlled.hangUp();
  far[0]?.socket.send(Buffer.from('x'));
  expect(await ending).toEqual({ kind: 'unread', error: expect.any(OutputClosed) });
  expect(ended).toEqual(['ended']);
});

test('sends no input in view mode, filters queries, and leaves without closing the session', async () => {
  const { controlled, far, ended, ending } = await stage('terminal', {
    mode: 'view',
    onOpen: ({ socket, say }) => {
      say({ type: 'resize', cols: 200, rows: 50 });
      socket.send(Buffer.from('\u001b]52;c;eA==\u0007look'));
      socket.send(Buffer.from('\u001b[6n on'));
    },
  });
  await until(() => expect(controlled.shown()).toBe('look on'));
  controlled.resize({ cols: 100, rows: 30 });
  controlled.type('rm -rf /\r');
  controlled.type('\u0003');
  expect(await ending).toEqual({ kind: 'left', how: 'leave' });
  expect(ended).toEqual([]);
  expect(far[0]?.typed()).toBe('');
  expect(far[0]?.messages).toEqual([]);
});
