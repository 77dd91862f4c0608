import { expect, test } from 'vitest';
import { ManualClock } from '../../../../../lib/test/manual-clock.ts';
import { MemoryWire } from '../../../../test/nats/memory-wire.ts';
import { MemoryClient } from '../../../../test/terminals.ts';
import type { TerminalConnectionEvents } from '../terminal-client.ts';
import { encodeFrame } from './relay-frames.ts';
import { type RelayedClient, TerminalRelay } from './terminal-relay.ts';

/** Connects a client on one replica to a session on the other replica. */
async function open(session: Partial<TerminalConnectionEvents> = {}) {
  const clock = new ManualClock();
  const errors: string[] = [];
  const silent = () => {};
  const log = { debug: silent, info: silent, warn: silent, error: (_: object, text: string) => void errors.push(text) };
  const wires = MemoryWire.pair('one', 'two');
  let drawn = 0;
  const [one, two] = wires.map(
    (wire) =>
      new TerminalRelay(
        { steadyNow: () => clock.monotonic(), randomBytes: (size) => Buffer.alloc(size, ++drawn), log },
        wire,
        (ms, act) => clock.after(ms, act),
      ),
  ) as [TerminalRelay, TerminalRelay];
  const happened: string[] = [];
  const events: TerminalConnectionEvents = {
    mode: 'control',
    typed: (bytes) => void happened.push(`typed ${Buffer.from(bytes)}`),
    resized: (cols, rows) => void happened.push(`resized ${cols}x${rows}`),
    left: () => void happened.push('left'),
    ...session,
  };
  const client = new MemoryClient();
  let relayed: RelayedClient | null = null;
  const dialled = (await one.dial('two', client, async (connection) => {
    relayed = two.accept('one', connection);
    relayed.bind(events);
    return 'control';
  }))!;
  return { clock, errors, wires, one, two, happened, events, client, dialled, relayed: relayed! as RelayedClient };
}

test('closes both ends of a relayed connection when a frame is missing', async () => {
  const toHome = await open();
  toHome.wires[0].loses.push('data');
  toHome.dialled.typed(Buffer.from('lost'));
  toHome.dialled.typed(Buffer.from('seen'));
  expect(toHome.happened).toEqual(['left']);
  expect(toHome.client.over).toBe('cut');

  const fromHome = await open();
  fromHome.wires[1].loses.push('data');
  for (const text of ['lost', 'seen']) fromHome.relayed.client.show(Buffer.from(text), () => {});
  expect(fromHome.client.over).toBe('cut');
  expect(fromHome.happened).toEqual(['left']);
});

test('ignores unknown fields in notices and sizes, which newer replicas may send', async () => {
  const { client, dialled, relayed, wires } = await open();
  const exit = { type: 'exit', code: 0, signal: null } as const;
  relayed.client.notify({ ...exit, later: true } as typeof exit);
  expect([client.seen, client.over]).toEqual([[exit], null]);
  const connection = '01'.repeat(16);
  const content = Buffer.from(JSON.stringify({ type: 'resize', cols: 90, rows: 20, later: true }));
  wires[1].listener.received('one', encodeFrame({ connection, number: 1, kind: 'text', content }));
  expect([client.over, dialled.mode]).toEqual([null, 'control']);
});

test('ends only the connection whose session throws, and logs the bug', async () => {
  const { dialled, client, errors, happened, one, two } = await open({
    typed: () => {
      throw new Error('bug');
    },
  });
  const other = new MemoryClient();
  const next = (await one.dial('two', other, async (connection) => {
    const typed = (bytes: Uint8Array) => void happened.push(`other ${Buffer.from(bytes)}`);
    two.accept('one', connection).bind({ mode: 'control', typed, resized: () => {}, left: () => {} });
    return 'control';
  }))!;
  dialled.typed(Buffer.from('x'));
  expect([client.over, happened, errors.length]).toEqual(['cut', ['left'], 1]);
  next.typed(Buffer.from('y'));
  expect(happened.at(-1)).toBe('other y');
});

test('continues to check connections for silence after one of them failed to close', async () => {
  const { clock, wires, one } = await open();
  const failing = new MemoryClient();
  failing.cut = () => {
    throw new Error('bug');
  };
  const last = new MemoryClient();
  for (const client of [failing, last]) await one.dial('three', client, async () => 'view');
  wires[0].other = null;
  for (let second = 0; second < 11; second++) clock.advance(1_000);
  expect(last.over).toBe('cut');
});
