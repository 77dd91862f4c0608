import { describe, expect, test } from 'vitest';
import { type KeyStatement, keyStatementBytes, keyStatementFault, keyStatementLimits } from './key-statement.ts';

const now = 1_700_000_000;
const statement: KeyStatement = {
  formerKey: new Uint8Array(32).fill(1),
  key: new Uint8Array(32).fill(2),
  madeAt: now,
  formerUntil: now + 3600,
};
const text = (part: Partial<KeyStatement> = {}) =>
  Buffer.from(keyStatementBytes({ ...statement, ...part })).toString('hex');

describe('what a key says of the next', () => {
  test('has its tag first, and other bytes whenever a part is another', () => {
    expect(Buffer.from(text(), 'hex').toString('latin1')).toMatch(/^muster agent key v1\0/);
    const all = [
      text(),
      text({ formerKey: statement.key, key: statement.formerKey }),
      text({ key: statement.formerKey }),
      text({ madeAt: now + 1 }),
      text({ formerUntil: now }),
      text({ madeAt: statement.formerUntil, formerUntil: now }),
    ];
    expect(new Set(all).size).toBe(all.length);
    expect(() => text({ key: new Uint8Array(31) })).toThrow(RangeError);
    expect(() => text({ madeAt: -1 })).toThrow(RangeError);
    expect(() => text({ formerUntil: 1.5 })).toThrow(RangeError);
  });

  test('is taken from a little before it was made until a month after, and for a time that is within bounds', () => {
    const { takenSecs, longestGraceSecs, clockSkewSecs } = keyStatementLimits;
    const fault = (at: number, part: Partial<KeyStatement> = {}) => keyStatementFault({ ...statement, ...part }, at);
    expect(fault(now)).toBeNull();
    expect(fault(now - clockSkewSecs)).toBeNull();
    expect(fault(now - clockSkewSecs - 1)).toContain('in the future');
    expect(fault(now + takenSecs)).toBeNull();
    expect(fault(now + takenSecs + 1)).toContain('too long ago');
    // As long as the former key was not seen since, it does not age.
    const seen = (at: number) => keyStatementFault(statement, now + 10 * takenSecs, at);
    expect(seen(now)).toBeNull();
    expect(seen(now + clockSkewSecs)).toBeNull();
    expect(seen(now + clockSkewSecs + 1)).toContain('too long ago');
    expect(fault(now, { formerUntil: now })).toBeNull();
    expect(fault(now, { formerUntil: now - 1 })).toContain('out of bounds');
    expect(fault(now, { formerUntil: now + longestGraceSecs })).toBeNull();
    expect(fault(now, { formerUntil: now + longestGraceSecs + 1 })).toContain('out of bounds');
  });
});
