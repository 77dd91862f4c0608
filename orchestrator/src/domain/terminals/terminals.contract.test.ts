import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { MusterError } from '@muster/protocol';
import { expect, test, vi } from 'vitest';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import {
  defaultRules,
  MemoryClient,
  MemoryShells,
  refusingShells,
  terminalsFixture,
  ticketOf,
} from '../../../test/terminals.ts';
import { transcriptsIn } from '../../../test/transcripts.ts';
import { defineQuery } from '../../store/query.ts';
import { setStatus } from '../agents/agents.ts';
import { listAudit } from '../audit/audit.ts';
import { addOperator, removeOperator } from '../operators/operators.ts';
import { hashOfToken } from '../operators/sessions.ts';
import type { TerminalRules } from './live-terminal.ts';
import type { TerminalAsker } from './own-terminals.ts';
import { pruneTerminals } from './terminal-retention.ts';
import { deleteExpiredTickets, TerminalTickets } from './terminal-tickets.ts';

describeAnyDatabase('terminals', (fixture) => {
  const openTerminals = terminalsFixture();

  async function open(given: DatabaseFixture, rules: Partial<TerminalRules> = {}) {
    const domain = await openDomain(given);
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    const shells = new MemoryShells();
    const { terminals, directory, transcripts } = await openTerminals(domain, {
      shells,
      rules: { ...defaultRules, ...rules },
    });
    const operator = async (username: string): Promise<TerminalAsker> => {
      const key = await newKey();
      await addOperator(domain.context, actor, { public_key: key.hex, username, role: 'operator' });
      return { actor: { type: 'operator', id: key.id, name: username }, role: 'operator' };
    };
    const admin: TerminalAsker = { actor, role: 'admin' };
    const audit = async () => (await listAudit(domain.context, { category: 'terminal' })).events.reverse();
    const events = async () => (await audit()).map((event) => event.event_type);
    /** Connects with the ticket in a response. */
    const join_ = async (given: { session_id: string; ws_url: string }) => {
      const client = new MemoryClient();
      const connection = await terminals.connect(ticketOf(given), given.session_id, client);
      if (connection === null) throw new Error('the ticket is not good');
      return Object.assign(client, { connection });
    };
    const start = async (asker: TerminalAsker) => {
      const opened = await terminals.open(asker, 'web-1', {});
      return { ...opened, shell: shells.last };
    };
    const cast = (sessionId: string) => readFileSync(join(directory, `${sessionId}.cast`), 'utf8');
    return {
      domain,
      agent,
      shells,
      terminals,
      transcripts,
      directory,
      admin,
      operator,
      audit,
      events,
      join: join_,
      start,
      cast,
    };
  }

  test('opens, lists, shows, and closes an operator’s terminals', async () => {
    const { agent, shells, terminals, operator, events, domain, cast } = await open(fixture);
    const bob = await operator('bob');
    const { session_id, ws_url } = await terminals.open(bob, 'web-1', { cols: 100, rows: 30, shell: '/bin/sh' });
    const { options } = shells.last;
    expect(options).toEqual({ session_id, node_id: agent.id, cols: 100, rows: 30, shell: '/bin/sh', operator: 'bob' });
    expect(ws_url).toMatch(new RegExp(`^/api/v1/terminal/session/${session_id}/ws\\?ticket=[\\w-]{43}$`));
    const row = { session_id, node_id: agent.id, operator_id: bob.actor.id, opened_at: domain.now(), attached: [] };
    const page = { limit: 10, offset: 0 };
    expect(await terminals.get(session_id)).toEqual({
      ...row,
      status: 'active',
      closed_at: null,
      end_reason: null,
      transcript_path: `/api/v1/terminal/session/${session_id}/transcript`,
      transcript_sha256: null,
      transcript_bytes: null,
      viewers: 0,
    });
    expect((await terminals.list({ ...page, status: 'active' })).items).toHaveLength(1);
    expect((await terminals.list({ ...page, status: 'closed' })).items).toEqual([]);
    await terminals.close(bob, session_id);
    await terminals.close(bob, session_id);
    expect(shells.last.closed).toBe('ended by bob');
    expect((await terminals.list(page)).items).toEqual([{ ...row, status: 'closed', closed_at: domain.now() }]);
    expect(await terminals.get(session_id)).toMatchObject({ viewers: 0, end_reason: 'ended by bob' });
    expect(await events()).toEqual(['terminal.opened', 'terminal.closed']);
    expect(JSON.parse(cast(session_id))).toEqual({
      version: 2,
      width: 100,
      height: 30,
      timestamp: domain.now(),
      title: 'bob on web-1',
      env: { TERM: 'xterm-256color', SHELL: '/bin/bash' },
      muster: {
        session_id,
        operator_id: bob.actor.id,
        operator: 'bob',
        node_id: agent.id,
        agent: 'web-1',
        user: 'root',
      },
    });
  });

  test('refuses agents that are unknown, disconnected, unapproved, or without terminals', async () => {
    const { agent, terminals, admin, domain, events } = await open(fixture);
    const opening = (name: string, on = terminals) => on.open(admin, name, {});
    await expect(opening('web-9')).rejects.toMatchObject({ code: 'agent_not_found' });
    domain.connected.delete(agent.id);
    await expect(opening('web-1')).rejects.toMatchObject({ code: 'agent_offline', kind: { status: 404 } });
    domain.connected.add(agent.id);
    const without = await openTerminals(domain, { shells: refusingShells });
    await expect(opening('web-1', without.terminals)).rejects.toMatchObject({
      code: 'terminal_disabled',
      kind: { status: 409 },
    });
    await setStatus(domain.context, admin.actor, agent.id, { status: 'rejected', name: undefined });
    await expect(opening(agent.id)).rejects.toMatchObject({ code: 'agent_not_approved' });
    expect(await events()).toEqual([]);
    expect((await terminals.list({ limit: 10, offset: 0 })).items).toEqual([]);
    expect(readdirSync(without.directory)).toEqual([]);
  });

  test('allows only admins to use other operators’ terminals', async () => {
    const { terminals, admin, operator, domain, start } = await open(fixture);
    const bob = await operator('bob');
    const eve = await operator('eve');
    const { session_id, shell } = await start(bob);
    shell.says('secret');
    await vi.waitFor(async () => expect(await text(await terminals.transcript(bob, session_id, 'raw'))).not.toBe(''));
    const refused = { code: 'terminal_of_another', kind: { status: 403 } };
    await expect(terminals.close(eve, session_id)).rejects.toMatchObject(refused);
    await expect(terminals.attach(eve, session_id, 'view')).rejects.toMatchObject(refused);
    await expect(terminals.transcript(eve, session_id, 'raw')).rejects.toMatchObject(refused);
    // All operators may see the owner of a terminal.
    expect(await terminals.get(session_id)).toMatchObject({
      status: 'active',
      transcript_path: `/api/v1/terminal/session/${session_id}/transcript`,
    });
    for (const asker of [bob, admin]) {
      expect(await text(await terminals.transcript(asker, session_id, 'raw'))).toBe('secret');
      expect((await terminals.attach(asker, session_id, 'view')).ws_url).toContain(session_id);
    }
    // Simulates a request that was admitted just before the operator was removed.
    const removed = { ...(await operator('gone')), role: 'admin' } as const;
    await removeOperator(domain.context, admin.actor, removed.actor.id);
    await expect(terminals.attach(removed, session_id, 'control')).rejects.toMatchObject({ code: 'unauthenticated' });
    await terminals.close(admin, session_id);
    await expect(terminals.attach(bob, session_id, 'control')).rejects.toMatchObject({ code: 'terminal_ended' });
  });

  test('reports unknown sessions and missing transcripts as not found', async () => {
    const { terminals, transcripts, admin } = await open(fixture);
    for (const id of ['x', '../x', '01KAGZ7Q4W8E2R5T6Y9V0P3A1S', ''])
      for (const call of [
        () => terminals.get(id),
        () => terminals.close(admin, id),
        () => terminals.attach(admin, id, 'view'),
        () => terminals.transcript(admin, id, 'asciicast'),
      ])
        await expect(call()).rejects.toMatchObject({ code: 'terminal_not_found' });
    const { session_id } = await terminals.open(admin, 'web-1', {});
    await terminals.close(admin, session_id);
    await transcripts.remove(session_id);
    expect(await terminals.get(session_id)).toMatchObject({ transcript_path: null });
    await expect(terminals.transcript(admin, session_id, 'raw')).rejects.toMatchObject({ code: 'terminal_not_found' });
  });

  test('deletes sessions and transcripts past their retention', async () => {
    const { terminals, admin, domain, directory, transcripts, join } = await open(fixture, { idleLimitSecs: 0 });
    const { context } = domain;
    // While a terminal is open, a timer runs every second, so each advance of this clock fires it.
    const days = 2;
    const day = 86_400_000;
    const begin = async () => {
      const opened = await terminals.open(admin, 'web-1', {});
      await join(opened);
      return opened.session_id;
    };
    /** Creates the state that a process leaves if it is killed while opening a session. */
    const createOrphan = async () => {
      const id = context.newId();
      await (await transcripts.create(id, () => {})).finish();
      return id;
    };
    await createOrphan();
    const [old, long, endless] = [await begin(), await begin(), await begin()];
    await terminals.close(admin, old);
    domain.clock.advance(day);
    await terminals.close(admin, long);
    const recent = await begin();
    await terminals.close(admin, recent);
    const young = await createOrphan();
    domain.clock.advance((days - 1) * day + 1000);
    expect(await pruneTerminals(context, transcripts, 0)).toBe(0);
    expect(await pruneTerminals(context, transcripts, days)).toBe(1);
    await expect(terminals.get(old)).rejects.toMatchObject({ code: 'terminal_not_found' });
    const left = [long, endless, recent].sort();
    expect((await terminals.list({ limit: 10, offset: 0 })).items.map((one) => one.session_id).sort()).toEqual(left);
    expect(readdirSync(directory).sort()).toEqual([...left, young].map((id) => `${id}.cast`).sort());
    domain.clock.advance(days * day);
    // Open sessions are kept regardless of their age.
    expect(await pruneTerminals(context, transcripts, days)).toBe(2);
    expect(readdirSync(directory)).toEqual([`${endless}.cast`]);
  });

  test('deletes the other terminal sessions if one file cannot be removed', async () => {
    const { terminals, admin, domain, directory, transcripts } = await open(fixture);
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) {
      const { session_id } = await terminals.open(admin, 'web-1', {});
      await terminals.close(admin, session_id);
      ids.push(session_id);
    }
    const [stuck = ''] = ids.sort();
    await transcripts.remove(stuck);
    mkdirSync(join(directory, `${stuck}.cast`));
    domain.clock.advance(91 * 86_400_000);
    expect(await pruneTerminals(domain.context, transcripts, 90)).toBe(2);
    expect((await terminals.list({ limit: 10, offset: 0 })).items.map((one) => one.session_id)).toEqual([stuck]);
    expect(readdirSync(directory)).toEqual([`${stuck}.cast`]);
  });

  test('issues single-use tickets that are valid for thirty seconds while the session is live', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const client = new MemoryClient();
    const connect = (given: { session_id: string; ws_url: string }, sessionId = given.session_id) =>
      terminals.connect(ticketOf(given), sessionId, client);
    const opened = await terminals.open(admin, 'web-1', {});
    const { session_id } = opened;
    expect(await connect(opened)).toMatchObject({ mode: 'control' });
    expect(await connect(opened)).toBeNull();
    const view = await terminals.attach(admin, session_id, 'view');
    domain.clock.advance(29_999);
    expect(await connect(view)).toMatchObject({ mode: 'view' });
    const late = await terminals.attach(admin, session_id, 'view');
    domain.clock.advance(30_000);
    expect(await connect(late)).toBeNull();
    const other = await terminals.open(admin, 'web-1', {});
    expect(await connect(other, session_id)).toBeNull();
    expect(await connect(other)).toBeNull();
    const useless = await terminals.attach(admin, session_id, 'view');
    await terminals.close(admin, session_id);
    expect(await connect(useless)).toBeNull();
    expect(await terminals.connect('', session_id, client)).toBeNull();
  });

  test('does not extend tickets or time limits when the clock is set back', async () => {
    const { terminals, admin, domain, audit } = await open(fixture);
    const { session_id } = await terminals.open(admin, 'web-1', {});
    const early = await terminals.attach(admin, session_id, 'view');
    const { opened_at } = await terminals.get(session_id);
    domain.clock.jump(-3_600_000);
    const given = await terminals.attach(admin, session_id, 'view');
    domain.clock.advance(30_000);
    for (const late of [early, given])
      expect(await terminals.connect(ticketOf(late), session_id, new MemoryClient())).toBeNull();
    await terminals.close(admin, session_id);
    expect(await terminals.get(session_id)).toMatchObject({ closed_at: opened_at });
    const closed = (await audit()).find((event) => event.event_type === 'terminal.closed');
    expect(closed?.metadata).toMatchObject({ duration_secs: 0 });
  });

  test('disconnects an operator who signed out, and keeps the operator’s shells for the reattach time', async () => {
    const { terminals, operator, domain, join } = await open(fixture);
    const { signIn, context } = domain;
    const key = await newKey();
    const { actor } = await operator('bob');
    await addOperator(context, actor, { public_key: key.hex, username: 'eve', role: 'operator' });
    const signedIn = async () => {
      const { nonce } = await signIn.challenge(key.hex);
      return hashOfToken((await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token);
    };
    const eve = (token_hash: string): TerminalAsker => ({
      actor: { type: 'operator', id: key.id, name: 'eve' },
      role: 'operator',
      token_hash,
    });
    const [here, elsewhere] = [await signedIn(), await signedIn()];
    const opened = await terminals.open(eve(here), 'web-1', {});
    const { session_id } = opened;
    const controls = await join(opened);
    const looks = await join(await terminals.attach(eve(elsewhere), session_id, 'view'));
    // The connections of a sign-in session continue when the session is renewed.
    const renewed = hashOfToken((await signIn.renew(here)).token);
    await new Promise((resolve) => setImmediate(resolve));
    expect(controls.over).toBeNull();
    const unused = await terminals.attach(eve(renewed), session_id, 'view');
    const others = await terminals.attach(eve(elsewhere), session_id, 'control');
    await signIn.logout(renewed);
    await new Promise((resolve) => setImmediate(resolve));
    expect([controls.over, controls.code, looks.over]).toEqual(['cut', 'unauthenticated', null]);
    expect(await terminals.connect(ticketOf(unused), session_id, new MemoryClient())).toBeNull();
    expect(await terminals.get(session_id)).toMatchObject({ status: 'active', viewers: 1 });
    await join(others);
  });

  test('keeps a ticket valid when its sign-in session is renewed, until the successor ends', async () => {
    const { terminals, operator, domain, join } = await open(fixture);
    const { signIn, context } = domain;
    const key = await newKey();
    const { actor } = await operator('bob');
    await addOperator(context, actor, { public_key: key.hex, username: 'eve', role: 'operator' });
    const { nonce } = await signIn.challenge(key.hex);
    const first = hashOfToken((await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token);
    const eve: TerminalAsker = { actor: { ...actor, id: key.id }, role: 'operator', token_hash: first };
    const opened = await terminals.open(eve, 'web-1', {});
    const unused = await terminals.attach(eve, opened.session_id, 'view');
    const renewed = hashOfToken((await signIn.renew(first)).token);
    const controls = await join(opened);
    await signIn.logout(renewed);
    await vi.waitFor(() => expect(controls.over).toBe('cut'));
    await expect(join(unused)).rejects.toThrow('not good');
  });

  test('accepts a ticket whose sign-in session is renewed while the ticket is being redeemed, but not a ticket whose session ends', async () => {
    const { terminals, operator, domain, join } = await open(fixture);
    const { signIn, context, db } = domain;
    const key = await newKey();
    const { actor } = await operator('bob');
    await addOperator(context, actor, { public_key: key.hex, username: 'eve', role: 'operator' });
    const { nonce } = await signIn.challenge(key.hex);
    let token = hashOfToken((await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token);
    const eve = (): TerminalAsker => ({ actor: { ...actor, id: key.id }, role: 'operator', token_hash: token });
    const opened = await terminals.open(eve(), 'web-1', {});
    const { all } = db;
    /** Acts after the ticket was deleted, and before or after the operator is checked. */
    const duringCheck = (isBefore: boolean, act: () => Promise<void>) =>
      vi.spyOn(db, 'all').mockImplementationOnce(async (query, params) => {
        expect(query.name).toBe('operators/removed');
        if (isBefore) await act();
        const found = await all.call(db, query, params);
        if (!isBefore) await act();
        return found as never;
      });
    for (const isBefore of [true, false]) {
      const ticket = await terminals.attach(eve(), opened.session_id, 'view');
      duringCheck(isBefore, async () => {
        token = hashOfToken((await signIn.renew(token)).token);
      });
      const client = await join(ticket);
      token = hashOfToken((await signIn.renew(token)).token);
      expect(client.over).toBeNull();
    }
    const watching = await join(await terminals.attach(eve(), opened.session_id, 'view'));
    const ticket = await terminals.attach(eve(), opened.session_id, 'view');
    duringCheck(true, () => signIn.logout(token));
    await expect(join(ticket)).rejects.toThrow('not good');
    await vi.waitFor(() => expect(watching.over).toBe('cut'));
    await vi.waitFor(async () => expect((await terminals.get(opened.session_id)).viewers).toBe(0));
  });

  test('accepts a ticket of another process once, even if several requests use it together', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const opened = await terminals.open(admin, 'web-1', {});
    const ticket = ticketOf(await terminals.attach(admin, opened.session_id, 'view'));
    const others = Array.from({ length: 4 }, () => new TerminalTickets({ ...domain.context }));
    const taken = await Promise.all(others.map((tickets) => tickets.take(ticket)));
    expect(taken.filter((found) => found !== null)).toMatchObject([
      { session_id: opened.session_id, operator_id: admin.actor.id, username: 'ada', mode: 'view', token_hash: null },
    ]);
  });

  test('refuses an operator who is removed while the ticket is being redeemed', async () => {
    const { terminals, admin, operator, domain, start } = await open(fixture);
    const bob = { ...(await operator('bob')), role: 'admin' } as const;
    const hers = await start(admin);
    const given = await terminals.attach(bob, hers.session_id, 'control');
    const { all } = domain.db;
    vi.spyOn(domain.db, 'all').mockImplementationOnce(async (query, params) => {
      expect(query.name).toBe('operators/removed');
      const before = await all.call(domain.db, query, params);
      await removeOperator(domain.context, admin.actor, bob.actor.id);
      return before as never;
    });
    const client = new MemoryClient();
    expect(await terminals.connect(ticketOf(given), hers.session_id, client)).toBeNull();
  });

  test('deletes expired tickets, and writes nothing for an invalid ticket', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const { session_id } = await terminals.open(admin, 'web-1', {});
    domain.clock.advance(20_000);
    const young = await terminals.attach(admin, session_id, 'view');
    domain.clock.advance(10_000);
    await deleteExpiredTickets(domain.context);
    const left = await domain.db.all(
      defineQuery('test/tickets', (db) => db.selectFrom('terminal_tickets').select('ticket_hash')),
      {},
    );
    expect(left).toHaveLength(1);
    const before = domain.db.stats().unitsCommitted;
    expect(await terminals.connect('x'.repeat(43), session_id, new MemoryClient())).toBeNull();
    expect(domain.db.stats().unitsCommitted).toBe(before);
    expect(await terminals.connect(ticketOf(young), session_id, new MemoryClient())).not.toBeNull();
  });

  test('limits the number of unused tickets', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const { session_id } = await terminals.open(admin, 'web-1', {});
    for (let count = 1; count < 32; count++) await terminals.attach(admin, session_id, 'view');
    await expect(terminals.attach(admin, session_id, 'view')).rejects.toMatchObject({ code: 'terminal_limit' });
    domain.clock.advance(30_000);
    await terminals.attach(admin, session_id, 'view');
  });

  test('closes a removed operator’s terminals, and disconnects the operator from other terminals', async () => {
    const { terminals, admin, operator, domain, audit, start, join, shells } = await open(fixture);
    const removed = { ...(await operator('gone')), role: 'admin' } as const;
    const his = await start(removed);
    const other = await start(removed);
    const hers = await start(admin);
    const [mine, watching, hersOpen] = [
      await join(his),
      await join(await terminals.attach(admin, his.session_id, 'view')),
      await join(hers),
    ];
    const looking = await join(await terminals.attach(removed, hers.session_id, 'view'));
    await removeOperator(domain.context, admin.actor, removed.actor.id);
    await vi.waitFor(async () =>
      expect(await terminals.get(his.session_id)).toMatchObject({
        status: 'closed',
        closed_at: domain.now(),
        end_reason: 'the operator was removed',
      }),
    );
    await vi.waitFor(async () => expect((await terminals.get(other.session_id)).status).toBe('closed'));
    expect([mine.over, mine.code]).toEqual(['cut', 'unauthenticated']);
    expect([looking.over, looking.code]).toEqual(['cut', 'unauthenticated']);
    expect([watching.over, watching.code]).toEqual(['closed', 'terminal_closed']);
    expect([hersOpen.over, (await terminals.get(hers.session_id)).status]).toEqual([null, 'active']);
    expect(shells.opened.map((shell) => shell.closed)).toEqual([
      'the operator was removed',
      'the operator was removed',
      null,
    ]);
    expect(await terminals.connect(ticketOf(other), other.session_id, new MemoryClient())).toBeNull();
    const closed = (await audit()).filter((event) => event.event_type === 'terminal.closed');
    expect(closed.map((event) => event.metadata.session_id).sort()).toEqual([his.session_id, other.session_id].sort());
  });

  test('within seconds, closes terminals that are no longer permitted, even if the hint was lost', async () => {
    const { terminals, admin, operator, domain, start, join, agent } = await open(fixture);
    const silentContext = { ...domain.context, bus: { ...domain.context.bus, publish: () => {} } };
    const removed = { ...(await operator('gone')), role: 'admin' } as const;
    const his = await start(removed);
    const hers = await start(admin);
    const mine = await join(hers);
    const looking = await join(await terminals.attach(removed, hers.session_id, 'view'));
    await removeOperator(silentContext, admin.actor, removed.actor.id);
    domain.clock.advance(5_000);
    await vi.waitFor(async () =>
      expect(await terminals.get(his.session_id)).toMatchObject({ end_reason: 'the operator was removed' }),
    );
    expect([looking.over, looking.code, mine.over]).toEqual(['cut', 'unauthenticated', null]);
    await setStatus(silentContext, admin.actor, agent.id, { status: 'rejected', name: undefined });
    domain.clock.advance(5_000);
    await vi.waitFor(async () => expect((await terminals.get(hers.session_id)).status).toBe('interrupted'));
    expect(mine.code).toBe('terminal_interrupted');
  });

  test('accepts no input from an operator whose removal is acknowledged', async () => {
    const { terminals, admin, operator, domain, start, join } = await open(fixture);
    const bob = await operator('bob');
    const own = await start(bob);
    const typing = await join(own);
    const hers = await start(admin);
    const ticket = await terminals.attach({ ...bob, role: 'admin' }, hers.session_id, 'control');
    typing.connection.typed(Buffer.from('before'));
    await removeOperator(domain.context, admin.actor, bob.actor.id);
    typing.connection.typed(Buffer.from('after'));
    expect(own.shell.typed).toBe('before');
    expect(typing.over).not.toBeNull();
    await expect(join(ticket)).rejects.toThrow('not good');
  });

  test('does not open a terminal for an operator who is removed concurrently', async () => {
    const { terminals, admin, operator, shells, domain, directory, events } = await open(fixture);
    const bob = await operator('bob');
    shells.starting = async () => {
      await removeOperator(domain.context, admin.actor, bob.actor.id);
    };
    await expect(terminals.open(bob, 'web-1', {})).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(shells.last.closed).not.toBeNull();
    expect((await terminals.list({ limit: 10, offset: 0 })).items).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
    expect(await events()).toEqual([]);
  });

  test('interrupts sessions that a previous process left open, and records their digest', async () => {
    const { terminals, admin, domain, events, audit, start, directory } = await open(fixture);
    const ended = await terminals.open(admin, 'web-1', {});
    await terminals.close(admin, ended.session_id);
    const left = await start(admin);
    left.shell.says('shown');
    await vi.waitFor(async () =>
      expect(await text(await terminals.transcript(admin, left.session_id, 'raw'))).toBe('shown'),
    );
    // A killed process leaves an incomplete line.
    const file = join(directory, `${left.session_id}.cast`);
    const whole = readFileSync(file, 'utf8');
    appendFileSync(file, '[1.5,"o","not sh');
    const next = await openTerminals(domain, { directory });
    await (await next.terminals.interruptLeftovers()).recorded;
    expect(readFileSync(file, 'utf8')).toBe(whole);
    const digest = await next.transcripts.digest(left.session_id);
    expect(digest?.sha256).toBe(createHash('sha256').update(whole).digest('hex'));
    expect(await next.terminals.get(ended.session_id)).toMatchObject({ status: 'closed' });
    expect(await next.terminals.get(left.session_id)).toMatchObject({
      status: 'interrupted',
      closed_at: domain.now(),
      transcript_sha256: digest?.sha256,
      transcript_bytes: digest?.bytes,
    });
    expect((await audit()).at(-1)?.metadata).toMatchObject({ status: 'interrupted', ...digest });
    await (await next.terminals.interruptLeftovers()).recorded;
    expect(await events()).toHaveLength(4);
  });

  test('ends a terminal whose session another process has interrupted, and shows none of its later output', async () => {
    if (fixture.kind === 'sqlite') return;
    const at = await fixture.newAddress();
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { actor } = await newAdmin(domain);
    await newAgent(domain, actor, 'web-1');
    const admin: TerminalAsker = { actor, role: 'admin' };
    const shells = new MemoryShells();
    const [own, others] = ['own', 'other'].map((incarnation) => transcriptsIn(at, { incarnation }));
    const { terminals } = await openTerminals(domain, { shells, transcripts: own! });
    const opened = await terminals.open(admin, 'web-1', {});
    const client = new MemoryClient();
    await terminals.connect(ticketOf(opened), opened.session_id, client);
    shells.last.says('shown');
    await vi.waitFor(() => expect(client.shown).toBe('shown'));
    const other = await openTerminals(domain, { transcripts: others! });
    expect(await text(await other.terminals.transcript(admin, opened.session_id, 'raw'))).toBe('shown');
    await (await other.terminals.interruptLeftovers()).recorded;
    const ended = await other.terminals.get(opened.session_id);
    expect(ended).toMatchObject({ status: 'interrupted', transcript_sha256: expect.any(String) });
    shells.last.says('late');
    await vi.waitFor(() => expect(client.over).toBe('closed'));
    expect([client.code, client.shown]).toEqual(['terminal_unrecorded', 'shown']);
    expect(await other.terminals.get(opened.session_id)).toEqual(ended);
    const cast = await buffer(await other.terminals.transcript(admin, opened.session_id, 'asciicast'));
    expect(createHash('sha256').update(cast).digest('hex')).toBe(ended.transcript_sha256);
    domain.clock.advance(91 * 86_400_000);
    expect(await pruneTerminals(domain.context, others!, 90)).toBe(1);
    expect(await own!.has(opened.session_id)).toBe(false);
    for (const transcripts of [own!, others!]) await transcripts.close();
  });

  test('finishes startup before the transcripts of leftover sessions are read', async () => {
    const { domain, admin, start, directory, transcripts } = await open(fixture);
    await start(admin);
    const digest = () => new Promise<never>(() => {});
    const next = await openTerminals(domain, { directory, transcripts: { ...transcripts, digest } });
    await next.terminals.interruptLeftovers();
    // Sessions opened after startup are not leftovers.
    const own = await next.terminals.open(admin, 'web-1', {});
    expect(await next.terminals.get(own.session_id)).toMatchObject({ status: 'active' });
  });

  test('marks a leftover terminal session as interrupted if its transcript is unreadable', async () => {
    const { domain, admin, start, directory, transcripts } = await open(fixture);
    const { session_id } = await start(admin);
    await transcripts.remove(session_id);
    mkdirSync(join(directory, `${session_id}.cast`));
    const next = await openTerminals(domain, { directory });
    await (await next.terminals.interruptLeftovers()).recorded;
    expect(await next.terminals.get(session_id)).toMatchObject({ status: 'interrupted', transcript_sha256: null });
  });

  test('records why each session ended, its duration, and its digest', async () => {
    const { terminals, admin, operator, audit, start, join, domain, cast } = await open(fixture);
    const opened = await start(admin);
    const { session_id, shell } = opened;
    const ada = await join(opened);
    const bob = await operator('bob');
    await expect(terminals.attach(bob, session_id, 'view')).rejects.toMatchObject({ code: 'terminal_of_another' });
    const eve = await join(await terminals.attach(admin, session_id, 'view'));
    const { actor } = admin;
    const attached = ['control', 'view'].map((mode) => ({
      operator_id: actor.id,
      username: 'ada',
      mode,
      since: domain.now(),
    }));
    expect((await terminals.list({ limit: 10, offset: 0 })).items[0]?.attached).toEqual(attached);
    expect(await terminals.get(session_id)).toMatchObject({ attached, viewers: 2 });
    ada.connection.typed(Buffer.from('exit 3\r'));
    shell.says(Buffer.from([0x68, 0x69, 0xff]));
    domain.clock.advance(75_000);
    shell.events.exited({ code: 3, signal: null });
    await vi.waitFor(() => expect([ada.over, eve.over]).toEqual(['closed', 'closed']));
    expect(ada.seen.at(-1)).toEqual({ type: 'exit', code: 3, signal: null });
    const shown = await terminals.get(session_id);
    const file = Buffer.from(cast(session_id));
    const digest = { sha256: createHash('sha256').update(file).digest('hex'), bytes: file.length };
    expect(shown).toMatchObject({
      status: 'closed',
      attached: [],
      viewers: 0,
      end_reason: 'the shell ended with exit code 3',
      transcript_sha256: digest.sha256,
      transcript_bytes: digest.bytes,
    });
    expect((await audit()).map(({ event_type, metadata }) => [event_type, metadata])).toEqual([
      ['terminal.opened', { session_id, shell: '/bin/bash', user: 'root' }],
      ['terminal.joined', { session_id, mode: 'view' }],
      [
        'terminal.closed',
        {
          session_id,
          operator_id: actor.id,
          reason: 'the shell ended with exit code 3',
          status: 'closed',
          ...digest,
          duration_secs: 75,
        },
      ],
    ]);
    expect(await buffer(await terminals.transcript(admin, session_id, 'asciicast'))).toEqual(file);
    expect([...(await buffer(await terminals.transcript(admin, session_id, 'raw')))]).toEqual([0x68, 0x69, 0xff]);
  });

  test('limits the number of connections, and allows only one connection to control the terminal', async () => {
    const { terminals, admin, start, join } = await open(fixture);
    const opened = await start(admin);
    const { session_id } = opened;
    const first = await join(opened);
    const second = await join(await terminals.attach(admin, session_id, 'control'));
    expect([first.over, first.code, second.over]).toEqual(['cut', 'terminal_taken_over', null]);
    for (let count = 0; count < 32; count++) {
      const viewer = await join(await terminals.attach(admin, session_id, 'view'));
      expect([viewer.over, viewer.seen[0]]).toEqual([null, { type: 'resize', cols: 80, rows: 24 }]);
    }
    const beyond = await join(await terminals.attach(admin, session_id, 'view'));
    expect([beyond.over, beyond.code]).toEqual(['closed', 'terminal_limit']);
    expect((await terminals.get(session_id)).viewers).toBe(33);
    // The limit does not apply to a controlling connection.
    expect((await join(await terminals.attach(admin, session_id, 'control'))).over).toBeNull();
  });

  test('opens no terminal and starts no shell when recording fails', async () => {
    const { terminals, admin, shells, directory } = await open(fixture);
    rmSync(directory, { recursive: true });
    await expect(terminals.open(admin, 'web-1', {})).rejects.toMatchObject({
      code: 'terminal_unrecorded',
      kind: { status: 507 },
    });
    expect(shells.opened).toEqual([]);
    expect((await terminals.list({ limit: 10, offset: 0 })).items).toEqual([]);
  });

  test('leaves no session, file, or shell behind if the agent refuses or the shell is lost', async () => {
    const { terminals, admin, shells, directory, events } = await open(fixture);
    shells.starting = async () => {
      throw new MusterError('terminal_failed', 'no more pseudo terminals');
    };
    await expect(terminals.open(admin, 'web-1', {})).rejects.toMatchObject({ code: 'terminal_failed' });
    expect([readdirSync(directory), await events()]).toEqual([[], []]);
    shells.starting = async (shell) => {
      setImmediate(() => shell.events.lost('the link ended'));
    };
    await terminals.open(admin, 'web-1', {}).catch((error: MusterError) => {
      expect(error.code).toBe('terminal_interrupted');
    });
    await vi.waitFor(async () =>
      expect((await terminals.list({ limit: 10, offset: 0 })).items).toMatchObject([{ status: 'interrupted' }]),
    );
    expect(await events()).toEqual(['terminal.opened', 'terminal.closed']);
  });

  test('interrupts terminals and notifies clients when the process stops', async () => {
    const { terminals, admin, start, join, shells } = await open(fixture);
    const opened = await start(admin);
    const client = await join(opened);
    await terminals.stop();
    expect([client.over, client.code]).toEqual(['closed', 'terminal_interrupted']);
    expect(shells.last.closed).toBe('the orchestrator is stopping');
    expect(await terminals.get(opened.session_id)).toMatchObject({
      status: 'interrupted',
      end_reason: 'the orchestrator is stopping',
      transcript_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    await expect(terminals.open(admin, 'web-1', {})).rejects.toMatchObject({ code: 'draining' });
    await terminals.stop();
  });

  test('records ended sessions after the database becomes available again', async () => {
    const { terminals, admin, start, join, domain, events } = await open(fixture);
    const opened = await start(admin);
    const client = await join(opened);
    const write = vi.spyOn(domain.db, 'write');
    write.mockRejectedValueOnce(new MusterError('storage_unavailable'));
    opened.shell.events.exited({ code: 0, signal: null });
    await vi.waitFor(() => expect(write).toHaveBeenCalledTimes(1));
    expect(client.over).toBe('closed');
    await vi.waitFor(async () => expect((await terminals.get(opened.session_id)).status).toBe('active'));
    domain.clock.advance(1000);
    await vi.waitFor(async () => expect((await terminals.get(opened.session_id)).status).toBe('closed'));
    expect(await events()).toEqual(['terminal.opened', 'terminal.closed']);
    write.mockRestore();
  });

  test('closes terminals when their agent is rejected', async () => {
    const { terminals, admin, start, domain, agent } = await open(fixture);
    const { session_id, shell } = await start(admin);
    await setStatus(domain.context, admin.actor, agent.id, { status: 'rejected', name: undefined });
    await vi.waitFor(async () =>
      expect(await terminals.get(session_id)).toMatchObject({
        status: 'interrupted',
        end_reason: 'the agent is no longer approved',
      }),
    );
    expect(shell.closed).not.toBeNull();
  });

  test('uses a single timer, once a second, while terminals are open', async () => {
    const { terminals, admin, start, domain } = await open(fixture, { reattachSecs: 5 });
    const after = vi.spyOn(domain.clock, 'after');
    await start(admin);
    await start(admin);
    const sweeps = () => after.mock.calls.filter(([ms]) => ms === 1000).length;
    for (let n = 0; n < 5; n++) domain.clock.advance(1000);
    await vi.waitFor(async () => {
      const { items } = await terminals.list({ limit: 10, offset: 0 });
      expect(items.map(({ status }) => status)).toEqual(['closed', 'closed']);
    });
    domain.clock.advance(10_000);
    const before = sweeps();
    domain.clock.advance(100_000);
    expect(sweeps()).toBe(before);
    after.mockRestore();
  });
});
