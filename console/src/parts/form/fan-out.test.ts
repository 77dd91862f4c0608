import { describe, expect, test } from 'vitest';
import { atOnce, careful, type FanOutDraft, fanOutPreset, readFanOut, sentence, sentences } from './fan-out.ts';

const read = (draft: Partial<FanOutDraft>) => readFanOut({ ...atOnce, ...draft });

describe('reading the form', () => {
  test('reads an empty form as a single wave in which disconnected agents fail', () =>
    expect(read({})).toEqual({ options: { offline: 'report' } }));

  test('reads the options of the careful preset', () =>
    expect(readFanOut(careful)).toEqual({
      options: { canary: 1, batch: '25%', max_failures: 0, offline: 'report' },
    }));

  test.each([
    ['10', 10],
    [' 5 % ', '5%'],
    ['100%', '100%'],
  ])('reads a batch of %s', (batch, sent) =>
    expect(read({ batch })).toEqual({ options: { batch: sent, offline: 'report' } }),
  );

  test.each([
    ['90s', 90],
    ['30m', 1_800],
    ['7d', 604_800],
  ])('reads a wait of %s for disconnected agents', (wait, ttl) =>
    expect(read({ offline: 'queue', wait })).toEqual({ options: { offline: 'queue', ttl } }),
  );

  test('ignores the wait if the run does not wait for disconnected agents', () =>
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
  ])('reports an error in the field %s for "%s"', (field, text) =>
    expect(Object.keys((read({ [field]: text }) as { faults: object }).faults)).toEqual([field]),
  );

  test.each(['', '24', '0h', '366d', 'h'])('refuses a wait of "%s"', (wait) =>
    expect(read({ offline: 'queue', wait })).toHaveProperty('faults.wait'),
  );
});

test('recognizes the presets', () => {
  expect(fanOutPreset(careful)).toBe('careful');
  expect(fanOutPreset({ ...atOnce, offline: 'queue' })).toBe('at_once');
  expect(fanOutPreset({ ...careful, batch: '10' })).toBe('own');
});

describe('describing the rollout', () => {
  test.each([
    [{}, 412, 'Runs on 412 agents at once.'],
    [{}, 1, 'Runs on 1 agent at once.'],
    [{ batch: 500 }, 412, 'Runs on 412 agents at once.'],
    [{ batch: '25%' }, 10, 'Runs on 10 agents, at most 2 at a time.'],
    [
      { canary: 1, batch: 10 },
      412,
      'Runs on 1 agent first and, only if it succeeds, on the other 411, at most 10 at a time.',
    ],
    [{ canary: 2 }, 5, 'Runs on 2 agents first and, only if all of them succeed, on the other 3 at once.'],
    // A single agent needs no canary.
    [{ canary: 1 }, 1, 'Runs on 1 agent at once.'],
  ])('describes the options %j for %s agents', (options, count, begins) =>
    expect(sentence(options, count)).toContain(begins),
  );

  test('describes each run if several start at the same time', () => {
    expect(sentences({ canary: 1 }, [5])).toEqual([sentence({ canary: 1 }, 5)]);
    expect(sentences({ canary: 1 }, [5, 1, 1])).toEqual([
      'Starts 3 runs at the same time. Each run has its own canary, limit, and allowed failures.',
      'One run with 5 agents: Runs on 1 agent first and, only if it succeeds, on the other 4 at once.',
      '2 runs with 1 agent each: Runs on 1 agent at once.',
    ]);
    expect(sentences({}, [6, 5, 4, 3, 2, 1]).at(-1)).toBe('Runs of 2 other sizes start in the same way.');
  });

  test('describes when the run halts, and how it treats disconnected agents', () => {
    expect(sentence({ max_failures: 0, offline: 'report' }, 3)).toMatch(
      /Halts at the first failure\. .* count as failed\.$/,
    );
    expect(sentence({ max_failures: 1, offline: 'queue' }, 3)).toMatch(
      /more than 1 failure\. .* run when they reconnect\.$/,
    );
  });
});
