import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Credential, type StoredSession, secretOf } from './credential.ts';
import { BrowserSession, type Person, SessionEnded, type SignedIn, type Token } from './session.ts';
import { parse, type SessionStorage } from './stored-session.ts';

const ada: Person = { operator_id: 'a'.repeat(32), username: 'ada', role: 'admin' };
const bob: Person = { operator_id: 'b'.repeat(32), username: 'bob', role: 'operator' };
const refusal = new Error('401');

/** A browser's storage. Each tab reads and writes the same session, and the other tabs are notified. */
function createBrowser() {
  let stored: StoredSession | null = null;
  const tabs: { readonly notify: (session: StoredSession | null) => void }[] = [];
  const openStorage = (): SessionStorage => {
    const tab = { notify: (_: StoredSession | null) => {} };
    tabs.push(tab);
    const become = (next: StoredSession | null) => {
      if (next === stored) return;
      stored = next;
      for (const other of tabs) if (other !== tab) other.notify(next);
    };
    return {
      read: () => stored,
      write: become,
      clear: () => become(null),
      subscribe: (listener) => {
        tab.notify = listener;
      },
    };
  };
  return { openStorage };
}

/**
 * Creates a session that uses a fake clock and sends requests that the test resolves.
 * @param renews whether renewals succeed immediately
 * @param browser if given, accepts cookies, and the session is in its storage
 */
function underTest(renews = false, browser: ReturnType<typeof createBrowser> | null = null) {
  let now = 1_000_000_000;
  let timers: { at: number; act: () => void }[] = [];
  const renewals: { token: string; resolve: (token: Token) => void; reject: (error: unknown) => void }[] = [];
  const left: string[] = [];
  /** Exchanging a token for a console session waits for this promise. */
  const exchange = { ready: Promise.resolve() };
  const refused = new Set<string>();
  const session = new BrowserSession({
    calls: {
      renew: async (token) => {
        if (refused.has(token)) throw refusal;
        if (renews) return { token: `${token}+`, expires_at: now / 1000 + 100 };
        return await new Promise((resolve, reject) => renewals.push({ token, resolve, reject }));
      },
      logout: async (credential) => void left.push(secretOf(credential)),
      openConsole: async (token) => {
        await exchange.ready;
        return browser && { kind: 'console', page_key: `key of ${token}` };
      },
    },
    storage: (browser ?? createBrowser()).openStorage(),
    now: () => now,
    after: (ms, act) => {
      const timer = { at: now + ms, act };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    isRefusal: (error) => error === refusal,
  });
  const pass = async (ms: number) => {
    for (const end = now + ms; ; ) {
      const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) {
        now = end;
        break;
      }
      timers = timers.filter((timer) => timer !== next);
      now = Math.max(now, next.at);
      next.act();
      if (renews) await settle();
    }
    await settle();
  };
  /** Advances the clock without running its timers, as on a laptop that sleeps. */
  const sleep = (ms: number) => {
    now += ms;
  };
  const token = (name: string, seconds = 3600): SignedIn => ({
    token: name,
    expires_at: Math.floor(now / 1000) + seconds,
    operator: name.startsWith('bob') ? bob : ada,
  });
  const sent = async (ready?: Promise<void>) => textOf(await session.credential(ready));
  const sentAfter = async (name: string) => textOf(await session.credentialAfter(credentialOf(name)));
  return { session, renewals, left, exchange, refused, pass, sleep, token, sent, sentAfter };
}
const textOf = (credential: Credential | null) => credential && secretOf(credential);
const credentialOf = (name: string): Credential =>
  name.startsWith('key of') ? { kind: 'console', page_key: name } : { kind: 'token', token: name, expires_at: 0 };
const settle = () => new Promise((resolve) => setImmediate(resolve));
const stateOf = async (promise: Promise<unknown>) =>
  Promise.race([promise.then(String, (error: Error) => error.name), settle().then(() => 'waits')]);

test('renews a token at three quarters of its lifetime', async () => {
  const { session, renewals, pass, token, sent } = underTest();
  await session.begin(token('ada-1'));
  await pass(2_690_000);
  expect(renewals).toHaveLength(0);
  await pass(20_000);
  expect(renewals.map(({ token: name }) => name)).toEqual(['ada-1']);
  renewals[0]?.resolve(token('ada-2'));
  await settle();
  expect(await sent()).toBe('ada-2');
});

