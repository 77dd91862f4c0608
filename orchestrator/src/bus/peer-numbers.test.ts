import { describe, expect, test } from 'vitest';
import { PeerNumbers } from './peer-numbers.ts';

/** Returns the message numbers of a process that already has the last numbers of `a`. */
const known = (all = 10, direct = 1) => {
  const numbers = new PeerNumbers();
  numbers.greet('a', 'nonce', 0);
  numbers.answered('a', 'nonce', { all, direct }, 0);
  return numbers;
};

describe('numbers of messages', () => {
  test('accepts each message once, in order', () => {
    const numbers = known();
    expect([11, 12, 12, 11, 13].map((number) => numbers.judge('a', 'all', number, 0))).toEqual([
      ...['next', 'next', 'repeated', 'repeated', 'next'],
    ]);
  });

  test('detects missing messages, and refuses them when they arrive later', () => {
    const numbers = known();
    expect([11, 14, 12, 13, 15].map((number) => numbers.judge('a', 'all', number, 0))).toEqual([
      ...['next', 'gap', 'repeated', 'repeated', 'next'],
    ]);
  });

  test('counts messages to all and to one process separately', () => {
    const numbers = known();
    expect(numbers.judge('a', 'direct', 2, 0)).toBe('next');
    expect(numbers.judge('a', 'all', 11, 0)).toBe('next');
    expect(numbers.judge('a', 'direct', 2, 0)).toBe('repeated');
  });

  test('refuses messages from a process whose numbers are not known, or no longer known', () => {
    const numbers = known();
    expect(numbers.judge('b', 'all', 1, 0)).toBe('unknown');
    numbers.clear();
    expect(numbers.judge('a', 'all', 11, 0)).toBe('unknown');
  });

  test('accepts the last numbers of another process only with the nonce of the last greeting, once, and within ten seconds', () => {
    const numbers = new PeerNumbers();
    const last = { all: 5, direct: 5 };
    expect(numbers.answered('a', 'nonce', last, 0)).toBeNull();
    expect(numbers.greet('a', 'one', 0)).toBe(true);
    expect(numbers.greet('a', 'hasty', 999)).toBe(false);
    expect(numbers.greet('a', 'two', 1_000)).toBe(true);
    expect(numbers.answered('a', 'one', last, 1_000)).toBeNull();
    expect(numbers.answered('b', 'two', last, 1_000)).toBeNull();
    expect(numbers.answered('a', 'two', last, 11_000)).toBeNull();
    expect(numbers.answered('a', 'two', last, 10_999)).toBe('incomplete');
    expect(numbers.answered('a', 'two', { all: 1, direct: 1 }, 10_999)).toBeNull();
    expect(numbers.judge('a', 'all', 5, 10_999)).toBe('repeated');
  });

  test('drops a process after ten seconds of silence', () => {
    const numbers = known();
    numbers.judge('a', 'all', 11, 5_000);
    expect(numbers.forgetSilent(14_999)).toBe(false);
    expect(numbers.knows('a')).toBe(true);
    expect(numbers.forgetSilent(15_000)).toBe(true);
    expect(numbers.knows('a')).toBe(false);
    expect(numbers.forgetSilent(30_000)).toBe(false);
  });

  test.each([
    ['each former message was a beat', [1, 2], 2, 'complete'],
    ['no message was sent', [], 0, 'complete'],
    ['a message is missing', [1, 3], 3, 'incomplete'],
    ['the first messages are missing', [2], 2, 'incomplete'],
    ['old beats are repeated', [1, 2, 1, 2], 3, 'incomplete'],
  ])('detects whether hints were missed if %s', (_, beats, all, expected) => {
    const numbers = new PeerNumbers();
    numbers.greet('a', 'nonce', 0);
    for (const number of beats) numbers.ignored('a', number, true);
    numbers.greet('a', 'nonce', 1_000);
    expect(numbers.answered('a', 'nonce', { all, direct: 1 }, 1_000)).toBe(expected);
  });

  test('detects that hints were ignored before the greeting was answered', () => {
    const numbers = new PeerNumbers();
    numbers.greet('a', 'nonce', 0);
    numbers.ignored('a', 1, false);
    expect(numbers.answered('a', 'nonce', { all: 1, direct: 1 }, 0)).toBe('incomplete');
  });

  test('greets a bounded number of processes', () => {
    const numbers = new PeerNumbers();
    const greeted = Array.from({ length: 1_000 }, (_, index) => numbers.greet(`${index}`, 'nonce', 0));
    expect(greeted.filter(Boolean)).toHaveLength(256);
    numbers.forgetSilent(10_000);
    expect(numbers.greet('another', 'nonce', 10_000)).toBe(true);
  });
});
