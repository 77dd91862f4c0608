import { describe, expect, test } from 'vitest';
import { atOnce, careful, type FanOutDraft, pace, readFanOut, sentence } from './fan-out.ts';

const read = (draft: Partial<FanOutDraft>) => readFanOut({ ...atOnce, ...draft });

describe('what is typed becomes what is sent', () => {
  test('nothing typed: everywhere, and who is away is told of', () =>
    expect(read({})).toEqual({ options: { offline: 'report' } }));

  test('the careful pace', () =>
    expect(readFanOut(careful)).toEqual({
      options: { canary: 1, batch: '25%', max_failures: 0, offline: 'report' },
    }));

  test.each([
    ['10', 10],
    [' 5 % ', '5%'],
    ['100%', '100%'],
  ])('a batch of %s', (batch, sent) =>
    expect(read({ batch })).toEqual({ options: { batch: sent, offline: 'report' } }),
  );

  test.each([
    ['90s', 90],
    ['30m', 1_800],
    ['7d', 604_800],
  ])('agents that are away are waited for %s', (wait, ttl) =>
    expect(read({ offline: 'queue', wait })).toEqual({ options: { offline: 'queue', ttl } }),
  );

  test('how long is not asked when nobody is waited for', () =>
    expect(read({ wait: 'soon' })).toEqual({ options: { offline: 'report' } }));

  test.each<[keyof FanOutDraft, string]>([
    ['canary', '0'],
    ['canary', '1.5'],
    ['canary', '-1'],
    ['canary', '10%'],
    ['batch', '0'],
    ['batch', '0%'],
    ['batch', '101%'],
    ['batch', 'half'],
    ['batch', '2000000'],
    ['maxFailures', '-1'],
    ['maxFailures', 'none'],
  ])('%s of "%s" is refused at that field', (field, text) =>
    expect(Object.keys((read({ [field]: text }) as { faults: object }).faults)).toEqual([field]),
  );

  test.each(['', '24', '0h', '366d', 'h'])('a wait of "%s" is refused', (wait) =>
    expect(read({ offline: 'queue', wait })).toHaveProperty('faults.wait'),
  );
});

test('the named paces are known again', () => {
  expect(pace(careful)).toBe('careful');
  expect(pace({ ...atOnce, offline: 'queue' })).toBe('at_once');
  expect(pace({ ...careful, batch: '10' })).toBe('own');
});

describe('what will happen, in words', () => {
  test.each([
    [{}, 412, 'Goes to 412 agents at once.'],
    [{}, 1, 'Goes to 1 agent at once.'],
    [{ batch: 500 }, 412, 'Goes to 412 agents at once.'],
    [{ batch: '25%' }, 10, 'Goes to 10 agents, at most 2 at a time.'],
    [
      { canary: 1, batch: 10 },
      412,
      'Goes to 1 agent first and, only if it succeeds, to the other 411, at most 10 at a time.',
    ],
    [{ canary: 2 }, 5, 'Goes to 2 agents first and, only if all of them succeed, to the other 3 at once.'],
    // Who is the only one needs nobody to go ahead.
    [{ canary: 1 }, 1, 'Goes to 1 agent at once.'],
    [{ canary: 1 }, null, 'Goes to 1 agent first and, only if it succeeds, to the others at once.'],
  ])('%j over %s', (options, count, begins) => expect(sentence(options, count)).toContain(begins));

  test('when it halts, and what becomes of who is away', () => {
    expect(sentence({ max_failures: 0 }, 3)).toMatch(/Halts at the first failure\. .* count as failed\.$/);
    expect(sentence({ max_failures: 1, offline: 'queue' }, 3)).toMatch(/more than 1 failure\. .* waited for\.$/);
  });
});
