import { signedContexts } from '../signed-contexts.ts';

/**
 * An agent's statement that a new key replaces its previous key. The previous key signs it, and the holder of the new key
 * presents it.
 */

export interface KeyStatement {
  /** 32 bytes. */
  formerKey: Uint8Array;
  /** 32 bytes. */
  key: Uint8Array;
  /** Unix seconds on the agent's clock. */
  madeAt: number;
  /** When the previous key expires, Unix seconds. */
  formerUntil: number;
}

export const keyStatementLimits = {
  /**
   * Validity in seconds from `madeAt`. Unlimited for an orchestrator that has not seen the previous key since `madeAt`.
   */
  takenSecs: 30 * 86_400,
  /** Maximum number of earlier statements in a hello, which fit into its frame together with the largest attributes. */
  mostEarlier: 8,
  /** Maximum remaining validity of the previous key, in seconds. */
  longestGraceSecs: 30 * 86_400,
  /** Maximum clock skew in seconds. */
  clockSkewSecs: 600,
} as const;

/**
 * Returns the bytes that the previous key signs: tag, previous key, key, and both times as 64-bit numbers. All parts
 * have a fixed length.
 * @throws RangeError if a part is invalid
 */
export function keyStatementBytes({ formerKey, key, madeAt, formerUntil }: KeyStatement): Uint8Array {
  if (formerKey.length !== 32 || key.length !== 32) throw new RangeError('a key must have 32 bytes');
  for (const time of [madeAt, formerUntil])
    if (!Number.isSafeInteger(time) || time < 0) throw new RangeError(`${time} is not a time`);
  const tag = new TextEncoder().encode(signedContexts.agentKey);
  const bytes = new Uint8Array(tag.length + 80);
  bytes.set(tag);
  bytes.set(formerKey, tag.length);
  bytes.set(key, tag.length + 32);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(tag.length + 64, BigInt(madeAt));
  view.setBigUint64(tag.length + 72, BigInt(formerUntil));
  return bytes;
}

/**
 * Checks the times in a statement.
 * @param formerSeenAt Unix seconds at which the orchestrator last saw the previous key. The statement does not expire if
 *   this is before `madeAt`. By default, the statement always expires
 * @returns a description of the error; null if the times are valid
 */
export function keyStatementFault(
  { madeAt, formerUntil }: KeyStatement,
  now: number,
  formerSeenAt = Number.POSITIVE_INFINITY,
): string | null {
  const { takenSecs, longestGraceSecs, clockSkewSecs } = keyStatementLimits;
  if (madeAt > now + clockSkewSecs) return 'its time is in the future: check the clock of the machine';
  if (madeAt + takenSecs < now && madeAt + clockSkewSecs < formerSeenAt) return 'it is too old';
  if (formerUntil < madeAt || formerUntil - madeAt > longestGraceSecs)
    return 'the remaining validity of the previous key is out of bounds';
  return null;
}
