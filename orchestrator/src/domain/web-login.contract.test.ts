import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { type Key, newAdmin, newKey, openDomain } from '../../test/domain.ts';
import { defineQuery } from '../store/query.ts';
import { listAudit } from './audit/audit.ts';
import { expireSessions } from './operation-end/operation-expiry.ts';
import { addOperator, removeOperator } from './operators/operators.ts';
import { hashOfToken } from './operators/sessions.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );
const codes = defineQuery('codes', (db) => db.selectFrom('web_login_codes').selectAll());

describeAnyDatabase('web sign-in', (fixture) => {
  const open = async (tokenLifeSecs = 3600) => {
    const domain = await openDomain(fixture, { tokenLifeSecs });
    const { key, actor } = await newAdmin(domain);
    const signIn = async (who: Key = key) => {
      const { nonce } = await domain.signIn.challenge(who.hex);
      return hashOfToken((await domain.signIn.verify(who.hex, who.sign(Buffer.from(nonce, 'hex')))).token);
    };
    return { domain, key, actor, signIn, redeem: (text: string) => code(domain.signIn.redeem(text)) };
  };

  test('exchanges a code for a session only once', async () => {
    const { domain, key, signIn, redeem } = await open();
    const first = await signIn();
    const text = await domain.signIn.webCode(first);
    // The stored rows are not sufficient to sign in.
    expect(JSON.stringify(await domain.db.all(codes, {}))).not.toContain(text);
    const { token, expires_at, operator } = await domain.signIn.redeem(text);
    expect(operator).toEqual({ operator_id: key.id, username: 'ada', role: 'admin' });
    expect(expires_at).toBe(domain.now() + 3600);
    expect(await domain.signIn.find(hashOfToken(token))).toMatchObject({ operator_id: key.id, role: 'admin' });
    expect(await redeem(text)).toBe('login_code_invalid');
    await domain.signIn.logout(hashOfToken(token));
    expect(await domain.signIn.find(first)).not.toBeNull();
    const { events } = await listAudit(domain.context, { category: 'auth' });
    expect(events.map(({ event_type, actor }) => `${event_type} ${actor.name}`).reverse()).toEqual([
      'auth.signed_in ada',
      'auth.web_login_requested ada',
      'auth.signed_in ada',
      'auth.refused ',
      'auth.signed_out ada',
    ]);
  });

  test('accepts a code only once when many clients redeem it concurrently', async () => {
    const { domain, signIn, redeem } = await open();
    const text = await domain.signIn.webCode(await signIn());
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => redeem(text)));
    expect(outcomes.sort()).toEqual(['done', ...Array(7).fill('login_code_invalid')]);
  });

  test('refuses a code that is expired, forged, or from an ended session', async () => {
    const { domain, signIn, redeem } = await open();
    const session = await signIn();
    const [late, orphan] = [await domain.signIn.webCode(session), await domain.signIn.webCode(await signIn())];
    domain.clock.advance(59_000);
    const inTime = await domain.signIn.webCode(session);
    domain.clock.advance(1_000);
    expect(await redeem(late)).toBe('login_code_invalid');
    expect(await redeem(orphan)).toBe('login_code_invalid');
    expect(await redeem('')).toBe('login_code_invalid');
    expect(await redeem('\u0000💥')).toBe('login_code_invalid');
    await domain.signIn.logout(session);
    expect(await redeem(inTime)).toBe('login_code_invalid');
    expect(await code(domain.signIn.webCode(session))).toBe('unauthenticated');
    domain.clock.advance(60_000);
    await expireSessions(domain.context);
    expect(await domain.db.all(codes, {})).toEqual([]);
  });

  test('refuses an operator who was removed after the code was issued', async () => {
    const { domain, actor, signIn, redeem } = await open();
    const bob = await newKey();
    await addOperator(domain.context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const text = await domain.signIn.webCode(await signIn(bob));
    await removeOperator(domain.context, actor, bob.id);
    expect(await redeem(text)).toBe('login_code_invalid');
  });

  test('refuses a code after the session that created it has expired', async () => {
    const { domain, signIn, redeem } = await open(30);
    const text = await domain.signIn.webCode(await signIn());
    domain.clock.advance(30_000);
    expect(await redeem(text)).toBe('login_code_invalid');
  });

  test('limits sessions opened with codes to 12 hours after the first sign-in', async () => {
    const lifeSecs = 1800;
    const { domain, signIn } = await open(lifeSecs);
    let token = await signIn();
    const start = domain.now();
    let last = 0;
    for (let passed = 0; passed < 13 * 3600; passed += lifeSecs - 1) {
      try {
        const next = await domain.signIn.redeem(await domain.signIn.webCode(token));
        last = next.expires_at;
        token = hashOfToken(next.token);
      } catch {
        break;
      }
      domain.clock.advance((lifeSecs - 1) * 1000);
    }
    expect(last).toBe(start + 12 * 3600 + lifeSecs);
  });
});
