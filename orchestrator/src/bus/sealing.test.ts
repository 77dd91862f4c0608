import { describe, expect, test } from 'vitest';
import { everyone, maxPlainBytes, maxSealedBytes, type Opened, Seal } from './sealing.ts';

const secret = Buffer.alloc(32, 1);
const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(32)) as [string, string, string];
const text = Buffer.from('{"type":"beat"}');
const opened = (result: ReturnType<Seal['open']>) => result as Opened;

describe('sealed messages', () => {
  test('opens messages of the fleet, with the sender and the number', () => {
    const seal = new Seal(secret, a);
    for (const number of [1, 2, 3])
      expect(new Seal(secret, b).open(everyone, seal.seal(everyone, text))).toEqual({ sender: a, number, plain: text });
  });

  test('counts the messages to each recipient', () => {
    const seal = new Seal(secret, a);
    seal.seal(everyone, text);
    expect(opened(new Seal(secret, b).open(b, seal.seal(b, text))).number).toBe(1);
    seal.skip(b);
    expect(opened(new Seal(secret, b).open(b, seal.seal(b, text))).number).toBe(3);
  });

  test('refuses a message of another fleet', () => {
    const message = new Seal(secret, a).seal(everyone, text);
    expect(new Seal(Buffer.alloc(32, 2), b).open(everyone, message)).toBe('forged');
  });

  test('refuses a message to another recipient', () => {
    const seal = new Seal(secret, a);
    const direct = seal.seal(b, text);
    expect(new Seal(secret, c).open(c, direct)).toBe('forged');
    expect(new Seal(secret, c).open(everyone, direct)).toBe('forged');
    expect(new Seal(secret, b).open(b, seal.seal(everyone, text))).toBe('forged');
  });

  test('refuses a message with any changed byte', () => {
    const message = new Seal(secret, a).seal(everyone, text);
    const reader = new Seal(secret, b);
    for (let index = 0; index < message.length; index++) {
      const changed = Buffer.from(message);
      changed[index]! ^= 1;
      expect(reader.open(everyone, changed)).toBe(index === 0 ? 'unknown_format' : 'forged');
    }
  });

  test('refuses a truncated message', () => {
    const message = new Seal(secret, a).seal(everyone, text);
    const reader = new Seal(secret, b);
    expect(reader.open(everyone, message.subarray(0, -1))).toBe('forged');
    for (const length of [0, 1, 17, 25, 40])
      expect(reader.open(everyone, message.subarray(0, length))).toBe('truncated');
  });

  test('refuses a message that is too large, before it decrypts it', () => {
    const largest = new Seal(secret, a).seal(everyone, Buffer.alloc(maxPlainBytes));
    expect(largest).toHaveLength(maxSealedBytes);
    expect(opened(new Seal(secret, b).open(everyone, largest)).plain).toHaveLength(maxPlainBytes);
    expect(new Seal(secret, b).open(everyone, Buffer.concat([largest, Buffer.alloc(1)]))).toBe('oversized');
    expect(() => new Seal(secret, a).seal(everyone, Buffer.alloc(maxPlainBytes + 1))).toThrow('too large');
  });

  test('hides the content, and seals equal messages differently', () => {
    const seal = new Seal(secret, a);
    const [one, two] = [seal.seal(everyone, text), seal.seal(everyone, text)];
    expect(one.subarray(25)).not.toEqual(two.subarray(25));
    expect(one.includes('beat')).toBe(false);
  });
});
