import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { newAdmin } from '../../../test/domain.ts';
import { openPair } from '../../../test/replicas.ts';
import { hashOfToken } from './sessions.ts';

describeDatabases('sign-in sessions at two replicas', (fixture) => {
  const open = async () => {
    const [one, two] = await openPair(fixture, { isReplica: true });
    const { key } = await newAdmin(one);
    const { nonce } = await one.signIn.challenge(key.hex);
    const { token } = await one.signIn.verify(key.hex, key.sign(Buffer.from(nonce, 'hex')));
    return { one, two, token };
  };

  test('refuses a sign-in session that ended on the other replica, even without hints', async () => {
    const { one, two, token } = await open();
    const hash = hashOfToken(token);
    expect(await two.signIn.find(hash)).toMatchObject({ username: 'ada' });
    await one.signIn.logout(hash);
    two.clock.advance(2_000);
    expect(await two.signIn.find(hash)).toBeNull();
  });

  test('refuses a session immediately after a hint from the other replica', async () => {
    const { one, two, token } = await open();
    const hash = hashOfToken(token);
    expect(await two.signIn.find(hash)).toMatchObject({ username: 'ada' });
    one.context.bus.subscribe((hint) => two.context.bus.publish(hint));
    await one.signIn.logout(hash);
    await two.context.bus.delivered();
    expect(await two.signIn.find(hash)).toBeNull();
  });

  test('announces sessions that ended or were renewed on the other replica', async () => {
    const { one, two, token } = await open();
    const hash = hashOfToken(token);
    await two.signIn.find(hash);
    await two.signIn.recheck([]);
    const renewed = hashOfToken((await one.signIn.renew(hash)).token);
    await two.signIn.recheck([]);
    await two.context.bus.delivered();
    expect(two.hints).toContainEqual({ type: 'session_ended', token_hash: hash, renewed_as: renewed });
    // A terminal continues with the renewed session, which this replica has not looked up.
    await two.signIn.recheck([renewed]);
    await one.signIn.logout(renewed);
    await two.signIn.recheck([renewed]);
    await two.context.bus.delivered();
    expect(two.hints).toContainEqual({ type: 'session_ended', token_hash: renewed, renewed_as: null });
  });
});
