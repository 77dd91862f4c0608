import { expect, test, vi } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { newAdmin } from '../../../test/domain.ts';
import { openPair, type ReplicaDomain } from '../../../test/replicas.ts';
import { withOverrides } from '../../store/database.ts';
import { markOperatorRemoved } from '../../store/queries/operators.ts';
import { sessionByHash } from '../../store/queries/sessions.ts';
import { statement } from '../../store/transaction.ts';
import { consoleToken, hashOfToken } from './sessions.ts';

/** Seconds without use after which a console session ends. */
const consoleIdleSecs = 43_200;

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

  /** Holds what the next reads of a replica return. @returns a function that lets it through */
  const holding = ({ context }: ReplicaDomain, method: 'get' | 'all') => {
    const { db } = context;
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
    const held = async <T>(rows: Promise<T>): Promise<T> => {
      const read = await rows;
      await resumed;
      return read;
    };
    const get: typeof db.get = (query, params) => held(db.get(query, params));
    const all: typeof db.all = (query, params) => held(db.all(query, params));
    Object.assign(context, { db: withOverrides(db, method === 'get' ? { get } : { all }) });
    return () => {
      Object.assign(context, { db });
      resume();
    };
  };

  test('refuses a session that ends on the other replica while its row is being read', async () => {
    const { one, two, token } = await open();
    const hash = hashOfToken(token);
    one.context.bus.subscribe((hint) => two.context.bus.publish(hint));
    const resume = holding(two, 'get');
    const found = two.signIn.find(hash);
    await one.signIn.logout(hash);
    await two.context.bus.delivered();
    resume();
    expect(await found).toBeNull();
    expect(await two.signIn.find(hash)).toBeNull();
  });

  test('refuses the sessions of a removed operator as soon as it has read them again', async () => {
    const { one, two, token } = await open();
    const hash = hashOfToken(token);
    const { operator_id } = (await two.signIn.find(hash))!;
    const removal = statement(markOperatorRemoved, { operator_id, removed_at: 1, removed_by: 'test' });
    await one.context.db.write({ name: 'test/remove', statements: [removal] });
    await two.signIn.recheck([]);
    expect(await two.signIn.find(hash)).toBeNull();
  });

  test('keeps a console session that is used while its row is being read again', async () => {
    const { one, two, token } = await open();
    const { cookie, page_key } = await one.signIn.openConsole(hashOfToken(token));
    const hash = hashOfToken(consoleToken(cookie, page_key));
    await two.signIn.find(hash);
    const stored = async () => (await two.context.db.get(sessionByHash, { token_hash: hash }))?.last_used_at;
    await vi.waitFor(async () => expect(await stored()).not.toBeNull());
    two.clock.advance(1_500);
    await two.signIn.recheck([]);
    // A second before the session ends, it is used and read at the same time.
    two.clock.advance((consoleIdleSecs - 2) * 1_000);
    const resume = holding(two, 'all');
    const rechecked = two.signIn.recheck([]);
    expect(await two.signIn.find(hash)).not.toBeNull();
    resume();
    await rechecked;
    two.clock.advance(1_500);
    expect(await two.signIn.find(hash)).not.toBeNull();
  });
});
