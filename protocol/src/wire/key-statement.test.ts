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

describe('key statement', () => {
  test('encodes a key statement with its tag first, and encodes different fields differently', () => {
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

  test('accepts only key statements within the age and grace-period limits', () => {
    const { takenSecs, longestGraceSecs, clockSkewSecs } = keyStatementLimits;
    const fault = (at: number, part: Partial<KeyStatement> = {}) => keyStatementFault({ ...statement, ...part }, at);
    expect(fault(now)).toBeNull();
    expect(fault(now - clockSkewSecs)).toBeNull();
    expect(fault(now - clockSkewSecs - 1)).toContain('in the future');
    expect(fault(now + takenSecs)).toBeNull();
    expect(fault(now + takenSecs + 1)).toContain('too old');
    // The statement does not expire if the previous key has not been used since the statement was signed.
    const seen = (at: number) => keyStatementFault(statement, now + 10 * takenSecs, at);
    expect(seen(now)).toBeNull();
    expect(seen(now + clockSkewSecs)).toBeNull();
    expect(seen(now + clockSkewSecs + 1)).toContain('too old');
    expect(fault(now, { formerUntil: now })).toBeNull();
    expect(fault(now, { formerUntil: now - 1 })).toContain('out of bounds');
    expect(fault(now, { formerUntil: now + longestGraceSecs })).toBeNull();
    expect(fault(now, { formerUntil: now + longestGraceSecs + 1 })).toContain('out of bounds');
  });
});
