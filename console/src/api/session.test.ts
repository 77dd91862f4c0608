import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSession, type Person, SessionEnded, type Token } from './session.ts';

const ada: Person = { operator_id: 'a', username: 'ada', role: 'admin' };
const grace: Person = { operator_id: 'g', username: 'grace', role: 'operator' };
const refusal = new Error('401');

/** A session on a clock in the test's hands; tokens are `ada-1` and the like. */
function underTest(parts: { renew?: (token: string) => Promise<Token>; logout?: () => Promise<void> } = {}) {
  let now = 0;
  let timers: { at: number; act: () => void }[] = [];
  const forgotten: number[] = [];
  const seen: string[] = [];
  const refused = new Set<string>();
  const session = createSession({
    calls: {
      person: async (token) => {
        if (refused.has(token)) throw refusal;
        return token.startsWith('ada') ? ada : grace;
      },
      renew: async (token) => {
        if (parts.renew) return parts.renew(token);
        if (refused.has(token)) throw refusal;
        return { token: `${token}+`, expires_at: now / 1000 + 100 };
      },
      logout: parts.logout ?? (async () => {}),
    },
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
  session.subscribe(() => seen.push(session.state().status));
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    session,
    seen,
    forgotten,
    refused,
    begin: (name: string, seconds = 100) =>
      session.begin({ token: name, expires_at: now / 1000 + seconds }, () => forgotten.push(seen.length)),
    async pass(seconds: number) {
      const end = now + seconds * 1000;
      for (;;) {
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers = timers.filter((timer) => timer !== next);
        now = next.at;
        next.act();
        await settle();
      }
      now = end;
      await settle();
    },
    waiting: () => timers.length,
  };
}

test('a token is changed for a fresh one before it ends, again and again', async () => {
  const { session, begin, pass, seen } = underTest();
  await begin('ada-1');
  expect(await session.token()).toBe('ada-1');
  await pass(75);
  expect(await session.token()).toBe('ada-1+');
  await pass(1_000);
  expect((await session.token())?.length).toBeGreaterThan(12);
  expect(seen).toEqual(['live']);
});

test('a renewal that nobody answers is tried again until the token has ended', async () => {
  let tries = 0;
  const { session, begin, pass } = underTest({
    renew: async () => {
      tries++;
      throw new Error('nobody answers');
    },
  });
  await begin('ada-1');
  await pass(95);
  expect([tries, session.state().status]).toEqual([3, 'live']);
  await pass(10);
  expect(session.state()).toEqual({ status: 'expired', person: ada });
});

test('a renewal that is refused ends the session, and requests wait for the next sign-in', async () => {
  const { session, begin, pass, refused, forgotten } = underTest();
  await begin('ada-1');
  refused.add('ada-1');
  await pass(80);
  expect(session.state().status).toBe('expired');
  const requests = Promise.all([session.token(), session.token()]);
  await begin('ada-2');
  expect(await requests).toEqual(['ada-2', 'ada-2']);
  // Once, for the first of all sign-ins.
  expect(forgotten).toHaveLength(1);
});

test('somebody else’s sign-in takes nothing over: what waited is told, what was kept goes before it is shown', async () => {
  const { session, begin, seen, forgotten } = underTest();
  await begin('ada-1');
  session.refused('ada-1');
  const request = session.token();
  const told = expect(request).rejects.toThrow(SessionEnded);
  await begin('grace-1');
  await told;
  expect(session.state()).toEqual({ status: 'live', person: grace });
  expect(seen).toEqual(['live', 'expired', 'live']);
  expect(forgotten).toEqual([0, 2]);
});

test('a refusal of a token that was changed for another since says nothing of that one', async () => {
  const { session, begin, pass } = underTest();
  await begin('ada-1');
  await pass(76);
  session.refused('ada-1');
  expect(await session.token()).toBe('ada-1+');
});

test('a token that ended while the machine slept is not sent', async () => {
  const { session, begin, seen } = underTest();
  // It ends at once: no timer had its turn.
  await begin('ada-1', 0);
  void session.token();
  expect(seen).toEqual(['live', 'expired']);
});

test('leaving ends it here even when nobody answers, and a renewal under way brings nothing back', async () => {
  let answer: (token: Token) => void = () => {};
  const { session, begin, pass, waiting } = underTest({
    renew: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
    logout: () => Promise.reject(new Error('nobody answers')),
  });
  await begin('ada-1');
  await pass(76);
  await session.leave();
  answer({ token: 'ada-1+', expires_at: 1_000 });
  await pass(1);
  expect([session.state(), await session.token(), waiting()]).toEqual([{ status: 'signed_out', why: 'left' }, null, 0]);
});

test('whatever happens, no token is given out after it was refused, and every request is settled once', async () => {
  const step = fc.oneof(
    fc.constantFrom('ask', 'refuse', 'leave', 'ada', 'grace').map((what) => ({ what, seconds: 0 })),
    fc.integer({ min: 1, max: 200 }).map((seconds) => ({ what: 'pass', seconds })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { session, begin, pass, refused } = underTest();
      let signIns = 0;
      let asked = 0;
      let settled = 0;
      let last: string | null = null;
      for (const { what, seconds } of steps) {
        if (what === 'pass') await pass(seconds);
        else if (what === 'leave') await session.leave();
        else if (what === 'refuse' && last !== null) {
          refused.add(last);
          session.refused(last);
        } else if (what === 'ask') {
          asked++;
          const before = new Set(refused);
          void session.token().then(
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
      expect(settled).toBe(asked);
    }),
    { numRuns: 200 },
  );
});
