import { signedContexts } from '../signed-contexts.ts';

/** A statement by an agent's key about its successor: signed by the old key, presented by the holder of the new one. */

export interface KeyStatement {
  /** 32 bytes. */
  formerKey: Uint8Array;
  /** 32 bytes. */
  key: Uint8Array;
  /** Unix seconds on the agent's clock. */
  madeAt: number;
  /** End of the former key's validity, Unix seconds. */
  formerUntil: number;
}

export const keyStatementLimits = {
  /** Validity in seconds, from `madeAt`. Longer at an orchestrator that has not seen the former key since `madeAt`. */
  takenSecs: 30 * 86_400,
  /** Earlier statements in one hello: the maximum that fits its frame next to the largest attributes. */
  mostEarlier: 8,
  /** Maximum time that the former key stays valid. */
  longestGraceSecs: 30 * 86_400,
  /** Maximum difference of the two clocks in seconds. */
  clockSkewSecs: 600,
} as const;

/**
 * The bytes under the former key's signature: tag, former key, key, both times as 64 bits. Every part has a fixed length.
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
 * @param formerSeenAt when the orchestrator last saw the former key in use, Unix seconds. While this is before
 *                     `madeAt`, the statement does not age. Undefined: the statement always ages
 * @returns the fault of its times; null if they are valid
 */
export function keyStatementFault(
  { madeAt, formerUntil }: KeyStatement,
  now: number,
  formerSeenAt = Number.POSITIVE_INFINITY,
): string | null {
  const { takenSecs, longestGraceSecs, clockSkewSecs } = keyStatementLimits;
  if (madeAt > now + clockSkewSecs) return 'its time is in the future: is the clock of the machine right?';
  if (madeAt + takenSecs < now && madeAt + clockSkewSecs < formerSeenAt) return 'it is too old';
  if (formerUntil < madeAt || formerUntil - madeAt > longestGraceSecs)
    return 'the remaining validity of the former key is out of bounds';
  return null;
}
