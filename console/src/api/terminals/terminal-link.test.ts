import { expect, test } from 'vitest';
import { afterNotice, type LinkSocket, type LinkState, TerminalLink } from './terminal-link.ts';

class Socket implements LinkSocket {
  readyState = 0;
  bufferedAmount = 0;
  onopen: LinkSocket['onopen'] = null;
  onmessage: LinkSocket['onmessage'] = null;
  onclose: LinkSocket['onclose'] = null;
  readonly sent: (string | Uint8Array)[] = [];
  closed = false;
  readonly url: string;
  constructor(url: string) {
    this.url = url;
  }
  send(data: string | Uint8Array) {
    this.sent.push(data);
  }
  close() {
    this.closed = true;
  }
  opens() {
    this.readyState = 1;
    this.onopen?.({} as Event);
  }
  says(data: object | Uint8Array) {
    this.onmessage?.({ data: data instanceof Uint8Array ? data.buffer : JSON.stringify(data) } as MessageEvent);
  }
  closes() {
    this.readyState = 3;
    this.onclose?.({} as CloseEvent);
  }
}

function linked(attach: (attempt: number) => string | Error = () => 'ok') {
  const sockets: Socket[] = [];
  const states: LinkState['kind'][] = [];
  const timers: { ms: number; act: () => void; off: boolean }[] = [];
  const modes: string[] = [];
  let fresh = 0;
  let shown = 0;
  const link = new TerminalLink(
    'control',
    {
      attach: async (mode) => {
        modes.push(mode);
        const answer = attach(modes.length);
        if (answer instanceof Error) throw answer;
        return { session_id: 's', ws_url: `/attached/${modes.length}` };
      },
      open: (url) => {
        const socket = new Socket(url);
        sockets.push(socket);
        return socket;
      },
      isFinal: (error) => (error as Error).message === 'final',
      after: (ms, act) => {
        const timer = { ms, act, off: false };
        timers.push(timer);
        return () => {
          timer.off = true;
        };
      },
    },
    {
      fresh: () => fresh++,
      shown: (bytes) => {
        shown += bytes.length;
      },
      sized: () => {},
      changed: (state) => states.push(state.kind),
    },
  );
  const fire = async () => {
    for (const timer of timers.splice(0)) if (!timer.off && timer.ms < 10_000) timer.act();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { link, sockets, states, modes, fire, last: () => sockets.at(-1) as Socket, counts: () => ({ fresh, shown }) };
}

test('reattaches after an interruption and clears the screen', async () => {
  const { link, last, states, sockets, fire, counts } = linked();
  link.start('/first');
  last().opens();
  last().says({ type: 'resize', cols: 80, rows: 24 });
  last().says(new Uint8Array(3));
  last().closes();
  await fire();
  expect(last().url).toBe('/attached/1');
  last().opens();
  expect(sockets).toHaveLength(2);
  expect(states).toEqual(['open', 'lost', 'open']);
  expect(counts()).toEqual({ fresh: 2, shown: 3 });
});

test('retries if there is no response, and reports a permanent refusal', async () => {
  const { link, states, fire, modes } = linked((attempt) => new Error(attempt < 3 ? 'passing' : 'final'));
  link.start(null);
  await fire();
  await fire();
  await fire();
  await fire();
  expect(modes).toHaveLength(3);
  expect(states).toEqual(['lost', 'lost', 'ended']);
});

test.each([
  [
    { type: 'exit', code: 3, signal: null },
    { kind: 'exited', code: 3, signal: null },
  ],
  [
    { type: 'error', code: 'terminal_taken_over', message: 'ada' },
    { kind: 'taken_over', message: 'ada' },
  ],
  [
    { type: 'error', code: 'terminal_idle', message: 'x' },
    { kind: 'ended', code: 'terminal_idle', message: 'x' },
  ],
] as const)('does not reattach after %j', async (notice, state) => {
  const { link, last, fire, modes } = linked();
  link.start('/first');
  last().opens();
  last().says(notice);
  last().closes();
  await fire();
  expect(link.state).toEqual(state);
  expect(modes).toEqual([]);
});

test.each(['terminal_interrupted', 'terminal_too_slow', 'unauthenticated'])('reattaches after %s', (code) => {
  expect(afterNotice({ type: 'error', code, message: '' })).toBeNull();
});

test('disconnects when output arrives faster than it is rendered, and reattaches after it has rendered', async () => {
  const { link, last, sockets, fire, counts } = linked();
  link.start('/first');
  last().opens();
  const piece = new Uint8Array(1024 * 1024);
  for (let count = 0; count < 20; count++) last().says(piece);
  expect(sockets[0]?.closed).toBe(true);
  expect(counts().shown).toBe(9 * piece.length);
  await fire();
  expect(sockets).toHaveLength(1);
  for (let count = 0; count < 9; count++) link.drained(piece.length);
  await fire();
  expect(sockets).toHaveLength(2);
});

test('sends input only in control mode, in frames of limited size', () => {
  const { link, last } = linked();
  link.start('/first');
  link.type('lost');
  last().opens();
  link.type('x'.repeat(100_000));
  link.resize(120, 40);
  const sizes = last().sent.map((each) => each.length);
  expect(sizes).toEqual([32_768, 32_768, 32_768, 1_696, '{"type":"resize","cols":120,"rows":40}'.length]);
  link.take('view');
  last().opens();
  link.type('x');
  expect(last().sent).toHaveLength(5);
});

test('does not reply to terminal queries from a previous connection', async () => {
  const { link, last, fire } = linked();
  link.start('/first');
  last().opens();
  last().says(new Uint8Array(100));
  link.take('control');
  await fire();
  last().opens();
  last().says(new Uint8Array(10));
  link.type('\x1b[?1;2c');
  link.type('ls');
  expect(last().sent.map((each) => new TextDecoder().decode(each as Uint8Array))).toEqual(['ls']);
  link.drained(100);
  link.type('\x1b[?1;2c');
  expect(last().sent).toHaveLength(2);
});

test('ignores events from the previous connection after taking control', async () => {
  const { link, sockets, fire, states, modes } = linked();
  link.start('/first');
  const [first] = sockets as [Socket];
  first.opens();
  link.take('view');
  first.closes();
  await fire();
  expect(modes).toEqual(['view']);
  expect(states).toEqual(['open', 'connecting']);
  link.close();
  expect(sockets.every((socket) => socket.closed)).toBe(true);
});
