import { MusterError } from '@muster/protocol';
import { signInBytes } from '@muster/protocol/sign-in';
import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import {
  challengeKey,
  connect,
  type Domain,
  type Key,
  newAdmin,
  newAgent,
  newKey,
  openDomain,
  ownServer,
} from '../../../test/domain.ts';
import { moduleText } from '../../../test/real-api.ts';
import { OutcomeUnknown } from '../../store/database.ts';
import { defineQuery } from '../../store/query.ts';
import { createToken, listTokens } from '../agents/enrollment.ts';
import { listAudit } from '../audit/audit.ts';
import { createAssignment } from '../modules/assignments.ts';
import { uploadModule } from '../modules/modules.ts';
import { createChannel } from '../notifications/channels.ts';
import { submitOperation } from '../operations/operations.ts';
import type { Actor } from '../shared/context.ts';
import { addOperator, bootstrapOperator, getOperator, listOperators, removeOperator } from './operators.ts';
import { hashOfToken } from './sessions.ts';
import { createSignIn } from './sign-in.ts';
import { deleteOldAnswers } from './sign-in-challenges.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const all = { limit: 100, offset: 0 };

describeAnyDatabase('sign-in', (fixture) => {
  test('exchanges a signed nonce for a session token', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { nonce } = await domain.signIn.challenge(key.hex.toUpperCase());
    const { token, expires_at, operator } = await domain.signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')));
    expect(operator).toEqual({ operator_id: key.id, username: 'ada', role: 'admin' });
    expect(expires_at).toBe(domain.now() + 3600);
    expect(await domain.signIn.find(hashOfToken(token))).toMatchObject({ operator_id: key.id, role: 'admin' });
    const { events } = await listAudit(domain.context, { category: 'auth' });
    expect(events.map(({ event_type }) => event_type)).toEqual(['auth.signed_in']);
  });

  test('accepts a nonce once, within a minute, and only with a matching signature', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const first = (await domain.signIn.challenge(key.hex)).nonce;
    expect(await code(domain.signIn.verify(key.hex, key.sign(Buffer.from(first))))).toBe('signature_invalid');
    const signature = key.sign(Buffer.from(first, 'hex'));
    await domain.signIn.verify(key.hex, signature);
    expect(await code(domain.signIn.verify(key.hex, signature))).toBe('signature_invalid');
    const late = (await domain.signIn.challenge(key.hex)).nonce;
    domain.clock.advance(60_001);
    expect(await code(domain.signIn.verify(key.hex, key.sign(Buffer.from(late, 'hex'))))).toBe('signature_invalid');
  });

  test('accepts a bound signature once, only for this server and its own nonce and key', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const other = await newKey();
    const { nonce } = await domain.signIn.challenge(key.hex, true);
    const answer = (server: string, over: Partial<{ server: string; publicKey: string; nonce: string }> = {}) => {
      const signed = signInBytes({ server, publicKey: key.hex, nonce, ...over });
      return code(domain.signIn.verify(key.hex, key.sign(signed), { server, nonce: over.nonce ?? nonce }));
    };
    const elsewhere = `tls:${'ab'.repeat(32)}`;
    expect(await answer(elsewhere)).toBe('sign_in_server_unknown');
    // A signature that names another server is not valid for this server.
    expect(await answer(ownServer, { server: elsewhere })).toBe('signature_invalid');
    expect(await answer(ownServer, { publicKey: other.hex })).toBe('signature_invalid');
    expect(await answer(ownServer, { nonce: 'cd'.repeat(32) })).toBe('signature_invalid');
    const unbound = key.sign(Buffer.from(nonce, 'hex'));
    expect(await code(domain.signIn.verify(key.hex, unbound))).toBe('signature_invalid');
    // A refused response does not consume the nonce.
    expect(await answer(ownServer)).toBe('done');
    expect(await answer(ownServer)).toBe('signature_invalid');
    const { events } = await listAudit(domain.context, { event_type: 'auth.signed_in' });
    expect(events.map(({ metadata }) => metadata)).toEqual([{ bound: true, server: ownServer }]);
    const refused = await listAudit(domain.context, { event_type: 'auth.refused', limit: 100 });
    expect(refused.events.map(({ summary }) => summary)).toContain(
      `sign-in refused: the signature is for ${elsewhere}`,
    );
  });

  test('refuses unbound signatures with the same error for known and unknown keys if binding is required', async () => {
    const domain = await openDomain(fixture, { requireBound: true });
    const { key } = await newAdmin(domain);
    for (const { hex } of [key, await newKey()]) {
      expect(await code(domain.signIn.challenge(hex))).toBe('sign_in_unbound');
      expect(await code(domain.signIn.verify(hex, '5f'.repeat(64)))).toBe('sign_in_unbound');
    }
    const { nonce } = await domain.signIn.challenge(key.hex, true);
    const signature = key.sign(signInBytes({ server: ownServer, publicKey: key.hex, nonce }));
    expect(await code(domain.signIn.verify(key.hex, signature, { server: ownServer, nonce }))).toBe('done');
  });

  test('records whether the signature of a sign-in names no server', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { nonce } = await domain.signIn.challenge(key.hex);
    await domain.signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')));
    const { events } = await listAudit(domain.context, { event_type: 'auth.signed_in' });
    expect(events).toMatchObject([{ metadata: { bound: false }, summary: expect.stringContaining('no server') }]);
  });

  test('ends and refuses unbound sessions once binding is required', async () => {
    const domain = await openDomain(fixture);
    const { signIn, signInRules, hints } = domain;
    const { key } = await newAdmin(domain);
    const unbound = async () => {
      const { nonce } = await signIn.challenge(key.hex);
      return (await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')))).token;
    };
    const { nonce } = await signIn.challenge(key.hex, true);
    const signature = key.sign(signInBytes({ server: ownServer, publicKey: key.hex, nonce }));
    const { token: bound } = await signIn.verify(key.hex, signature, { server: ownServer, nonce });
    const tokens = [await unbound(), (await signIn.renew(hashOfToken(await unbound()))).token];
    tokens.push((await signIn.redeem(await signIn.webCode(hashOfToken(tokens[0]!)))).token);
    const [code_, boundCode] = await Promise.all(
      [tokens[0]!, bound].map((token) => signIn.webCode(hashOfToken(token))),
    );
    for (const token of tokens) expect(await signIn.find(hashOfToken(token))).not.toBeNull();

    signInRules.requireBound = true;
    // The sessions are refused immediately, even before they are ended.
    for (const token of tokens) {
      expect(await signIn.find(hashOfToken(token))).toBeNull();
      expect(await code(signIn.renew(hashOfToken(token)))).toBe('unauthenticated');
    }
    expect(await code(signIn.redeem(code_!))).toBe('login_code_invalid');
    hints.length = 0;
    expect(await signIn.endUnbound()).toBe(3);
    // These hints cause streams and terminals to close.
    expect(hints.map((hint) => hint.type === 'session_ended' && hint.token_hash).sort()).toEqual(
      tokens.map(hashOfToken).sort(),
    );
    const { events } = await listAudit(domain.context, { event_type: 'auth.signed_out' });
    expect(events).toHaveLength(3);
    expect(events[0]).toMatchObject({ target: { name: 'ada' }, summary: expect.stringContaining('require_bound') });
    signInRules.requireBound = false;
    for (const token of tokens) expect(await signIn.find(hashOfToken(token))).toBeNull();
    expect(await signIn.endUnbound()).toBe(0);

    signInRules.requireBound = true;
    expect(await signIn.find(hashOfToken(bound))).not.toBeNull();
    expect(await code(signIn.redeem(boundCode!))).toBe('done');
    expect(await code(signIn.renew(hashOfToken(bound)))).toBe('done');
  });

  /** Sign-in to other processes on the same database, whose clocks differ by `ahead` milliseconds. */
  function processesOf(domain: Domain) {
    const { context, refusals, signInRules } = domain;
    const opened: ReturnType<typeof createSignIn>[] = [];
    const start = (ahead = 0, key = challengeKey) => {
      const steadyNow = () => context.steadyNow() + ahead;
      const signIn = createSignIn({ ...context, steadyNow }, refusals, signInRules, key);
      opened.push(signIn);
      return signIn;
    };
    return { start, close: () => opened.map((signIn) => signIn.close()) };
  }
  type Process = ReturnType<typeof createSignIn>;
  const answerOf = async (at: Pick<Process, 'challenge'>, signer: Key, bound = true) => {
    const { nonce } = await at.challenge(signer.hex, bound);
    const signed = bound ? signInBytes({ server: ownServer, publicKey: signer.hex, nonce }) : Buffer.from(nonce, 'hex');
    const signature = signer.sign(signed);
    return ({ verify }: Pick<Process, 'verify'>) =>
      code(verify(signer.hex, signature, bound ? { server: ownServer, nonce } : null));
  };

  test('accepts an answer at another process, but only once', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { start, close } = processesOf(domain);
    for (const ahead of [0, 9_000, -9_000])
      for (const bound of [true, false]) {
        const answer = await answerOf(start(), key, bound);
        const said = await Promise.all([start(ahead), start(ahead)].map(answer));
        expect(said.sort()).toEqual(['done', 'signature_invalid']);
        expect(await answer(start())).toBe('signature_invalid');
      }
    expect(await (await answerOf(start(0, Buffer.alloc(32, 1)), key))(start())).toBe('signature_invalid');
    const { events } = await listAudit(domain.context, { event_type: 'auth.signed_in', limit: 100 });
    expect(events).toHaveLength(6);
    close();
  });

  test('refuses an answered nonce after a restart with a clock that was set back, and issues usable nonces', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { start, close } = processesOf(domain);
    const hour = 3_600_000;
    for (const bound of [true, false]) {
      const answer = await answerOf(start(), key, bound);
      expect(await answer(start())).toBe('done');
      expect(await (await answerOf(start(hour), key, bound))(start(hour))).toBe('done');
      await deleteOldAnswers(domain.context);
      expect(await answer(start())).toBe('signature_invalid');
      expect(await (await answerOf(start(), key, bound))(start())).toBe('done');
      domain.clock.advance(2 * hour);
    }
    close();
  });

  test('expires challenges normally after a sign-in that happened while the clock was far ahead', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { start, close } = processesOf(domain);
    const hour = 3_600_000;
    for (const bound of [true, false]) {
      const unused = await answerOf(start(hour), key, bound);
      expect(await (await answerOf(start(hour), key, bound))(start(hour))).toBe('done');
      const early = await answerOf(start(), key, bound);
      domain.clock.advance(61_000);
      expect(await early(start())).toBe('signature_invalid');
      expect(await (await answerOf(start(), key, bound))(start())).toBe('done');
      const dates = await domain.db.all(
        defineQuery('test/dates', (db) => db.selectFrom('answered_challenges').select('issued_at_ms')),
        {},
      );
      for (const { issued_at_ms } of dates) expect(issued_at_ms).toBeLessThanOrEqual(domain.context.steadyNow());
      // A challenge from that time is still refused when the clock reaches that time.
      domain.clock.advance(hour - 61_000);
      expect(await unused(start())).toBe('signature_invalid');
      domain.clock.advance(hour);
    }
    close();
  });

  test('refuses an unanswered challenge from a time when the clock was far ahead', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { start, close } = processesOf(domain);
    for (const bound of [true, false])
      expect(await (await answerOf(start(3_600_000), key, bound))(start())).toBe('signature_invalid');
    close();
  });

  test('agrees with other processes on when challenges end after a clock was set back', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { start, close } = processesOf(domain);
    const [one, other] = [start(), start()];
    expect(await (await answerOf(start(3_600_000), key))(start(3_600_000))).toBe('done');
    await Promise.all([one, other].map((process) => process.challenge(key.hex)));
    const answers = await Promise.all([one, other].map((process) => answerOf(process, key)));
    expect(await Promise.all([other, one].map((process, i) => answers[i]?.(process)))).toEqual(['done', 'done']);
    // An answer that is being committed when the challenges end must not open a session.
    const late = await answerOf(one, key);
    const { write } = domain.db;
    vi.spyOn(domain.db, 'write').mockImplementationOnce(async (unit) => {
      expect(unit.name).toBe('auth/issue session');
      expect(await (await answerOf(start(3_600_000), key))(start(3_600_000))).toBe('done');
      await other.challenge(key.hex);
      return write.call(domain.db, unit);
    });
    expect(await late(one)).toBe('signature_invalid');
    close();
  });

  test('stores nothing until a challenge is answered, and later deletes the answers', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const rows = () =>
      domain.db.all(
        defineQuery('test/answered', (db) => db.selectFrom('answered_challenges').selectAll()),
        {},
      );
    for (let at = 0; at < 20; at++) {
      await domain.signIn.challenge(key.hex, at % 2 === 0);
      await code(domain.signIn.verify(key.hex, '5f'.repeat(64)));
    }
    expect(await rows()).toEqual([]);
    const answer = async () => expect(await (await answerOf(domain.signIn, key))(domain.signIn)).toBe('done');
    for (let at = 0; at < 3; at++) await answer();
    domain.clock.advance(15 * 60_000 + 1);
    await answer();
    await deleteOldAnswers(domain.context);
    expect(await rows()).toMatchObject([{ operator_id: key.id, issued_at_ms: domain.context.steadyNow() }]);
  });

  test('keeps an operator’s challenge when others request challenges in the operator’s name', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const home = { ip: '192.0.2.1', loopback: false };
    const bound = (await domain.signIn.challenge(key.hex, true, home)).nonce;
    const unbound = (await domain.signIn.challenge(key.hex, false, home)).nonce;
    for (let at = 0; at < 200; at++) {
      const from = { ip: `198.51.100.${at % 3}`, loopback: false };
      await domain.signIn.challenge(key.hex, true, from);
      await domain.signIn.challenge(key.hex, false, from);
    }
    const signature = key.sign(signInBytes({ server: ownServer, publicKey: key.hex, nonce: bound }));
    expect(await code(domain.signIn.verify(key.hex, signature, { server: ownServer, nonce: bound }, home))).toBe(
      'done',
    );
    expect(await code(domain.signIn.verify(key.hex, key.sign(Buffer.from(unbound, 'hex')), null, home))).toBe('done');
  });

  test('accepts an answer to each of eight unbound challenges, and any number in sequence', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const answers = [];
    for (let at = 0; at < 8; at++) answers.push(await answerOf(domain.signIn, key, false));
    for (const answer of answers.reverse()) expect(await answer(domain.signIn)).toBe('done');
    for (let at = 0; at < 20; at++) {
      const answer = await answerOf(domain.signIn, key, false);
      expect(await answer(domain.signIn)).toBe('done');
      expect(await answer(domain.signIn)).toBe('signature_invalid');
    }
  });

  test('returns the same error for an unknown key and a removed operator', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const removed = await newKey();
    await addOperator(domain.context, actor, { public_key: removed.hex, username: 'bob', role: 'operator' });
    await removeOperator(domain.context, actor, removed.id);
    const said = async (hex: string) =>
      domain.signIn.challenge(hex).catch((error: unknown) => ({ ...(error as MusterError), message: String(error) }));
    expect(await said(removed.hex)).toEqual(await said((await newKey()).hex));
    expect(await code(domain.signIn.challenge('00'.repeat(32)))).toBe('key_invalid');
    expect(await code(domain.signIn.challenge('zz'))).toBe('key_invalid');
  });

  test('records a refusal once and counts repetitions', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const stranger = await newKey();
    const refused = async () => {
      const { events } = await listAudit(domain.context, { event_type: 'auth.refused', limit: 500 });
      return events.map(({ actor, metadata }) => ({ of: actor.id, ...metadata }));
    };
    for (let at = 0; at < 1000; at++)
      expect(await code(domain.signIn.challenge(stranger.hex))).toBe('operator_unknown');
    expect(await refused()).toMatchObject([{ of: '', key_id: stranger.id }]);
    // Refusals of a known operator have a separate entry.
    expect(await code(domain.signIn.verify(key.hex, '5f'.repeat(64)))).toBe('signature_invalid');
    expect((await refused())[0]).toMatchObject({ of: key.id });
    domain.clock.advance(3_600_000);
    await code(domain.signIn.challenge(stranger.hex));
    expect((await refused())[0]).toMatchObject({ of: '', count: 1000 });
    expect(await refused()).toHaveLength(3);
  });

  test('ends sessions on expiry, sign-out, renewal, and removal', async () => {
    const domain = await openDomain(fixture, { tokenLifeSecs: 10 });
    const { key, actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const signIn = async (who: typeof key) => {
      const { nonce } = await domain.signIn.challenge(who.hex);
      return hashOfToken((await domain.signIn.verify(who.hex, who.sign(Buffer.from(nonce, 'hex')))).token);
    };
    const out = await signIn(key);
    await domain.signIn.logout(out);
    expect(await domain.signIn.find(out)).toBeNull();
    const old = await signIn(key);
    const { token } = await domain.signIn.renew(old);
    expect(await domain.signIn.find(old)).toBeNull();
    expect(await domain.signIn.find(hashOfToken(token))).not.toBeNull();
    const removed = await signIn(bob);
    expect(await domain.signIn.find(removed)).not.toBeNull();
    await removeOperator(domain.context, actor, bob.id);
    expect(await domain.signIn.find(removed)).toBeNull();
    domain.clock.advance(10_000);
    expect(await domain.signIn.find(hashOfToken(token))).toBeNull();
  });

  test('never accepts a removed operator’s key or name again, and keeps at least one admin', async () => {
    const domain = await openDomain(fixture);
    const { key, actor } = await newAdmin(domain);
    const bob = await newKey();
    const add = (public_key: string, username: string) =>
      code(addOperator(domain.context, actor, { public_key, username, role: 'operator' }));
    expect(await add(bob.hex, 'bob')).toBe('done');
    expect(await add(bob.hex, 'robert')).toBe('key_taken');
    expect(await add((await newKey()).hex, 'bob')).toBe('name_taken');
    expect(await add((await newKey()).hex, '0bob')).toBe('invalid_input');
    await removeOperator(domain.context, actor, bob.id);
    expect(await add(bob.hex, 'bobby')).toBe('key_taken');
    expect(await code(removeOperator(domain.context, actor, key.id))).toBe('last_admin');
    expect((await getOperator(domain.context, key.id)).removed_at).toBeNull();
    expect((await listOperators(domain.context, false, all)).items.map(({ username }) => username)).toEqual(['ada']);
    expect((await listOperators(domain.context, true, all)).items.length).toBe(2);
  });

  test('closes the operator’s streams and terminals if a removal may have been committed', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const { nonce } = await domain.signIn.challenge(bob.hex);
    const { token } = await domain.signIn.verify(bob.hex, bob.sign(Buffer.from(nonce, 'hex')));
    expect(await domain.signIn.find(hashOfToken(token))).not.toBeNull();
    const write = domain.db.write.bind(domain.db);
    vi.spyOn(domain.db, 'write').mockImplementationOnce(async (unit) => {
      await write(unit);
      throw new OutcomeUnknown(unit.name, 'the connection was lost');
    });
    expect(await code(removeOperator(domain.context, actor, bob.id))).toBe('outcome_unknown');
    expect(await code(removeOperator(domain.context, actor, bob.id))).toBe('done');
    await new Promise((resolve) => setImmediate(resolve));
    expect(domain.hints.filter(({ type }) => type === 'operator_removed')).toHaveLength(2);
    expect(await domain.signIn.find(hashOfToken(token))).toBeNull();
  });

  /** Creates an admin with a sign-in session, a token, and a link. */
  const leaver = async (domain: Domain, actor: Awaited<ReturnType<typeof newAdmin>>['actor']) => {
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'admin' });
    const { nonce } = await domain.signIn.challenge(bob.hex);
    const { token } = await domain.signIn.verify(bob.hex, bob.sign(Buffer.from(nonce, 'hex')));
    const link = await domain.signIn.webCode(hashOfToken(token));
    const own = { type: 'operator', id: bob.id, name: 'bob' } as const;
    const join = await createToken(domain.context, own, { tags: { role: 'db' } }, advertised);
    return { bob, own, token, link, join };
  };
  const advertised = { agents: 'o:4747', publicKey: 'ab'.repeat(32) };
  const enrolled = async (domain: Domain, key: Key, token: string) => (await connect(domain, key, { token })).admitted;

  test('revokes and returns all credentials of a removed operator', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { bob, own, link, join } = await leaver(domain, actor);
    const eve = await newKey();
    await addOperator(context, own, { public_key: eve.hex, username: 'eve', role: 'admin' });
    const unaffected = await createToken(context, actor, {}, advertised);
    const removed = await removeOperator(context, actor, bob.id);
    expect(removed).toMatchObject({
      operator: { username: 'bob', removed_by: actor.id },
      ended: { sessions: 1, web_logins: 1, enrolment_tokens: [{ id: join.id, name: null }], terminals: [] },
      operators_added: [{ operator_id: eve.id, username: 'eve' }],
    });
    expect(await enrolled(domain, await newKey(), join.token)).toBe(false);
    expect(await enrolled(domain, await newKey(), unaffected.token)).toBe(true);
    expect(await code(domain.signIn.redeem(link))).toBe('login_code_invalid');
    const { events } = await listAudit(context, { event_type: 'operator.removed' });
    expect(events).toMatchObject([
      {
        metadata: { enrolment_tokens: [join.id] },
        summary: 'operator bob removed, which also ended 1 enrollment token',
      },
    ]);
    expect((await removeOperator(context, actor, bob.id)).ended.enrolment_tokens).toEqual([]);
  });

  test('returns operators that were added by removed operators, and the objects that these operators leave behind', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { bob, own } = await leaver(domain, actor);
    // Bob adds eve, eve adds mallory and a channel, and bob removes eve. Only the removed eve connects bob with
    // mallory.
    const add = async (by: Actor, username: string) => {
      const { hex: public_key, id } = await newKey();
      await addOperator(context, by, { public_key, username, role: 'admin' });
      return { type: 'operator' as const, id, name: username };
    };
    const eve = await add(own, 'eve');
    const mallory = await add(eve, 'mallory');
    const config = { url: 'https://hooks.example/muster', secret: 'correct horse' };
    const channel = await createChannel(
      context,
      eve,
      { denyPrivate: false },
      { name: 'chat', channel_type: 'webhook', config },
    );
    await uploadModule(context, own, 'm', moduleText);
    await createAssignment(context, eve, { name: 'all', modules: ['m'], selector: 'role=db' });
    await newAgent(domain, actor, 'web-1');
    const queued = await submitOperation(context, own, 'web-1', {
      kind: 'apply',
      modules: ['m'],
      queue: true,
    });
    await removeOperator(context, own, eve.id);
    const { operators_added, left } = await removeOperator(context, actor, bob.id);
    expect(operators_added).toEqual([{ operator_id: mallory.id, username: 'mallory' }]);
    expect(left).toEqual({
      modules: ['m'],
      assignments: ['all'],
      channels: [{ id: channel.id, name: 'chat' }],
      runs: [],
      operations: [queued],
    });
    const { left: nothing } = await removeOperator(context, actor, mallory.id);
    expect(Object.values(nothing).flat()).toEqual([]);
  });

  test('revokes and returns a token that is created while its operator is removed', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { bob, own, join } = await leaver(domain, actor);
    const write = domain.db.write.bind(domain.db);
    let late: { id: string } | undefined;
    const spy = vi.spyOn(domain.db, 'write').mockImplementation(async (unit) => {
      if (unit.name === 'operators/remove' && late === undefined) {
        late = { id: '' };
        late = await createToken(context, own, {}, advertised);
      }
      return write(unit);
    });
    const { ended } = await removeOperator(context, actor, bob.id);
    spy.mockRestore();
    expect(ended.enrolment_tokens.map(({ id }) => id).sort()).toEqual([join.id, late?.id].sort());
    expect((await listTokens(context, false, all)).items).toEqual([]);
  });

  test('revokes all tokens of an operator, even if there are too many to list', async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const { bob, own } = await leaver(domain, actor);
    const made = [];
    for (let at = 0; at < 510; at++) made.push(await createToken(context, own, {}, advertised));
    const { ended } = await removeOperator(context, actor, bob.id);
    expect(ended.enrolment_tokens).toHaveLength(500);
    for (const { token } of [made[0]!, made.at(-1)!]) expect(await enrolled(domain, await newKey(), token)).toBe(false);
    const { events } = await listAudit(context, { event_type: 'operator.removed' });
    expect(events).toMatchObject([{ summary: 'operator bob removed, which also ended 511 enrollment tokens' }]);
    expect(events[0]?.metadata.enrolment_tokens).toHaveLength(500);
  });

  test('creates the first operator only once', async () => {
    const domain = await openDomain(fixture);
    const first = await newKey();
    expect(await bootstrapOperator(domain.context, { public_key: first.hex, username: 'ada' })).toBe(true);
    expect(await bootstrapOperator(domain.context, { public_key: (await newKey()).hex, username: 'eve' })).toBe(false);
    expect((await listOperators(domain.context, true, all)).items).toMatchObject([
      { username: 'ada', role: 'admin', bootstrap: true, added_by: 'bootstrap' },
    ]);
  });
});
