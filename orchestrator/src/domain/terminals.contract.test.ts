import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { type DatabaseFixture, describeDatabases } from '../../test/databases.ts';
import { newAdmin, newAgent, newKey, openDomain } from '../../test/domain.ts';
import { MemoryRelay, terminalsFixture } from '../../test/terminals.ts';
import { openTranscripts } from '../store/transcripts.ts';
import { setStatus } from './agents.ts';
import { listAudit } from './audit.ts';
import { addOperator, removeOperator } from './operators.ts';
import { noTerminals } from './terminal-relay.ts';
import { pruneTerminals } from './terminal-retention.ts';
import type { TerminalAsker } from './terminals.ts';

describeDatabases('terminals', (fixture) => {
  const openTerminals = terminalsFixture();

  async function open(given: DatabaseFixture) {
    const domain = await openDomain(given);
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    const relay = new MemoryRelay();
    const { terminals, directory } = await openTerminals(domain, relay);
    const operator = async (username: string): Promise<TerminalAsker> => {
      const key = await newKey();
      await addOperator(domain.context, actor, { public_key: key.hex, username, role: 'operator' });
      return { actor: { type: 'operator', id: key.id, name: username }, role: 'operator' };
    };
    const admin: TerminalAsker = { actor, role: 'admin' };
    const events = async () =>
      (await listAudit(domain.context, { category: 'terminal' })).events.map((event) => event.event_type).reverse();
    return { domain, agent, relay, terminals, directory, admin, operator, events };
  }

  it('are opened, listed, shown and ended by whose they are', async () => {
    const { agent, relay, terminals, operator, events, domain } = await open(fixture);
    const bob = await operator('bob');
    const { session_id, ws_url } = await terminals.open(bob, 'web-1', { cols: 100, rows: 30, shell: '/bin/sh' });
    expect(relay.opened).toEqual([{ session_id, node_id: agent.id, cols: 100, rows: 30, shell: '/bin/sh' }]);
    expect(ws_url).toMatch(new RegExp(`^/api/v1/terminal/session/${session_id}/ws\\?ticket=[\\w-]{43}$`));
    const row = { session_id, node_id: agent.id, operator_id: bob.actor.id, opened_at: domain.now() };
    const page = { limit: 10, offset: 0 };
    expect(await terminals.get(session_id)).toEqual({
      ...row,
      status: 'active',
      closed_at: null,
      transcript_path: null,
      viewers: 1,
    });
    expect((await terminals.list({ ...page, status: 'active' })).items).toHaveLength(1);
    expect((await terminals.list({ ...page, status: 'closed' })).items).toEqual([]);
    await terminals.close(bob, session_id);
    await terminals.close(bob, session_id);
    expect(relay.closed).toEqual([session_id]);
    expect((await terminals.list(page)).items).toEqual([{ ...row, status: 'closed', closed_at: domain.now() }]);
    expect((await terminals.get(session_id)).viewers).toBe(0);
    expect(await events()).toEqual(['terminal.opened', 'terminal.closed']);
  });

  it('are refused for agents that are unknown, away, not approved, or offer none', async () => {
    const { agent, terminals, admin, domain, events } = await open(fixture);
    const opening = (name: string, on = terminals) => on.open(admin, name, {});
    await expect(opening('web-9')).rejects.toMatchObject({ code: 'agent_not_found' });
    domain.connected.delete(agent.id);
    await expect(opening('web-1')).rejects.toMatchObject({ code: 'agent_offline', kind: { status: 404 } });
    domain.connected.add(agent.id);
    const without = await openTerminals(domain, noTerminals);
    await expect(opening('web-1', without.terminals)).rejects.toMatchObject({
      code: 'terminal_disabled',
      kind: { status: 409 },
    });
    await setStatus(domain.context, admin.actor, agent.id, { status: 'rejected', name: undefined });
    await expect(opening(agent.id)).rejects.toMatchObject({ code: 'agent_not_approved' });
    expect(await events()).toEqual([]);
    expect((await terminals.list({ limit: 10, offset: 0 })).items).toEqual([]);
  });

  it('of another are for admins', async () => {
    const { terminals, admin, operator, directory, domain } = await open(fixture);
    const bob = await operator('bob');
    const eve = await operator('eve');
    const { session_id } = await terminals.open(bob, 'web-1', {});
    writeFileSync(join(directory, `${session_id}.raw`), 'secret');
    const refused = { code: 'terminal_of_another', kind: { status: 403 } };
    await expect(terminals.close(eve, session_id)).rejects.toMatchObject(refused);
    await expect(terminals.attach(eve, session_id, 'view')).rejects.toMatchObject(refused);
    await expect(terminals.transcript(eve, session_id, 'raw')).rejects.toMatchObject(refused);
    // Whose it is may be seen by all.
    expect(await terminals.get(session_id)).toMatchObject({
      status: 'active',
      transcript_path: `/api/v1/terminal/session/${session_id}/transcript`,
    });
    for (const asker of [bob, admin]) {
      expect(await text(await terminals.transcript(asker, session_id, 'raw'))).toBe('secret');
      expect((await terminals.attach(asker, session_id, 'view')).ws_url).toContain(session_id);
    }
    // A request that was let in a moment before its operator was removed.
    const gone = { ...(await operator('gone')), role: 'admin' } as const;
    await removeOperator(domain.context, admin.actor, gone.actor.id);
    await expect(terminals.attach(gone, session_id, 'control')).rejects.toMatchObject({ code: 'unauthenticated' });
    await terminals.close(admin, session_id);
    await expect(terminals.attach(bob, session_id, 'control')).rejects.toMatchObject({ code: 'terminal_ended' });
  });

  it('are 404 under ids that are none, and so are transcripts that are not kept', async () => {
    const { terminals, admin, directory } = await open(fixture);
    writeFileSync(join(directory, 'x.raw'), 'x');
    for (const id of ['x', '../x', '01KAGZ7Q4W8E2R5T6Y9V0P3A1S', ''])
      for (const call of [
        () => terminals.get(id),
        () => terminals.close(admin, id),
        () => terminals.attach(admin, id, 'view'),
        () => terminals.transcript(admin, id, 'asciicast'),
      ])
        await expect(call()).rejects.toMatchObject({ code: 'terminal_not_found' });
    const { session_id } = await terminals.open(admin, 'web-1', {});
    await expect(terminals.transcript(admin, session_id, 'raw')).rejects.toMatchObject({ code: 'terminal_not_found' });
  });

  it('go, with what they showed, when they were kept long enough after their end', async () => {
    const { terminals, admin, domain, directory } = await open(fixture);
    const transcripts = await openTranscripts(directory);
    const { context } = domain;
    const begin = async () => {
      const { session_id } = await terminals.open(admin, 'web-1', {});
      for (const kind of ['raw', 'timing']) writeFileSync(join(directory, `${session_id}.${kind}`), '');
      return session_id;
    };
    const [old, long, endless] = [await begin(), await begin(), await begin()];
    await terminals.close(admin, old);
    domain.clock.advance(86_400_000);
    await terminals.close(admin, long);
    const recent = await begin();
    await terminals.close(admin, recent);
    domain.clock.advance(89 * 86_400_000 + 1000);
    expect(await pruneTerminals(context, transcripts, 0)).toBe(0);
    expect(await pruneTerminals(context, transcripts, 90)).toBe(1);
    await expect(terminals.get(old)).rejects.toMatchObject({ code: 'terminal_not_found' });
    const left = [long, endless, recent].sort();
    expect((await terminals.list({ limit: 10, offset: 0 })).items.map((one) => one.session_id).sort()).toEqual(left);
    expect(readdirSync(directory).sort()).toEqual(left.flatMap((id) => [`${id}.raw`, `${id}.timing`]));
    domain.clock.advance(90 * 86_400_000);
    // Those that are open stay, however long.
    expect(await pruneTerminals(context, transcripts, 90)).toBe(2);
    expect(readdirSync(directory).sort()).toEqual([`${endless}.raw`, `${endless}.timing`]);
  });

  it('give tickets that are good once, for thirty seconds, while the session lives', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const ticketOf = ({ ws_url }: { ws_url: string }) => new URL(ws_url, 'http://x').searchParams.get('ticket') ?? '';
    const { session_id, ws_url } = await terminals.open(admin, 'web-1', {});
    const ticket = ticketOf({ ws_url });
    expect(terminals.redeem(ticket)).toEqual({ session_id, operator_id: admin.actor.id, mode: 'control' });
    expect(terminals.redeem(ticket)).toBeNull();
    const view = ticketOf(await terminals.attach(admin, session_id, 'view'));
    domain.clock.advance(29_999);
    expect(terminals.redeem(view)).toMatchObject({ mode: 'view' });
    const late = ticketOf(await terminals.attach(admin, session_id, 'view'));
    domain.clock.advance(30_000);
    expect(terminals.redeem(late)).toBeNull();
    const useless = ticketOf(await terminals.attach(admin, session_id, 'view'));
    await terminals.close(admin, session_id);
    expect(terminals.redeem(useless)).toBeNull();
    expect(terminals.redeem('')).toBeNull();
  });

  it('hand out only so many tickets that nobody uses', async () => {
    const { terminals, admin, domain } = await open(fixture);
    const { session_id } = await terminals.open(admin, 'web-1', {});
    for (let count = 1; count < 32; count++) await terminals.attach(admin, session_id, 'view');
    await expect(terminals.attach(admin, session_id, 'view')).rejects.toMatchObject({ code: 'terminal_limit' });
    domain.clock.advance(30_000);
    await terminals.attach(admin, session_id, 'view');
  });

  it('end with their operator', async () => {
    const { terminals, admin, operator, relay, domain, events } = await open(fixture);
    const bob = await operator('bob');
    const his = await terminals.open(bob, 'web-1', {});
    const hers = await terminals.open(admin, 'web-1', {});
    await removeOperator(domain.context, admin.actor, bob.actor.id);
    expect(await terminals.get(his.session_id)).toMatchObject({ status: 'closed', closed_at: domain.now() });
    expect(await terminals.get(hers.session_id)).toMatchObject({ status: 'active' });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(relay.closed).toEqual([his.session_id]);
    expect(terminals.redeem(his.ws_url.split('=')[1] as string)).toBeNull();
    expect(terminals.redeem(hers.ws_url.split('=')[1] as string)).not.toBeNull();
    expect(await events()).toEqual(['terminal.opened', 'terminal.opened', 'terminal.closed']);
  });

  it('are not opened for an operator who is removed meanwhile', async () => {
    const { terminals, admin, operator, relay, domain } = await open(fixture);
    const bob = await operator('bob');
    relay.starting = () => removeOperator(domain.context, admin.actor, bob.actor.id);
    await expect(terminals.open(bob, 'web-1', {})).rejects.toMatchObject({ code: 'unauthenticated' });
    expect([...new Set(relay.closed)]).toEqual([relay.opened[0]?.session_id]);
    expect((await terminals.list({ limit: 10, offset: 0 })).items).toEqual([]);
  });

  it('that a former process left open are interrupted', async () => {
    const { terminals, admin, domain, events } = await open(fixture);
    const ended = await terminals.open(admin, 'web-1', {});
    await terminals.close(admin, ended.session_id);
    const left = await terminals.open(admin, 'web-1', {});
    const next = await openTerminals(domain);
    await next.terminals.interruptLeftovers();
    expect(await terminals.get(ended.session_id)).toMatchObject({ status: 'closed' });
    expect(await terminals.get(left.session_id)).toMatchObject({ status: 'interrupted', closed_at: domain.now() });
    expect((await events()).at(-1)).toBe('terminal.closed');
    await next.terminals.interruptLeftovers();
    expect(await events()).toHaveLength(4);
  });

  it('end when their shell does', async () => {
    const { terminals, admin, relay } = await open(fixture);
    const { session_id } = await terminals.open(admin, 'web-1', {});
    await terminals.ended(session_id, 'interrupted', 'the agent was lost');
    await terminals.ended(session_id, 'closed', 'the shell ended');
    expect(await terminals.get(session_id)).toMatchObject({ status: 'interrupted' });
    expect(relay.closed).toContain(session_id);
  });
});