test('returns the new token to a request that was refused during a renewal', async () => {
  const { session, renewals, pass, token, sentAfter } = underTest();
  await session.begin(token('ada-1'));
  await pass(2_700_000);
  const next = [sentAfter('ada-1'), sentAfter('ada-1')];
  expect(await stateOf(Promise.race(next))).toBe('waits');
  renewals[0]?.resolve(token('ada-2'));
  expect(await Promise.all(next)).toEqual(['ada-2', 'ada-2']);
  expect(session.state().status).toBe('live');
  // A request that is refused later also receives the new token.
  expect(await sentAfter('ada-1')).toBe('ada-2');
  expect(session.state().status).toBe('live');
});

test('retries a renewal that got no response, and expires after a refused renewal', async () => {
  const { session, renewals, pass, token } = underTest();
  await session.begin(token('ada-1'));
  await pass(2_700_000);
  renewals[0]?.reject(new Error('nobody answers'));
  await settle();
  await pass(10_000);
  expect(renewals).toHaveLength(2);
  expect(session.state().status).toBe('live');
  renewals[1]?.reject(refusal);
  await pass(0);
  expect(session.state()).toEqual({ status: 'expired', person: ada, other: null });
});

test.each([
  ['hours ahead', -5 * 3600],
  ['hours behind', 5 * 3600],
])('signs in and does not renew in a loop if the browser clock is %s', async (_, seconds) => {
  const { session, renewals, pass, token, sent } = underTest();
  await session.begin(token('ada-1', seconds));
  expect(await sent()).toBe('ada-1');
  for (let second = 0; second < 60; second++) {
    await pass(1_000);
    renewals.at(-1)?.resolve(token('ada-1', seconds));
    await settle();
  }
  expect(session.state().status).toBe('live');
  expect(renewals.length).toBeLessThan(8);
});

test('renews the token soon after the computer wakes up', async () => {
  const { session, renewals, pass, sleep, token } = underTest();
  await session.begin(token('ada-1'));
  sleep(2_900_000);
  await pass(60_000);
  expect(renewals).toHaveLength(1);
});

test('resumes waiting requests once, when the same operator signs in again', async () => {
  const { session, token, sent, sentAfter } = underTest();
  await session.begin(token('ada-1'));
  let forgotten = 0;
  session.onForget(() => forgotten++);
  const next = [sentAfter('ada-1'), sentAfter('ada-1'), sent()];
  await settle();
  expect(session.state().status).toBe('expired');
  await session.begin(token('ada-2'));
  expect(await Promise.all(next)).toEqual(['ada-2', 'ada-2', 'ada-2']);
  expect(forgotten).toBe(0);
});

test("never sends an operator's request with another operator's token", async () => {
  const { session, token, sent, sentAfter } = underTest();
  await session.begin(token('ada-1'));
  const seen: string[] = [];
  session.onForget(() => seen.push(session.state().status));
  const waits = sentAfter('ada-1');
  await settle();
  const bobs = session.begin(token('bob-1'));
  await expect(waits).rejects.toThrow(SessionEnded);
  await bobs;
  // The data was cleared before the state changed, so the second operator never saw the first operator's data.
  expect(seen).toEqual(['expired']);
  // The first operator's pending request fails as soon as its response arrives.
  await expect(sentAfter('ada-1')).rejects.toThrow(SessionEnded);
  expect(await sent()).toBe('bob-1');
});

test('remains signed out after a sign-out during a sign-in', async () => {
  const { session, left, token, sent } = underTest();
  await session.begin(token('ada-1'));
  const late = session.begin(token('ada-2'));
  const leaving = session.leave();
  await expect(late).rejects.toThrow(SessionEnded);
  await leaving;
  expect(session.state()).toEqual({ status: 'signed_out', why: 'left' });
  expect(await sent()).toBeNull();
  expect(left.toSorted()).toEqual(['ada-1', 'ada-2']);
});

test("revokes the previous session on a new sign-in and continues the same operator's requests", async () => {
  const { session, left, token, sentAfter } = underTest();
  await session.begin(token('ada-1'));
  await session.begin(token('ada-2'));
  expect(left).toEqual(['ada-1']);
  expect(await sentAfter('ada-1')).toBe('ada-2');
  await session.begin(token('bob-1'));
  expect(left).toEqual(['ada-1', 'ada-2']);
  await expect(sentAfter('ada-2')).rejects.toThrow(SessionEnded);
});

