import type { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { MemoryWire } from '../../../test/nats/memory-wire.ts';
import { MemoryClient, MemoryShells, terminalsFixture, ticketOf } from '../../../test/terminals.ts';
import { AskDesk } from '../../bus/ask-desk.ts';
import type { Message } from '../../bus/messages.ts';
import type { OtherReplica } from '../shared/context.ts';
import type { TerminalAsker } from './own-terminals.ts';

const connection = 'ab'.repeat(16);

describeAnyDatabase('questions of other replicas about terminals', (fixture) => {
  const openTerminals = terminalsFixture();

  /** Opens a replica that answers a test's questions in the name of another replica. */
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    const clock = new ManualClock();
    const answers: Message[] = [];
    let ids = 0;
    const desk = new AskDesk({
      ...{ clock, log: domain.context.log, newId: () => `${++ids}` },
      send: (_, message) => answers.push(message) > 0,
    });
    const bus = { ...domain.context.bus, ask: desk.ask.bind(desk), answer: desk.answer.bind(desk) };
    const elsewhere: { replica: OtherReplica | null } = { replica: null };
    const presence = { ...domain.context.presence, isConnected: () => true, replicaOf: () => elsewhere.replica };
    const context = { ...domain.context, bus, presence };
    const [wire] = MemoryWire.pair('own', 'asker');
    const shells = new MemoryShells();
    const { terminals } = await openTerminals({ ...domain, context }, { shells, wire });
    const admin: TerminalAsker = { actor, role: 'admin' };
    /** Answers a question whose sender stops waiting after a second. */
    const ask = async (topic: string, question: object): Promise<Message | undefined> => {
      answers.length = 0;
      const asked = {
        type: 'ask',
        id: 'x',
        topic: `terminals/${topic}`,
        until: clock.now() + 1_000,
        question,
      } as const;
      await desk.asked('asker', asked);
      return answers[0];
    };
    const opening = { asker: admin, node_id: agent.id, cols: 80, rows: 24, shell: null };
    return { terminals, ask, clock, desk, wire, shells, admin, opening, elsewhere };
  };

  test('refuses without redeeming the ticket if it cannot relay, and keeps the controlling connection', async () => {
    const { terminals, ask, wire, admin, opening } = await open();
    const opened = await terminals.open(admin, 'web-1', {});
    const { session_id } = opened;
    const client = new MemoryClient();
    await terminals.connect(ticketOf(opened), session_id, client);
    const again = await terminals.attach(admin, session_id, 'control');
    wire.isConnected = false;
    const refusal = { type: 'refusal', code: 'terminal_at_other_replica' };
    const connecting = { session_id, ticket: ticketOf(again), connection };
    expect(await ask('connect', connecting)).toMatchObject(refusal);
    expect(await ask('attach', { asker: admin, session_id, mode: 'view' })).toMatchObject(refusal);
    expect(await ask('open', opening)).toMatchObject(refusal);
    expect(client.over).toBeNull();
    wire.isConnected = true;
    expect(await ask('connect', connecting)).toMatchObject({ type: 'answer', answer: { mode: 'control' } });
    expect(client.code).toBe('terminal_taken_over');
  });

  test('keeps the controlling connection if the relayed connection or the question of a new client ends early', async () => {
    for (const end of ['connection', 'question'] as const) {
      const { terminals, ask, clock, wire, admin } = await open();
      const opened = await terminals.open(admin, 'web-1', {});
      const { session_id } = opened;
      const client = new MemoryClient();
      await terminals.connect(ticketOf(opened), session_id, client);
      const again = await terminals.attach(admin, session_id, 'control');
      const asked = ask('connect', { session_id, ticket: ticketOf(again), connection });
      if (end === 'connection') wire.listener.lost();
      else clock.advance(1_000);
      const answer = await asked;
      if (end === 'connection') expect(answer).toMatchObject({ type: 'refusal', code: 'terminal_at_other_replica' });
      else expect(answer).toBeUndefined();
      // The handler continues after its question has ended.
      await terminals.attach(admin, session_id, 'view');
      expect([client.over, (await terminals.get(session_id)).viewers]).toEqual([null, 1]);
    }
  });

  test('ends a session if the replica that requested it no longer waits', async () => {
    const { ask, clock, shells, opening } = await open();
    shells.starting = async () => clock.advance(1_000);
    expect(await ask('open', opening)).toBeUndefined();
    await expect
      .poll(() => shells.opened.map(({ closed }) => closed))
      .toEqual(['the replica that requested the terminal is no longer waiting']);
  });

  test('issues no ticket to a replica that no longer waits', async () => {
    const { terminals, ask, clock, admin } = await open();
    const { session_id } = await terminals.open(admin, 'web-1', {});
    const question = { asker: admin, session_id, mode: 'view' };
    // The maximum number of unused tickets is 32, and the opener has one.
    for (let count = 0; count < 32; count++) {
      const asked = ask('attach', question);
      clock.advance(1_000);
      expect(await asked).toBeUndefined();
    }
    expect(await ask('attach', question)).toMatchObject({ type: 'answer' });
  });

  test('ignores unknown fields in questions, which newer replicas may send', async () => {
    const { terminals, ask, admin, opening } = await open();
    const later = { later: true };
    const asker = { actor: { ...admin.actor, ...later }, role: 'admin', ...later };
    const { session_id } = await terminals.open(admin, 'web-1', {});
    const attaching = { asker, session_id, mode: 'view', ...later };
    for (const [topic, question] of [
      ['open', { ...opening, asker, ...later }],
      ['attach', attaching],
      ['connect', { session_id, ticket: 'wrong', connection, ...later }],
      ['attached', { session_ids: [session_id], ...later }],
      ['close', { asker, session_id, ...later }],
    ] as const)
      expect(await ask(topic, question)).toMatchObject({ type: 'answer' });
  });

  test('reports that a terminal may have opened if the other replica does not answer', async () => {
    const { terminals, clock, desk, admin, elsewhere } = await open();
    elsewhere.replica = { incarnation: 'f'.repeat(32), name: 'two' } as OtherReplica;
    const failed = async (end: () => void) => {
      const opened = terminals.open(admin, 'web-1', {}).catch((error: unknown) => error);
      await expect.poll(() => clock.next).not.toBeNull();
      end();
      const error = (await opened) as MusterError;
      return [error.code, error.message];
    };
    const where = 'web-1 is connected to the replica two; the other replica';
    const look = 'list the open terminals before you open another one';
    expect(await failed(() => clock.advance(15_000))).toEqual([
      'outcome_unknown',
      `${where} did not answer in time; ${look}`,
    ]);
    expect(await failed(() => desk.disconnected())).toEqual([
      'outcome_unknown',
      `${where} disconnected before it answered; ${look}`,
    ]);
    const refuse = () => desk.answered(elsewhere.replica!.incarnation, { ...refusal, id: '3' });
    const refusal = { type: 'refusal', code: null, detail: '' } as const;
    expect(await failed(refuse)).toEqual(['terminal_at_other_replica', `${where} failed to answer`]);
  });
});
