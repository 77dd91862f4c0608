import { MusterError } from '@muster/protocol';
import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { challengeKey, type Domain, type Key, newAdmin, newKey, openDomain } from '../../../test/domain.ts';
import { listAudit } from '../audit/audit.ts';
import { addOperator, removeOperator } from './operators.ts';
import { actorIn, consoleToken, hashOfToken, type Session } from './sessions.ts';
import { createSignIn } from './sign-in.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const client = { ip: '192.0.2.7', loopback: false, userAgent: 'Firefox/145.0' };

async function tokenHashOf({ signIn }: Domain, key: Key): Promise<string> {
  const { nonce } = await signIn.challenge(key.hex);
  return hashOfToken((await signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')), null, client)).token);
}

/** Signs in, and exchanges the token for a console session. @returns the hash of its cookie and page key */
async function unusedHashOf(domain: Domain, key: Key): Promise<string> {
  const { cookie, page_key } = await domain.signIn.openConsole(await tokenHashOf(domain, key));
  return hashOfToken(consoleToken(cookie, page_key));
}

/**
 * Opens a console session and uses it immediately, as the console does.
 * @returns the hash of its cookie and page key
 */
async function consoleHashOf(domain: Domain, key: Key): Promise<string> {
  const hash = await unusedHashOf(domain, key);
  const writes = vi.spyOn(domain.db, 'write');
  await live(domain, hash);
  await Promise.all(writes.mock.results.map(({ value }) => value));
  writes.mockRestore();
  return hash;
}

const live = async (domain: Domain, hash: string) => (await domain.signIn.find(hash)) as Session;

describeAnyDatabase('console sessions', (fixture) => {
  const hour = 3_600_000;

  test('replaces the sign-in token with a console session that is not valid as a token', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const token = await tokenHashOf(domain, key);
    const { cookie, page_key, expires_at, life_secs, operator } = await domain.signIn.openConsole(token);
    expect(operator).toEqual({ operator_id: key.id, username: 'ada', role: 'admin' });
    expect([expires_at, life_secs]).toEqual([domain.now() + 604_800, 604_800]);
    expect(await domain.signIn.find(token)).toBeNull();
    const hash = hashOfToken(consoleToken(cookie, page_key));
    expect(await live(domain, hash)).toMatchObject({ operator_id: key.id, role: 'admin' });
    for (const part of [cookie, page_key, `${cookie}${page_key}`])
      expect(await domain.signIn.find(hashOfToken(part))).toBeNull();
    // Streams and terminals opened with the token continue in the console session.
    expect(domain.hints.at(-1)).toEqual({ type: 'session_ended', token_hash: token, renewed_as: hash });
    expect(await code(domain.signIn.openConsole(token))).toBe('unauthenticated');
    const { events } = await listAudit(domain.context, { category: 'auth' });
    expect(events.map(({ event_type }) => event_type)).toEqual(['auth.console_opened', 'auth.signed_in']);
  });

  test('refuses to exchange a console session for a token', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const hash = await consoleHashOf(domain, key);
    const { signIn } = domain;
    for (const exchange of [signIn.renew, signIn.webCode, signIn.openConsole])
      expect(await code(exchange(hash))).toBe('session_token_required');
    expect(await live(domain, hash)).not.toBeNull();
  });

  test('ends a console session after the idle time, but not while it is used', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const hash = await consoleHashOf(domain, key);
    const writes = vi.spyOn(domain.db, 'write');
    for (let used = 0; used < 3; used++) {
      domain.clock.advance(11 * hour);
      expect(await live(domain, hash)).not.toBeNull();
      await Promise.all(writes.mock.results.map(({ value }) => value));
    }
    // Another process, such as the process after a restart, can determine when the session was last used.
    const restarted = createSignIn(domain.context, domain.refusals, domain.signInRules, challengeKey);
    domain.clock.advance(11 * hour);
    expect(await restarted.find(hash)).not.toBeNull();
    domain.clock.advance(12 * hour);
    expect(await restarted.find(hash)).toBeNull();
    expect(await domain.signIn.find(hash)).toBeNull();
    restarted.close();
  });

  test('ends a console session a minute after the exchange if its response was lost', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const [lost, used] = [await unusedHashOf(domain, key), await consoleHashOf(domain, key)];
    domain.clock.advance(60_000);
    expect(await domain.signIn.find(lost)).toBeNull();
    const listed = await domain.signIn.list(await live(domain, used));
    expect(listed.map(({ current }) => current)).toEqual([true]);
  });

  test('ends a console session at its maximum age, even if it is used', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const hash = await consoleHashOf(domain, key);
    for (let hours = 0; hours < 7 * 24 - 1; hours++) {
      domain.clock.advance(hour);
      expect(await domain.signIn.find(hash), `after ${hours + 1} h`).not.toBeNull();
    }
    domain.clock.advance(hour);
    expect(await domain.signIn.find(hash)).toBeNull();
  });

  test('limits the lifetime of sessions that were used while the clock was ahead', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const month = 30 * 24 * hour;
    domain.clock.jump(month);
    const hash = await consoleHashOf(domain, key);
    domain.clock.advance(hour);
    await live(domain, hash);
    const token = await tokenHashOf(domain, key);
    domain.clock.jump(-month);
    const writes = vi.spyOn(domain.db, 'write');
    for (const each of [hash, token]) await live(domain, each);
    await Promise.all(writes.mock.results.map(({ value }) => value));
    const restarted = createSignIn(domain.context, domain.refusals, domain.signInRules, challengeKey);
    const times = { signed_in_at: domain.now(), last_used_at: domain.now() };
    for (const { list } of [domain.signIn, restarted])
      expect(await list({ operator_id: key.id, token_hash: hash })).toMatchObject([
        { kind: 'token', ...times, expires_at: domain.now() + 3600 },
        { kind: 'console', ...times, expires_at: domain.now() + 12 * 3600 },
      ]);
    domain.clock.advance(12 * hour);
    for (const { find } of [domain.signIn, restarted])
      expect([await find(hash), await find(token)]).toEqual([null, null]);
    restarted.close();
  });

  test('refuses to exchange a sign-in older than the maximum age, and keeps its token', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const token = await tokenHashOf(domain, key);
    domain.signInRules.consoleLifeSecs = 1800;
    domain.clock.advance(hour / 2);
    const { signIn } = domain;
    for (const exchange of [signIn.openConsole, signIn.webCode])
      expect(await code(exchange(token))).toBe('unauthenticated');
    expect(await live(domain, token)).not.toBeNull();
  });

  test('applies changed session limits immediately', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const [first, second] = [await consoleHashOf(domain, key), await consoleHashOf(domain, key)];
    domain.clock.advance(2 * hour);
    expect(await live(domain, first)).not.toBeNull();
    domain.signInRules.consoleIdleSecs = 3600;
    expect(await domain.signIn.find(second)).toBeNull();
    expect(await live(domain, first)).not.toBeNull();
    domain.signInRules.consoleLifeSecs = 7200;
    expect(await domain.signIn.find(first)).toBeNull();
  });

  test('lists an operator’s own sessions without their secrets', async () => {
    const domain = await openDomain(fixture);
    const { key, actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    await consoleHashOf(domain, bob);
    const token = await tokenHashOf(domain, key);
    domain.clock.advance(1000);
    const hash = await consoleHashOf(domain, key);
    const listed = await domain.signIn.list(await live(domain, hash));
    expect(listed).toMatchObject([
      { kind: 'console', current: true, user_agent: 'Firefox/145.0', address: '192.0.2.7', last_used_at: domain.now() },
      { kind: 'token', current: false, signed_in_at: domain.now() - 1 },
    ]);
    expect(JSON.stringify(listed)).not.toContain(token);
    expect(JSON.stringify(listed)).not.toContain(hash);
    expect(new Set(listed.map(({ id }) => id)).size).toBe(2);
    // A renewal keeps the session's ID.
    await domain.signIn.renew(token);
    expect((await domain.signIn.list(await live(domain, hash))).map(({ id }) => id).sort()).toEqual(
      listed.map(({ id }) => id).sort(),
    );
  });

  test('limits the length of the stored user agent', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const { nonce } = await domain.signIn.challenge(key.hex);
    const far = { ...client, userAgent: 'x'.repeat(10_000) };
    const { token } = await domain.signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')), null, far);
    const [listed] = await domain.signIn.list(await live(domain, hashOfToken(token)));
    expect(listed?.user_agent).toHaveLength(256);
  });

  test('ends one session of the same operator, but no session of another operator', async () => {
    const domain = await openDomain(fixture);
    const { key, actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const [mine, other, bobs] = [
      await consoleHashOf(domain, key),
      await consoleHashOf(domain, key),
      await consoleHashOf(domain, bob),
    ];
    const idOf = async (hash: string) => {
      const all = await domain.signIn.list(await live(domain, hash));
      return all.find(({ current }) => current)?.id ?? '';
    };
    const me = actorIn(await live(domain, mine));
    expect(await code(domain.signIn.end(me, await idOf(bobs)))).toBe('session_not_found');
    expect(await code(domain.signIn.end(me, ''))).toBe('session_not_found');
    const id = await idOf(other);
    await domain.signIn.end(me, id);
    expect(domain.hints.at(-1)).toEqual({ type: 'session_ended', token_hash: other, renewed_as: null });
    expect(await domain.signIn.find(other)).toBeNull();
    expect(await code(domain.signIn.end(me, id))).toBe('session_not_found');
    expect(await live(domain, bobs)).not.toBeNull();
    await domain.signIn.end(me, await idOf(mine));
    expect(await domain.signIn.find(mine)).toBeNull();
    // Ending the session again has no effect.
    expect(await code(domain.signIn.endAll(me))).toBe('unauthenticated');
  });

  test('ends a session that is renewed concurrently', async () => {
    const domain = await openDomain(fixture);
    const { key } = await newAdmin(domain);
    const token = await tokenHashOf(domain, key);
    const me = actorIn(await live(domain, await consoleHashOf(domain, key)));
    const id = (await domain.signIn.list(await live(domain, token))).find(({ current }) => current)?.id ?? '';
    let renewed = '';
    const all = domain.db.all.bind(domain.db);
    domain.db.all = (async (...call: Parameters<typeof all>) => {
      const rows = await all(...call);
      if (renewed === '' && call[0].name === 'sessions/of operator')
        renewed = hashOfToken((await domain.signIn.renew(token)).token);
      return rows;
    }) as typeof all;
    await domain.signIn.end(me, id);
    expect(await domain.signIn.find(renewed)).toBeNull();
    expect(domain.hints.at(-1)).toEqual({ type: 'session_ended', token_hash: renewed, renewed_as: null });
  });

  test('ends all sessions, including one that is opened concurrently', async () => {
    const domain = await openDomain(fixture);
    const { key, actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const bobs = await consoleHashOf(domain, bob);
    const mine = await consoleHashOf(domain, key);
    const token = await tokenHashOf(domain, key);
    const me = actorIn(await live(domain, mine));
    let late = '';
    const all = domain.db.all.bind(domain.db);
    domain.db.all = (async (...call: Parameters<typeof all>) => {
      const rows = await all(...call);
      if (late === '' && call[0].name === 'sessions/of operator') late = await consoleHashOf(domain, key);
      return rows;
    }) as typeof all;
    expect(await domain.signIn.endAll(me)).toBe(3);
    for (const hash of [mine, token, late]) {
      expect(await domain.signIn.find(hash)).toBeNull();
      expect(domain.hints).toContainEqual({ type: 'session_ended', token_hash: hash, renewed_as: null });
    }
    expect(await live(domain, bobs)).not.toBeNull();
  });

  test('ends a console session when its operator is removed', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const bobs = await consoleHashOf(domain, bob);
    expect(await live(domain, bobs)).not.toBeNull();
    const { ended } = await removeOperator(domain.context, actor, bob.id);
    expect(ended.sessions).toBe(1);
    expect(await domain.signIn.find(bobs)).toBeNull();
  });
});