test('revokes a token whose renewal completes after the sign-out', async () => {
  const { session, renewals, left, pass, token, sent } = underTest();
  await session.begin(token('ada-1'));
  await pass(2_700_000);
  await session.leave();
  renewals[0]?.resolve(token('ada-2'));
  await settle();
  expect(await sent()).toBeNull();
  expect(left).toEqual(['ada-1', 'ada-2']);
  await pass(4_000_000);
  expect(renewals).toHaveLength(1);
});

test('never reuses a refused token and settles every request once, in any order of events', async () => {
  const step = fc.oneof(
    fc.constantFrom('ask', 'refuse', 'leave', 'ada', 'grace').map((what) => ({ what, seconds: 0 })),
    fc.integer({ min: 1, max: 200 }).map((seconds) => ({ what: 'pass', seconds })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { session, pass, refused, token: fresh, sent, sentAfter } = underTest(true);
      const begin = (name: string) => session.begin(fresh(name, 100));
      let signIns = 0;
      let requests = 0;
      let settled = 0;
      let last: string | null = null;
      for (const { what, seconds } of steps) {
        if (what === 'pass') await pass(seconds * 1000);
        else if (what === 'leave') await session.leave();
        else if (what === 'refuse' && last !== null) {
          refused.add(last);
          void sentAfter(last).catch(() => {});
        } else if (what === 'ask') {
          requests++;
          const before = new Set(refused);
          void sent().then(
            (token) => {
              settled++;
              if (token !== null) {
                expect(before.has(token)).toBe(false);
                last = token;
              }
            },
            (error: unknown) => {
              expect(error).toBeInstanceOf(SessionEnded);
              settled++;
            },
          );
          await pass(0);
        } else if (what === 'ada' || what === 'grace') await begin(`${what}-${++signIns}`);
      }
      await session.leave();
      await pass(0);
      expect(settled).toBe(requests);
    }),
    { numRuns: 200 },
  );
});

test('continues the session after a reload, and in a new tab', async () => {
  const browser = createBrowser();
  const first = underTest(false, browser);
  await first.session.begin(first.token('ada-1'));
  expect(await first.sent()).toBe('key of ada-1');
  const reloaded = underTest(false, browser);
  reloaded.session.resume();
  expect(reloaded.session.state()).toEqual({ status: 'live', person: ada });
  expect(await reloaded.sent()).toBe('key of ada-1');
  expect(first.left).toEqual([]);
});

test('shows the sign-in page if the session ended before the reload, and asks to sign in again if it ends later', async () => {
  const browser = createBrowser();
  const first = underTest(false, browser);
  await first.session.begin(first.token('ada-1'));
  const reloaded = underTest(false, browser);
  reloaded.session.resume();
  expect(await reloaded.sentAfter('key of ada-1')).toBeNull();
  expect(reloaded.session.state()).toEqual({ status: 'signed_out', why: 'new' });
  const used = underTest(false, browser);
  used.session.resume();
  used.session.confirm();
  expect(await stateOf(used.sentAfter('key of ada-1'))).toBe('waits');
  expect(used.session.state()).toEqual({ status: 'expired', person: ada, other: null });
});

test('signs out and in together with other tabs', async () => {
  const browser = createBrowser();
  const [one, other] = [underTest(false, browser), underTest(false, browser)];
  for (const { session } of [one, other]) session.resume();
  let forgotten = 0;
  other.session.onForget(() => forgotten++);
  await one.session.begin(one.token('ada-1'));
  expect(other.session.state()).toEqual({ status: 'live', person: ada });
  expect(await other.sent()).toBe('key of ada-1');
  forgotten = 0;
  await one.session.leave();
  expect(other.session.state()).toEqual({ status: 'signed_out', why: 'left' });
  expect(await other.sent()).toBeNull();
  expect(forgotten).toBe(1);
  // Only the tab in which the operator signed out sends the request.
  expect([one.left, other.left]).toEqual([['key of ada-1'], []]);
});

