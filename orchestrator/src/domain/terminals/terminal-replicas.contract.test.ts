import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../../../lib/src/clock.ts';
import type { NatsBus } from '../../../src/bus/nats-bus.ts';
import { NatsLiveWire } from '../../../src/bus/nats-live-wire.ts';
import { describePostgres } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, newKey } from '../../../test/domain.ts';
import { NatsFleet } from '../../../test/nats/nats-fleet.ts';
import { natsMissing } from '../../../test/nats/nats-server.ts';
import { openPair } from '../../../test/replicas.ts';
import { MemoryClient, MemoryShells, terminalsFixture, ticketOf } from '../../../test/terminals.ts';
import { addOperator } from '../operators/operators.ts';
import type { TerminalAsker } from './own-terminals.ts';

describePostgres('terminals on another replica', (fixture) => {
  const openTerminals = terminalsFixture();
  let fleet: NatsFleet;
  const wires: NatsLiveWire[] = [];
  beforeEach(async ({ skip }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    fleet = await NatsFleet.start();
  });
  afterEach(async () => {
    await Promise.all(wires.splice(0).map((wire) => wire.close()));
    await fleet?.end();
  });

  /** Opens two replicas. The agent is connected to the second replica. */
  const open = async () => {
    const [one, two] = await openPair(fixture, { isReplica: true });
    const { actor } = await newAdmin(two);
    const agent = await newAgent(two, actor, 'web-1');
    const shells = new MemoryShells();
    const buses: NatsBus[] = [];
    const [first, second] = await Promise.all(
      [one, two].map(async ({ context, clock, ...domain }) => {
        const bus = fleet.join({ own: context.incarnation });
        buses.push(bus);
        const replicaOf = () => (context === two.context ? null : { ...two.context, name: 'two' });
        const presence = { ...context.presence, isConnected: () => true, replicaOf };
        const shared = { ...domain, clock, context: { ...context, bus, presence } };
        const wire = new NatsLiveWire({
          ...{ settings: { url: fleet.server.url, credentialsFile: null, caFile: null }, log: context.log },
          ...{ secret: fleet.secret, fleet: 'test', own: context.incarnation, clock: systemClock, random: () => 0.5 },
        });
        wires.push(wire);
        return (await openTerminals(shared, { shells, wire })).terminals;
      }),
    );
    await fleet.isComplete();
    for (const wire of wires) await expect.poll(() => wire.isConnected).toBe(true);
    const admin: TerminalAsker = { actor, role: 'admin' };
    /** Asks the second replica as the first replica does, but without the first replica's checks. */
    const askSecond = (topic: string, question: object) =>
      buses[0]!.ask(two.context.incarnation, { topic, question: z.any(), answer: z.any() }, question, {
        milliseconds: 5_000,
      });
    return { askSecond, first: first!, second: second!, admin, agent, shells, one, two };
  };
  const page = { limit: 10, offset: 0, status: 'active' } as const;

  test('shows who is connected to a session, and ends sessions, through either replica', async () => {
    const { first, second, admin, shells, two, askSecond } = await open();
    const opened = await second.open(admin, 'web-1', {});
    const client = new MemoryClient();
    await second.connect(ticketOf(opened), opened.session_id, client);
    const { operator_id, attached } = await second.get(opened.session_id);
    expect(attached).toMatchObject([{ operator_id, mode: 'control' }]);
    expect(await first.get(opened.session_id)).toMatchObject({ attached, viewers: 1 });
    expect((await first.list(page)).items).toMatchObject([{ attached }]);
    const key = await newKey();
    await addOperator(two.context, admin.actor, { public_key: key.hex, username: 'eve', role: 'operator' });
    const eve: TerminalAsker = { actor: { type: 'operator', id: key.id, name: 'eve' }, role: 'operator' };
    await expect(first.close(eve, opened.session_id)).rejects.toMatchObject({ code: 'terminal_of_another' });
    const { session_id } = opened;
    for (const [topic, more] of [
      ['close', {}],
      ['attach', { mode: 'view' }],
    ] as const)
      await expect(askSecond(`terminals/${topic}`, { asker: eve, session_id, ...more })).rejects.toMatchObject({
        code: 'terminal_of_another',
      });
    await first.close(admin, opened.session_id);
    expect(shells.last.closed).toBe(`ended by ${admin.actor.name}`);
    expect(client.code).toBe('terminal_closed');
    expect(await first.get(opened.session_id)).toMatchObject({ status: 'closed', attached: [] });
  });

  test('opens sessions and relays connections, with more output than fits into the window', async () => {
    const { first, second, admin, shells, two } = await open();
    const opened = await first.open(admin, 'web-1', { cols: 100, rows: 30 });
    expect(shells.last.options).toMatchObject({ cols: 100, rows: 30, operator: admin.actor.name });
    expect(await second.connect('wrong', opened.session_id, new MemoryClient())).toBeNull();
    expect(await first.connect('wrong', opened.session_id, new MemoryClient())).toBeNull();
    const client = new MemoryClient();
    const events = (await first.connect(ticketOf(opened), opened.session_id, client))!;
    expect([events.mode, events.isRelayed]).toEqual(['control', true]);
    await expect.poll(() => client.seen).toEqual([{ type: 'resize', cols: 100, rows: 30 }]);
    events.typed(Buffer.from('ls\r'));
    events.resized(90, 20);
    await expect.poll(() => shells.last.typed).toBe('ls\r');
    await expect.poll(() => shells.last.sizes).toEqual(['90x20']);
    await expect.poll(() => client.seen.length).toBe(2);

    client.stuck = true;
    const text = 'x'.repeat(64 * 1024);
    for (let count = 0; count < 16; count++) shells.last.says(text);
    await expect.poll(() => client.shown.length).toBeGreaterThan(128 * 1024);
    expect(client.shown.length).toBeLessThanOrEqual(256 * 1024);
    client.stuck = false;
    client.take();
    await expect.poll(() => client.shown.length).toBe(16 * text.length);
    expect(client.shown).toBe(text.repeat(16));

    const viewer = new MemoryClient();
    const viewing = await second.attach(admin, opened.session_id, 'view');
    await second.connect(ticketOf(viewing), opened.session_id, viewer);
    await expect.poll(() => viewer.shown).toContain('<screen>');
    shells.last.says('both');
    for (const one of [client, viewer]) await expect.poll(() => one.shown).toMatch(/both$/);
    events.left();
    await expect.poll(async () => (await second.get(opened.session_id)).attached).toMatchObject([{ mode: 'view' }]);

    const back = new MemoryClient();
    const again = await first.attach(admin, opened.session_id, 'control');
    await first.connect(ticketOf(again), opened.session_id, back);
    await expect.poll(() => back.shown).toBe('<screen>');
    two.clock.advance(20);
    shells.last.events.exited({ code: 3, signal: null });
    await expect.poll(() => back.seen.at(-1)).toEqual({ type: 'exit', code: 3, signal: null });
    await expect.poll(() => back.over).toBe('closed');
  });

  test('closes a relayed connection without a notice when NATS is lost, so that clients attach again', async () => {
    const { first, second, admin, one } = await open();
    const opened = await first.open(admin, 'web-1', {});
    const client = new MemoryClient();
    await first.connect(ticketOf(opened), opened.session_id, client);
    await expect.poll(() => client.seen.length).toBe(1);
    await fleet.server.kill();
    await expect.poll(() => client.over).toBe('cut');
    expect(client.code).toBeNull();
    await expect.poll(async () => (await second.get(opened.session_id)).attached).toEqual([]);
    await expect(first.attach(admin, opened.session_id, 'control')).rejects.toMatchObject({
      code: 'terminal_at_other_replica',
    });
    expect(one.context.isReplica).toBe(true);
  });

  test('closes a relayed connection without a notice if a frame is lost, and continues with a new connection', async () => {
    const { first, second, admin, shells } = await open();
    const opened = await first.open(admin, 'web-1', {});
    const client = new MemoryClient();
    await first.connect(ticketOf(opened), opened.session_id, client);
    await expect.poll(() => client.seen.length).toBe(1);
    const send = vi.spyOn(wires[1]!, 'send').mockReturnValueOnce(true);
    shells.last.says('lost');
    await expect.poll(() => send.mock.calls.length).toBe(1);
    shells.last.says('seen');
    await expect.poll(() => client.over).toBe('cut');
    expect([client.shown, client.code]).toEqual(['', null]);
    const again = new MemoryClient();
    const events = await first.connect(
      ticketOf(await first.attach(admin, opened.session_id, 'control')),
      opened.session_id,
      again,
    );
    await expect.poll(() => again.shown).toContain('<screen>');
    expect(events?.mode).toBe('control');
    expect((await second.get(opened.session_id)).attached).toMatchObject([{ mode: 'control' }]);
  });

  test('names the replica that holds the session while NATS is unavailable', async () => {
    const { first, second, admin } = await open();
    const { session_id } = await second.open(admin, 'web-1', {});
    await fleet.server.kill();
    await expect(first.close(admin, session_id)).rejects.toMatchObject({
      code: 'terminal_at_other_replica',
      message: expect.stringMatching(/^the replica [0-9a-f]+ holds the terminal session; the other replica /),
    });
    expect(await first.get(session_id)).toMatchObject({ status: 'active', attached: [] });
  });
});