test('keeps the page of an operator when another operator signs in in another tab', async () => {
  const browser = createBrowser();
  const [adas, bobs] = [underTest(false, browser), underTest(false, browser)];
  for (const { session } of [adas, bobs]) session.resume();
  await adas.session.begin(adas.token('ada-1'));
  let forgotten = 0;
  adas.session.onForget(() => forgotten++);
  await bobs.session.begin(bobs.token('bob-1'));
  expect(bobs.left).toEqual(['key of ada-1']);
  expect(adas.session.state()).toEqual({ status: 'expired', person: ada, other: bob });
  const waits = adas.sent();
  expect(await stateOf(waits)).toBe('waits');
  expect(forgotten).toBe(0);
  // The operator discards the page: the waiting request is never sent as `bob`.
  adas.session.continueAsOther();
  await expect(waits).rejects.toThrow(SessionEnded);
  expect(forgotten).toBe(1);
  expect(adas.session.state()).toEqual({ status: 'live', person: bob });
  expect(await adas.sent()).toBe('key of bob-1');
});

test('continues with the session of another tab if its notification arrives late', async () => {
  const browser = createBrowser();
  const [one, other] = [underTest(false, browser), underTest(false, browser)];
  await one.session.begin(one.token('ada-1'));
  other.session.resume();
  other.session.confirm();
  const late = browser.openStorage();
  late.subscribe(() => {});
  const again = { person: ada, credential: credentialOf('key of ada-2') };
  late.read = () => again;
  const third = underTest(false, { openStorage: () => ({ ...late, subscribe: () => {} }) });
  await third.session.begin(third.token('ada-1'));
  expect(await third.sentAfter('key of ada-1')).toBe('key of ada-2');
  expect(third.session.state().status).toBe('live');
});

test('sends no request with a credential that is being replaced', async () => {
  const browser = createBrowser();
  const { session, sent, left, token } = underTest(false, browser);
  await session.begin(token('ada-1'));
  const again = session.begin(token('ada-2'));
  await Promise.resolve();
  const next = sent();
  await again;
  expect(left).toEqual(['key of ada-1']);
  expect(await next).toBe('key of ada-2');
});

test("never sends one operator's request with another operator's sign-in session", async () => {
  const { session, sent, token, exchange } = underTest(false, createBrowser());
  await session.begin(token('ada-1'));
  const { promise, resolve } = Promise.withResolvers<void>();
  exchange.ready = promise;
  const bobs = session.begin(token('bob-1'));
  await settle();
  // The page of `ada` is still open.
  expect(session.state()).toEqual({ status: 'live', person: ada });
  const adas = sent();
  expect(await stateOf(adas)).toBe('waits');
  resolve();
  await expect(adas).rejects.toThrow(SessionEnded);
  await bobs;
  expect(await sent()).toBe('key of bob-1');
});

test('does not send a request as the next operator if it was still waiting for the event stream', async () => {
  const { session, sent, token } = underTest(false, createBrowser());
  await session.begin(token('ada-1'));
  const { promise, resolve } = Promise.withResolvers<void>();
  const adas = sent(promise);
  await session.leave();
  await session.begin(token('bob-1'));
  const bobs = sent(promise);
  resolve();
  await expect(adas).rejects.toThrow(SessionEnded);
  expect(await bobs).toBe('key of bob-1');
});

test('expires, and revokes the new token, if no console session opens in place of the revoked one', async () => {
  const { session, sent, left, token, exchange } = underTest(false, createBrowser());
  await session.begin(token('ada-1'));
  exchange.ready = Promise.reject(new Error('503'));
  await expect(session.begin(token('bob-1'))).rejects.toThrow('503');
  expect(session.state()).toEqual({ status: 'expired', person: ada, other: null });
  expect(left).toEqual(['key of ada-1', 'bob-1']);
  const next = sent();
  exchange.ready = Promise.resolve();
  await session.begin(token('ada-2'));
  expect(await next).toBe('key of ada-2');
});

test.each([
  'null',
  '{',
  '[]',
  '{"person":{"operator_id":"a","username":"ada","role":"root"},"credential":{"kind":"console","page_key":"k"}}',
  '{"person":{"operator_id":"a","username":["ada"],"role":"admin"},"credential":{"kind":"console","page_key":"k"}}',
  '{"person":{"operator_id":"a","username":"ada","role":"admin"},"credential":{"kind":"console"}}',
  '{"person":{"operator_id":"a","username":"ada","role":"admin"},"credential":{"kind":"token","token":"t"}}',
])('ignores the stored session %s', (text) => {
  expect(parse(text)).toBeNull();
});
